"""`x[...]`: tensors as in NumPy, tuples and shapes by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from relax_dialect.builder.expr import Expr
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp
from relax_dialect.ops.manipulation import ExpandDimsOp, SqueezeOp
from relax_dialect.ops.shapes import ShapeGetOp, TupleGetOp
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, constant

Place: TypeAlias = "int | Dim | Expr"
"""A place along a dimension; an expression is a prim value."""

END = (1 << 63) - 1
"""A place behind every element."""


def get_item(value: Expr, index: Any) -> Expr:
    """`value[index]`; `TypeError` for what cannot be indexed, or not like that."""
    info = value.type
    if isinstance(info, TensorType):
        return _get_elements(value, index)
    if not isinstance(info, TupleType | ShapeType) or not isinstance(index, int):
        raise TypeError(f"expected a tensor, or a tuple or shape and an integer, got {info}")
    position = index + len(value) if index < 0 else index
    if isinstance(info, TupleType):
        return value.builder.expr(value.builder.insert(TupleGetOp(value.value, position)).result)
    return value.builder.expr(value.builder.insert(ShapeGetOp(value.value, position)).result)


@dataclass
class _Plan:
    """What an index means, axis by axis of the tensor."""

    slices: dict[int, tuple[Dim, Dim, int]] = field(default_factory=dict[int, tuple[Dim, Dim, int]])
    """Begin, end and stride along the axes that are cut."""
    dropped: list[int] = field(default_factory=list[int])
    """Axes that are given by one place."""
    gathered: tuple[int, Expr] | None = None
    """The axis that is given by a tensor of places, and those."""
    new: list[int] = field(default_factory=list[int])
    """Axes of the result that are new."""


def _get_elements(tensor: Expr, index: Any) -> Expr:
    items = cast("Sequence[Any]", index) if isinstance(index, tuple) else (index,)
    plan = _plan(tensor, _without_ellipsis(items, tensor.ndim))
    builder, value = tensor.builder, tensor.value
    if plan.slices:
        begins, ends, strides = zip(*plan.slices.values(), strict=True)
        steps = None if set(strides) == {1} else strides
        value = builder.insert(StridedSliceOp(value, tuple(plan.slices), begins, ends, steps)).result
    if plan.dropped:
        value = builder.insert(SqueezeOp(value, plan.dropped)).result
    if plan.gathered is not None:
        axis, places = plan.gathered
        axis -= sum(dropped < axis for dropped in plan.dropped)
        value = builder.insert(TakeOp(value, places.value, axis)).result
    if plan.new:
        value = builder.insert(ExpandDimsOp(value, plan.new)).result
    return builder.expr(value)


def _without_ellipsis(items: Sequence[Any], rank: int | None) -> list[Any]:
    """The items with as many full slices in the place of `...` as there are axes left."""
    places = [index for index, item in enumerate(items) if item is Ellipsis]
    used = len(items) - len(places) - sum(item is None for item in items)
    if len(places) > 1:
        raise IndexError("expected at most one ... in an index")
    if rank is not None and used > rank:
        raise IndexError(f"expected at most {rank} indices, got {used}")
    if not places:
        return list(items)
    if rank is None:
        raise IndexError("... needs a tensor of known rank")
    return [*items[: places[0]], *[slice(None)] * (rank - used), *items[places[0] + 1 :]]


def _plan(tensor: Expr, items: Iterable[Any]) -> _Plan:
    plan, axis, made = _Plan(), 0, 0
    for item in items:
        if item is None:
            plan.new.append(made)
            made += 1
            continue
        made += _plan_axis(plan, tensor, axis, item)
        axis += 1
    return plan


def _plan_axis(plan: _Plan, tensor: Expr, axis: int, item: Any) -> int:
    """Adds what `item` says of an axis; gives the number of dimensions that the result has in its place."""
    if isinstance(item, slice):
        cut = cast("slice[Any, Any, Any]", item)
        if cut != slice(None):
            plan.slices[axis] = _slice(cut, None if tensor.shape is None else tensor.shape[axis])
        return 1
    if isinstance(item, Expr) and isinstance(item.type, TensorType):
        if plan.gathered is not None:
            raise TypeError("expected one tensor of places in an index: use op.gather_nd for several")
        plan.gathered = (axis, item)
        return item.ndim or 0
    place = _place(item)
    plan.slices[axis] = (place, constant(END) if place.constant_value == -1 else place + 1, 1)
    plan.dropped.append(axis)
    return 0


def _slice(item: slice[Any, Any, Any], length: Dim | None) -> tuple[Dim, Dim, int]:
    stride = 1 if item.step is None else item.step
    if not isinstance(stride, int):
        raise TypeError("expected an integer as the stride of a slice")
    end = constant(END) if length is None else length
    first, last = (constant(0), end) if stride > 0 else (constant(-1), constant(-END))
    begin = first if item.start is None else _place(item.start)
    return begin, last if item.stop is None else _place(item.stop), stride


def _place(item: Place) -> Dim:
    if isinstance(item, Expr) and isinstance(item.type, PrimType):
        return item.dim
    if isinstance(item, Dim):
        return item
    if isinstance(item, int) and not isinstance(item, bool | SSAValue):
        return constant(item)
    raise TypeError(f"expected an integer, a dimension, a slice, None, ... or a tensor as index, got {item!r}")
