"""Tensors of places in `x[...]`, which broadcast against each other as in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import SSAValue

from relax_dialect.builder.convert import constant
from relax_dialect.builder.emitter import Emitter
from relax_dialect.builder.expr import Expr
from relax_dialect.ops.advanced_indexing import IndexTensorOp
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_bool

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_places(builder: Emitter, item: Any, axis: int, length: Dim | None) -> Expr | None:
    """The tensor of places that an item of an index is, or `None`; arrays and lists become constants.

    An array of truth values along a dimension of known length is the places where it is true. `TypeError` for a tensor
    of truth values, `IndexError` for places outside of the axis.
    """
    if isinstance(item, Expr):
        if not isinstance(item.type, TensorType):
            return None
        if item.dtype is not None and is_bool(item.dtype):
            raise TypeError("the number of true elements of a tensor is not known: use op.where, or op.nonzero")
        return item
    array = _as_array(item)
    if array is None:
        return None
    size = None if length is None else length.constant_value
    places = _where_true(array, axis, size) if array.dtype.kind == "b" else array
    if size is not None and places.size and not -size <= int(places.min()) <= int(places.max()) < size:
        raise IndexError(f"places {places.min()} to {places.max()} are out of bounds for axis {axis} with size {size}")
    return builder.expr(constant(builder, places).result)


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


def gather(tensor: Expr, places: Mapping[int, Expr], front: int) -> tuple[SSAValue, int]:
    """The elements at tensors of places along some axes, and the number of dimensions that these have together.

    They stand behind the first `front` of the other axes.
    """
    ranks = [each.ndim for each in places.values()]
    width = max((rank for rank in ranks if rank is not None), default=0)
    (first, *more) = places
    if not more and (first == front or tensor.ndim is None):
        return tensor.builder.insert(TakeOp(tensor.value, places[first].value, first)).result, width
    if tensor.ndim is None or None in ranks:
        raise TypeError("several tensors of places need tensors of known rank")
    others = [axis for axis in range(tensor.ndim) if axis not in places]
    value = tensor.builder.insert(
        IndexTensorOp(_permuted(tensor, tensor.value, [*places, *others]), [each.value for each in places.values()])
    )
    kept = [width + index for index in range(len(others))]
    return _permuted(tensor, value.result, [*kept[:front], *range(width), *kept[front:]]), width


def _permuted(tensor: Expr, value: SSAValue, axes: list[int]) -> SSAValue:
    """The value with its axes in another order, or itself."""
    return value if axes == sorted(axes) else tensor.builder.insert(PermuteDimsOp(value, axes)).result
