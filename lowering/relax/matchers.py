"""What rewrite patterns ask of values: dimensions and dtypes, whether an operator is elementwise, and who uses what."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard, get_args

from numpy.typing import NDArray
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.ops.activation import ClipOp, LeakyReluOp, SoftplusOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.operator import ElementwiseOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim

Elementwise: TypeAlias = ElementwiseOp | AstypeOp | ClipOp | LeakyReluOp | SoftplusOp
"""The operators that compute an element of the result from the elements at its index, after broadcasting."""


_ELEMENTWISE = get_args(Elementwise)


def is_elementwise(op: object) -> TypeGuard[Elementwise]:
    """Whether an element of the result is computed from the elements at its index, after broadcasting."""
    return isinstance(op, _ELEMENTWISE)


def dims_of(value: SSAValue) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor, if all are known."""
    info = value.type
    return info.known_dims if isinstance(info, TensorType) else None


def dtype_of(value: SSAValue) -> Attribute | None:
    """The dtype of a tensor, if it is known."""
    return value.type.dtype if isinstance(value.type, TensorType) else None


def is_single_element(value: SSAValue) -> bool:
    """Whether a tensor has one element, so that it is broadcast wherever it stands."""
    dims = dims_of(value)
    return dims is not None and all(dim.constant_value == 1 for dim in dims)


def used_only_by(value: SSAValue, op: Operation) -> bool:
    """Whether `op` alone uses a value, once or several times."""
    return all(use.operation is op for use in value.uses)


def shape_of(value: SSAValue) -> tuple[Dim, ...]:
    """The dimensions of a tensor all of whose dimensions have a name; `ValueError` for others."""
    dims = dims_of(value)
    if dims is None:
        raise ValueError(f"expected a tensor of known dimensions, got {value.type}")
    return dims


def array_of(value: SSAValue) -> NDArray[Any] | None:
    """The elements of a constant that are in this process."""
    return value.owner.array if isinstance(value.owner, ConstantOp) else None


def number_of(value: SSAValue) -> float | None:
    """The number that a constant of one element is."""
    array = array_of(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def is_number(value: SSAValue) -> bool:
    """Whether a value is a constant of one element, which need not be in this process."""
    return isinstance(value.owner, ConstantOp) and is_single_element(value)


def reshaped(value: SSAValue, dims: list[Dim]) -> list[Operation]:
    """The ops that give a value another shape."""
    shape = ShapeOp(dims)
    return [shape, ReshapeOp(value, shape)]
