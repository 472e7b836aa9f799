"""`Expr`: a value of the program that is being built, with Python's operators and `x[...]`.

Tensors have the operators of the dialect and are indexed as in NumPy, tuples and shapes by position; prim values have
arithmetic on dimensions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, cast

from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.builder.emitter import BuilderError, DTypeLike, Emitter, Operand, TypedValue, as_dtype, as_tensor
from relax_dialect.builder.emitter import constant as constant_op
from relax_dialect.loading import operator_classes, same_operators
from relax_dialect.ops.calls import CallClosureOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.gather import IndexTensorOp
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp
from relax_dialect.ops.manipulation import ExpandDimsOp, PermuteDimsOp, SqueezeOp
from relax_dialect.ops.shapes import ShapeGetOp, TupleGetOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.types import FuncType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, constant, floordiv, mod
from tir_dialect.dtypes import is_bool
from tir_dialect.types import as_name_hint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from relax_dialect.builder.emitter import Emitter

    Array: TypeAlias = NDArray[np.generic]


class Expr(TypedValue):
    """A value with operators; each emits an op where the builder stands.

    Tensors: `+ - * / // % ** @ & | ^ ~ << >>`, `divmod`, `abs`, `round`, `math.floor`, `math.ceil`, `math.trunc`,
    comparisons, indexing as in NumPy, `astype`. Prim values of known
    value: `+ - * // %`. Tuples and shapes: indexing, iteration, `len`. Functions: calls.
    """

    __slots__ = ()

    __array_ufunc__ = None
    """NumPy leaves operators between its arrays and expressions to this class."""

    def __getattr__(self, name: str) -> Any:
        """Raises `AttributeError`, which names the operator for a method of other libraries."""
        message = f"'Expr' object has no attribute '{name}'"
        if not name.startswith("_"):
            same = same_operators("transpose" if name == "T" else name, operator_classes())
            message += "".join(f"; operators are functions: op.{each.removeprefix('relax.')}(x)" for each in same[:1])
        raise AttributeError(message, name=name, obj=self)

    def rebind(self, value: SSAValue) -> None:
        """Makes the expression stand for another value: that of an output, once its region has ended."""
        self._value = value

    def named(self, name: str) -> Expr:
        """The same value, which is called `name` in text."""
        self._value.name_hint = as_name_hint(name)
        return self

    def astype(self, dtype: DTypeLike) -> Expr:
        """Every element converted to a dtype."""
        return Expr(self.builder, self.builder.insert(AstypeOp(self.value, as_dtype(dtype))).result)

    def __call__(self, *arguments: Operand) -> Expr:
        if not isinstance(self.type, FuncType):
            raise TypeError(f"expected a function to call, got {self.type}")
        values = [as_tensor(self.builder, argument, None) for argument in arguments]
        return Expr(self.builder, self.builder.insert(CallClosureOp(self.value, values)).result)

    def __getitem__(self, index: Any) -> Expr:
        return Expr(self.builder, get_item(self, index))

    def __len__(self) -> int:
        info = self.type
        if isinstance(info, TupleType):
            return len(info.fields)
        length = info.dims if isinstance(info, TensorType | ShapeType) else None
        if isinstance(info, ShapeType) and length is not None:
            return len(length)
        raise TypeError(f"expected a tuple or a shape of known length, got {info}")

    def __iter__(self) -> Iterator[Expr]:
        return (self[index] for index in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a value has no truth value while the program is built: use if_ or op.where, and & | ~ instead of and, or, "
            "not and chained comparisons"
        )

    def __repr__(self) -> str:
        return f"Expr(%{self._value.name_hint or '?'}: {self._value.type})"

    # Operators

    def __add__(self, other: Operand) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("subtract", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary("divide", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return binary("floor_divide", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return binary("floor_mod", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return binary("floor_mod", other, self)

    def __divmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: Operand) -> Expr:
        return binary("power", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return binary("power", other, self)

    def __matmul__(self, other: Operand) -> Expr:
        return binary("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> Expr:
        return binary("matmul", other, self)

    def __and__(self, other: Operand) -> Expr:
        return binary("bitwise_and", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return binary("bitwise_and", other, self)

    def __or__(self, other: Operand) -> Expr:
        return binary("bitwise_or", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return binary("bitwise_or", other, self)

    def __xor__(self, other: Operand) -> Expr:
        return binary("bitwise_xor", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return binary("bitwise_xor", other, self)

    def __lshift__(self, other: Operand) -> Expr:
        return binary("left_shift", self, other)

    def __rlshift__(self, other: Operand) -> Expr:
        return binary("left_shift", other, self)

    def __rshift__(self, other: Operand) -> Expr:
        return binary("right_shift", self, other)

    def __rrshift__(self, other: Operand) -> Expr:
        return binary("right_shift", other, self)

    def __lt__(self, other: Operand) -> Expr:
        return binary("less", self, other)

    def __le__(self, other: Operand) -> Expr:
        return binary("less_equal", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return binary("greater", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return binary("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return binary("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return binary("not_equal", self, other)

    def __neg__(self) -> Expr:
        return unary("negative", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return unary("abs", self)

    def __round__(self, digits: int | None = None) -> Expr:
        if digits is not None:
            raise TypeError("round takes no digits here: multiply, round and divide")
        return unary("round", self)

    def __floor__(self) -> Expr:
        return unary("floor", self)

    def __ceil__(self) -> Expr:
        return unary("ceil", self)

    def __trunc__(self) -> Expr:
        return unary("trunc", self)

    def __invert__(self) -> Expr:
        return unary("bitwise_not", self)


_DIM_OPERATORS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": floordiv,
    "floor_mod": mod,
}


def binary(name: str, left: Any, right: Any) -> Expr:
    """`relax.<name>` of two operands, at least one of them an expression."""
    builder = next(side.builder for side in (left, right) if isinstance(side, Expr))
    if _is_prim(left) or _is_prim(right):
        return _prim_arithmetic(builder, name, left, right)
    dtype = _dtype(left) or _dtype(right)
    return _apply(builder, name, as_tensor(builder, left, dtype), as_tensor(builder, right, dtype))


def unary(name: str, operand: Expr) -> Expr:
    """`relax.<name>` of a tensor; of a prim value the negation."""
    if _is_prim(operand) and name == "negative":
        return _prim_arithmetic(operand.builder, "subtract", 0, operand)
    return _apply(operand.builder, name, operand.value)


def _apply(builder: Emitter, name: str, *operands: SSAValue) -> Expr:
    return Expr(builder, builder.insert(operator_classes()[f"relax.{name}"](*operands)).results[0])


def _prim_arithmetic(builder: Emitter, name: str, left: Operand, right: Operand) -> Expr:
    """Arithmetic on values that types show, which a type then shows again."""
    compute = _DIM_OPERATORS.get(name)
    if compute is None:
        raise TypeError(f"prim values have no operator {name}: make tensors of them, with op.full")
    return Expr(builder, builder.insert(PrimOp(compute(_dim(left), _dim(right)))).result)


def _is_prim(operand: object) -> bool:
    return isinstance(_type(operand), PrimType)


def _dim(operand: object) -> Dim:
    if isinstance(operand, Dim):
        return operand
    if isinstance(operand, int) and not isinstance(operand, bool):
        return constant(operand)
    info = _type(operand)
    if not isinstance(info, PrimType) or info.value is None:
        got = f"the number {operand}" if info is None else str(info)
        raise BuilderError(f"arithmetic on prim values expected integers whose value is known, got {got}")
    return info.value


def _dtype(operand: object) -> Attribute | None:
    """The dtype of a side that is a tensor."""
    info = _type(operand)
    return info.dtype if isinstance(info, TensorType) else None


def _type(operand: object) -> Attribute | None:
    """The type of a side that is a value."""
    if isinstance(operand, Expr):
        return operand.value.type
    if isinstance(operand, Operation):
        return operand.results[0].type if len(operand.results) == 1 else None
    return cast("SSAValue", operand).type if isinstance(operand, SSAValue) else None


if TYPE_CHECKING:
    from numpy.typing import NDArray


IndexLike: TypeAlias = "int | Dim | TypedValue"
"""A position along a dimension; an expression is a prim value."""

END = (1 << 63) - 1
"""A position after every element."""


def get_item(value: TypedValue, index: Any) -> SSAValue:
    """`value[index]`; `TypeError` for what cannot be indexed, or not like that."""
    info = value.type
    if isinstance(info, TensorType):
        return _get_elements(value, index)
    if not isinstance(info, TupleType | ShapeType) or not isinstance(index, int):
        raise TypeError(f"expected a tensor, or a tuple or shape and an integer, got {info}")
    dims = info.dims if isinstance(info, ShapeType) else info.fields
    if dims is None and index < 0:
        raise TypeError(f"expected a tuple or a shape of known length, got {info}")
    position = index + len(dims or ()) if index < 0 else index
    if isinstance(info, TupleType):
        return value.builder.insert(TupleGetOp(value.value, position)).result
    return value.builder.insert(ShapeGetOp(value.value, position)).result


class _Kind(Enum):
    """What an item of an index makes of its axis."""

    KEPT = 1
    """A dimension: the item is a slice."""
    PLACED = 2
    """No dimension, or one of the tensors of positions, if there are any."""
    NEW = 3
    """A dimension where there was no axis: the item is `None`."""


@dataclass
class _Plan:
    """What an index means, axis by axis of the tensor."""

    slices: dict[int, tuple[Dim, Dim, int]] = field(default_factory=dict[int, tuple[Dim, Dim, int]])
    """Begin, end and stride along the axes that are cut."""
    dropped: list[int] = field(default_factory=list[int])
    """Axes that are given by one position."""
    gathered: dict[int, TypedValue] = field(default_factory=dict[int, TypedValue])
    """The axes that are given by tensors of positions, and those."""
    kinds: list[_Kind] = field(default_factory=list["_Kind"])
    """What each item of the index is, in order."""


def _get_elements(tensor: TypedValue, index: Any) -> SSAValue:
    items = cast("Sequence[Any]", index) if isinstance(index, tuple) else (index,)
    plan = _plan(tensor, _without_ellipsis(items, tensor.ndim))
    builder, value = tensor.builder, tensor.value
    if plan.slices:
        begins, ends, strides = zip(*plan.slices.values(), strict=True)
        steps = None if set(strides) == {1} else strides
        value = builder.insert(StridedSliceOp(value, tuple(plan.slices), begins, ends, steps)).result
    if plan.dropped:
        value = builder.insert(SqueezeOp(value, plan.dropped)).result
    front = _front(plan.kinds) if plan.gathered else None
    width = 0
    if front is not None:
        kept_before = sum(kind is _Kind.KEPT for kind in plan.kinds[:front])
        positions = {axis - sum(drop < axis for drop in plan.dropped): each for axis, each in plan.gathered.items()}
        value, width = _gather(TypedValue(builder, value), positions, kept_before)
    new, made = list[int](), 0
    for position, kind in enumerate(plan.kinds):
        made += width if position == front else 0
        if kind is _Kind.NEW:
            new.append(made)
        made += kind is not _Kind.PLACED
    if new:
        value = builder.insert(ExpandDimsOp(value, new)).result
    return value


def _front(kinds: Sequence[_Kind]) -> int:
    """Where the dimensions of the tensors of positions stand: at the first, or in front, if a slice is between them."""
    placed = [position for position, kind in enumerate(kinds) if kind is _Kind.PLACED]
    return placed[0] if placed[-1] - placed[0] == len(placed) - 1 else 0


def _without_ellipsis(items: Sequence[Any], rank: int | None) -> list[Any]:
    """The items with as many full slices instead of `...` as there are axes left."""
    positions = [index for index, item in enumerate(items) if item is Ellipsis]
    used = len(items) - len(positions) - sum(item is None for item in items)
    if len(positions) > 1:
        raise IndexError("expected at most one ... in an index")
    if rank is not None and used > rank:
        raise IndexError(f"expected at most {rank} indices, got {used}")
    if not positions:
        return list(items)
    if rank is None:
        raise IndexError("... needs a tensor of known rank")
    return [*items[: positions[0]], *[slice(None)] * (rank - used), *items[positions[0] + 1 :]]


def _plan(tensor: TypedValue, items: Iterable[Any]) -> _Plan:
    plan, axis = _Plan(), 0
    for item in items:
        plan.kinds.append(_Kind.NEW if item is None else _plan_axis(plan, tensor, axis, item))
        axis += item is not None
    return plan


def _plan_axis(plan: _Plan, tensor: TypedValue, axis: int, item: Any) -> _Kind:
    """Adds what `item` says of an axis."""
    length = None if tensor.shape is None else tensor.shape[axis]
    if isinstance(item, slice):
        cut = cast("slice[Any, Any, Any]", item)
        if cut != slice(None):
            stride = 1 if cut.step is None else cut.step
            if not isinstance(stride, int):
                raise TypeError("expected an integer as the stride of a slice")
            end = constant(END) if length is None else length
            first, last = (constant(0), end) if stride > 0 else (constant(-1), constant(-END))
            begin = first if cut.start is None else _index(cut.start)
            plan.slices[axis] = begin, last if cut.stop is None else _index(cut.stop), stride
        return _Kind.KEPT
    if (positions := _as_indices(tensor.builder, item, axis, length)) is not None:
        plan.gathered[axis] = positions
        return _Kind.PLACED
    position = _index(item)
    # `IndexError` for a position that is provably outside of its axis.
    index, size = position.constant_value, None if length is None else length.constant_value
    if index is not None and size is not None and not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    plan.slices[axis] = (position, constant(END) if position.constant_value == -1 else position + 1, 1)
    plan.dropped.append(axis)
    return _Kind.PLACED


def _index(item: IndexLike) -> Dim:
    if isinstance(item, TypedValue) and isinstance(item.type, PrimType):
        return item.dim
    if isinstance(item, Dim):
        return item
    if isinstance(item, SupportsIndex) and not isinstance(item, bool):
        return constant(index(item))
    raise TypeError(f"expected an integer, a dimension, a slice, None, ... or a tensor as index, got {item!r}")


def _as_indices(builder: Emitter, item: Any, axis: int, length: Dim | None) -> TypedValue | None:
    """The tensor of positions that an item of an index is, or `None`; arrays and lists become constants.

    An array of truth values along a dimension of known length is the positions where it is true. `TypeError` for a
    tensor of truth values, `IndexError` for positions outside of the axis.
    """
    if isinstance(item, TypedValue):
        if not isinstance(item.type, TensorType):
            return None
        if item.dtype is not None and is_bool(item.dtype):
            raise TypeError("the number of true elements of a tensor is not known: use op.where, or op.nonzero")
        return item
    array = _as_array(item)
    if array is None:
        return None
    size = None if length is None else length.constant_value
    positions = _where_true(array, axis, size) if array.dtype.kind == "b" else array
    if size is not None and positions.size and not -size <= int(positions.min()) <= int(positions.max()) < size:
        raise IndexError(
            f"indices {positions.min()} to {positions.max()} are out of bounds for axis {axis} with size {size}"
        )
    return TypedValue(builder, constant_op(builder, positions).result)


def _as_array(item: Any) -> NDArray[Any] | None:
    """A list or an array of integers or truth values; a single integer is no array."""
    import numpy as np

    if not isinstance(item, list | np.ndarray):
        return None
    array: NDArray[Any] = np.asarray(cast("Any", item))
    if array.ndim == 0:
        return None
    if array.dtype.kind not in "iub":
        raise TypeError(f"expected places that are integers, or truth values, got {item!r}")
    return array


def _where_true(array: NDArray[Any], axis: int, size: int | None) -> NDArray[Any]:
    if array.ndim != 1 or array.size != size:
        raise IndexError(f"expected a row of {size or 'a known number of'} truth values for axis {axis}")
    return array.nonzero()[0]


def _gather(tensor: TypedValue, indices: Mapping[int, TypedValue], front: int) -> tuple[SSAValue, int]:
    """The elements at tensors of positions along some axes, and the number of dimensions that these have together.

    They stand after the first `front` of the other axes.
    """
    ranks = [each.ndim for each in indices.values()]
    width = max((rank for rank in ranks if rank is not None), default=0)
    (first, *more) = indices
    if not more and (first == front or tensor.ndim is None):
        return tensor.builder.insert(TakeOp(tensor.value, indices[first].value, first)).result, width
    if tensor.ndim is None or None in ranks:
        raise TypeError("several tensors of places need tensors of known rank")
    others = [axis for axis in range(tensor.ndim) if axis not in indices]
    value = tensor.builder.insert(
        IndexTensorOp(_permuted(tensor, tensor.value, [*indices, *others]), [each.value for each in indices.values()])
    )
    kept = [width + index for index in range(len(others))]
    return _permuted(tensor, value.result, [*kept[:front], *range(width), *kept[front:]]), width


def _permuted(tensor: TypedValue, value: SSAValue, axes: list[int]) -> SSAValue:
    """The value with its axes in another order, or itself."""
    return value if axes == sorted(axes) else tensor.builder.insert(PermuteDimsOp(value, axes)).result
