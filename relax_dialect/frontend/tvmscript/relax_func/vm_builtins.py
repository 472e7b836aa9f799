"""Functions of TVM's run-time library that texts call by name and that are operators here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.values import DTypeOp
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim, constant, product


@dataclass(frozen=True)
class Builtin:
    """A function of the library as a value."""

    call: Callable[..., Any]


def _copy(value: Any) -> Any:
    """The same value: TVM's function too gives back what it gets."""
    return value


def _operator(name: str) -> Callable[..., Any]:
    return lambda *arguments: function_of(operator_classes()[name])(*arguments)


def view(value: Expr, shape: Expr | Sequence[Dim], dtype: Attribute | None, offset: Dim) -> Expr:
    """A tensor's bytes from one on with another shape and dtype; a tensor stands for its shape."""
    info = value.type
    if isinstance(shape, Expr) and isinstance(shape.type, TensorType):
        shape = shape.type.known_dims or _operator("relax.shape_of")(shape)
    if isinstance(info, TensorType) and dtype in (None, info.dtype) and offset == constant(0) and _same(info, shape):
        return _operator("relax.reshape")(value, shape)
    return function_of(operator_classes()["relax.reinterpret"])(value, shape, dtype, offset=offset)


def _same(info: TensorType, shape: Expr | Sequence[Dim]) -> bool:
    """Whether a shape has provably as many elements as a tensor."""
    dims, known = shape, info.known_dims
    if isinstance(dims, Expr):
        dims = dims.type.known_dims if isinstance(dims.type, ShapeType) else None
    return dims is not None and known is not None and DEFAULT_PROVER.equal(product(dims), product(known)) is True


def _create_view(value: Expr, shape: Expr, dtype: Expr, offset: Expr) -> Expr:
    """What `R.memory.view` becomes in TVM: all of its arguments are values."""
    owner, place = dtype.value.owner, offset.type
    if not isinstance(owner, DTypeOp) or not isinstance(place, PrimType) or place.value is None:
        raise ValueError("a view expected a dtype and an offset that are known when the text is read")
    return view(value, shape, owner.value, place.value)


def _to_device(value: Expr, kind: Expr, number: Expr) -> Expr:
    """The same value, which is on the CPU already."""
    if (_known(kind, "the kind of a device"), _known(number, "the number of a device")) != (_CPU, 0):
        raise ValueError("the CPU is the only device: expected R.prim_value(1), R.prim_value(0)")
    return value


def _known(value: Expr, what: str) -> int:
    """A number that the text says."""
    number = value.type.value if isinstance(value.type, PrimType) else None
    if number is None or number.constant_value is None:
        raise ValueError(f"{what} has to be known when the text is read, got {value.type}")
    return number.constant_value


def _tuple_get_item(fields: Expr, index: Expr) -> Expr:
    return fields[_known(index, "the index of a field")]


def _tuple_reset_item(fields: Expr, index: Expr) -> Expr:
    """The tuple with null in a place; TVM's function changes the one that it gets."""
    place = _known(index, "the index of a field")
    kept = [_operator("relax.null")() if number == place else field for number, field in enumerate(fields)]
    return _operator("relax.tuple")(*kept)


_CPU = 1
"""DLPack's number of the kind of device."""

VM_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "runtime.TVMTensorCreateView": _create_view,
    "vm.builtin.copy": _copy,
    "vm.builtin.ensure_zero_offset": _copy,
    "vm.builtin.make_tuple": _operator("relax.tuple"),
    "vm.builtin.null_value": _operator("relax.null"),
    "vm.builtin.reshape": _operator("relax.reshape"),
    "vm.builtin.shape_of": _operator("relax.shape_of"),
    "vm.builtin.tensor_to_shape": _operator("relax.tensor_to_shape"),
    "vm.builtin.to_device": _to_device,
    "vm.builtin.tuple_getitem": _tuple_get_item,
    "vm.builtin.tuple_reset_item": _tuple_reset_item,
}
"""What `R.call_packed("<name>", ...)` or a call of `R.ExternFunc("<name>")` emits in place of the call."""
