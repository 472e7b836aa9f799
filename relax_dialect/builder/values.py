"""Values of the program that is being built, and what callers hand over for them: numbers, arrays, shapes, ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.builder.emitter import BuilderError, DTypeLike, Emitter, as_dtype
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp, PrimOp, number_attr
from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim, DimLike
from tir_dialect.dtypes import ElementType, dtype_name, from_numpy, is_bool, lookup, numpy_dtype, parse_dtype
from tir_dialect.weights import TensorAttr, converted, tensor_attr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.generic]


Number: TypeAlias = int | float | bool

Operand: TypeAlias = "TypedValue | SSAValue | Operation | Number | Array | Dim"
"""What Python's operators take. A number or an array becomes a constant of the other side's dtype; a dimension goes
with prim values.
"""


class TypedValue:
    """A value, the builder of its program, and what its type says. `Expr` adds Python's operators."""

    __slots__ = ("_builder", "_value")

    def __init__(self, builder: Emitter, value: SSAValue):
        self._builder = builder
        self._value = value

    @property
    def builder(self) -> Emitter:
        """The builder of the program that the value belongs to."""
        return self._builder

    @property
    def value(self) -> SSAValue:
        """The bare value."""
        return self._value

    # Types

    @property
    def type(self) -> StructInfo:
        """The relax type of the value."""
        info = self._value.type
        if not isinstance(info, StructInfo):
            raise BuilderError(f"expected a value of a relax type, got {info}")
        return info

    @property
    def shape(self) -> Shape:
        """What is known about the dimensions of a tensor or shape: `None` where unknown, or if the rank is."""
        info = self.type
        return info.dims if isinstance(info, TensorType | ShapeType) else self._refuse("a tensor or a shape")

    @property
    def ndim(self) -> int | None:
        """The rank of a tensor or the length of a shape, if it is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def dtype(self) -> Attribute | None:
        """The element type of a tensor, if it is known, or the dtype of a prim value."""
        info = self.type
        return info.dtype if isinstance(info, TensorType | PrimType) else self._refuse("a tensor or a prim value")

    @property
    def dim(self) -> Dim:
        """The value of a prim value as a dimension; `BuilderError` if its type does not say it."""
        info = self.type
        found = info.value if isinstance(info, PrimType) else None
        return self._refuse("a prim value that is known as a dimension") if found is None else found

    def _refuse(self, expected: str) -> Any:
        raise BuilderError(f"expected {expected}, got {self._value.type}")


Value: TypeAlias = TypedValue | SSAValue | Operation
"""A value, as an expression, bare, or as an op with one result, which is emitted if it is in no block yet."""


def as_value(builder: Emitter, value: Value) -> SSAValue:
    """A bare value; an op that is in no block yet is emitted. `BuilderError` for an op without exactly one result,
    `TypeError` for anything else.
    """
    if isinstance(value, TypedValue):
        return value.value
    if isinstance(value, SSAValue):
        return value
    if not isinstance(cast("object", value), Operation):
        raise TypeError(f"expected a value of the program, got {value!r}")
    op = builder.insert(value) if value.parent is None else value
    if len(op.results) != 1:
        raise BuilderError(f"'{op.name}' op expected one result to be used as a value, got {len(op.results)}")
    return op.results[0]


def as_tensor(builder: Emitter, operand: Operand, dtype: Attribute | None) -> SSAValue:
    """A value; numbers and arrays become constants, numbers of the given dtype."""
    if isinstance(operand, Dim):
        raise TypeError(f"expected a tensor, got the dimension {operand}: use op.prim and op.full to make one of it")
    if isinstance(operand, TypedValue | SSAValue | Operation):
        return as_value(builder, operand)
    if isinstance(operand, int | float):
        # The dtype of a number beside a tensor of `dtype`; `TypeError` where the number would change.
        number = operand
        if dtype is None:
            raise TypeError(f"the number {number} needs a dtype, as the other side's is not known: use bb.const")
        if isinstance(number, bool) != is_bool(dtype) or not _is_in(number, dtype):
            raise TypeError(f"the number {number} is no {dtype}; convert one side with astype")
        return constant(builder, operand, dtype).result
    return constant(builder, operand).result


def as_shape(builder: Emitter, shape: Value | Iterable[DimLike]) -> SSAValue:
    """A shape value, made of dimensions unless it is one."""
    if isinstance(shape, TypedValue | SSAValue | Operation):
        return as_value(builder, shape)
    return builder.insert(ShapeOp(list(shape))).result


def as_prim(builder: Emitter, value: Value | DimLike | float, dtype: Attribute | None = None) -> SSAValue:
    """A prim value; integers and dimensions are `i64` unless a dtype is given, other numbers `f32`."""
    if isinstance(value, TypedValue | SSAValue | Operation):
        return as_value(builder, value)
    return builder.insert(PrimOp(_scalar(value, dtype))).result


def _scalar(value: DimLike | float, dtype: Attribute | None) -> Dim | IntegerAttr | FloatAttr | int | str:
    if isinstance(value, Dim | str):
        return value
    kind = dtype or (i1 if isinstance(value, bool) else i64 if isinstance(value, int) else f32)
    try:
        return number_attr(value, kind)
    except ValueError as error:
        raise TypeError(str(error)) from error


def constant(builder: Emitter, data: Any, dtype: DTypeLike | None = None, name: str | None = None) -> ConstantOp:
    """Emits a constant tensor of a number, nested lists, or an array of any DLPack library."""
    return builder.insert(ConstantOp(elements(data, None if dtype is None else as_dtype(dtype), name)))


def elements(data: Any, dtype: Attribute | None = None, name: str | None = None) -> TensorAttr:
    """A constant tensor; without a dtype Python's floats are `f32`, and arrays keep theirs.

    Arrays with many elements are not copied: they must not be changed afterwards.
    """
    import numpy as np

    known_kind = isinstance(data, int | float | Sequence | np.generic) or hasattr(data, "__dlpack__")
    if isinstance(data, str) or not known_kind:
        raise TypeError(f"expected a tensor, a number or an array, got {data!r}")
    if isinstance(data, np.ndarray | np.generic):
        array: NDArray[Any] = np.asarray(cast("NDArray[Any]", data))
        known: ElementType = from_numpy(array.dtype)
    elif isinstance(data, int | float | Sequence):
        array = np.asarray(data, None if dtype is None else numpy_dtype(dtype))  # an integer that is none is an error
        known = f32 if array.dtype == np.float64 else from_numpy(array.dtype)
        if known == f32 and (whole := np.asarray(data, object)).size and all(map(_is_integer, whole.reshape(-1))):
            # NumPy makes floats of integers of which only some are 2**63 or more.
            array, known = np.asarray(data, np.uint64), parse_dtype("ui64")
    else:
        array = np.from_dlpack(data)
        known = from_numpy(array.dtype)
    kind = known if dtype is None else lookup(dtype).type
    return tensor_attr(converted(array, kind), name)


def _is_integer(value: object) -> bool:
    return isinstance(value, int)


def _is_in(number: float, dtype: Attribute) -> bool:
    try:
        number_attr(number, dtype)
    except ValueError:
        # Scalars of `ui64` end at 2**63, but elements of tensors do not.
        return dtype_name(dtype) == "ui64" and 0 <= number < 1 << 64 and isinstance(number, int)
    return True
