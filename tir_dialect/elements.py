"""Conversion between constant tensors and NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr
from xdsl.dialects.builtin import TensorType as ElementsType

from tir_dialect.dtypes import from_numpy, numpy_dtype
from tir_dialect.weights import Weight, WeightAttr

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_IN_TEXT = 1024
"""Tensors of more elements are weights: they do not belong into text."""

TensorAttr: TypeAlias = DenseIntOrFPElementsAttr | WeightAttr
"""What a constant tensor is made of."""


def dense_array(elements: DenseIntOrFPElementsAttr) -> NDArray[Any]:
    """The elements of a dense attribute as a new array; splats are expanded."""
    import numpy as np

    kind = elements.get_element_type()
    raw = np.float64 if isinstance(kind, AnyFloat) else None
    values = np.array(elements.get_values(), raw).astype(numpy_dtype(kind))
    shape = elements.get_shape()
    return np.full(shape, values.reshape(-1)[0]) if values.size == 1 else values.reshape(shape)


def elements_of(value: TensorAttr) -> NDArray[Any] | None:
    """The elements of a constant, read-only; `None` for a weight that has only a name."""
    return value.data.array if isinstance(value, WeightAttr) else dense_array(value)


def tensor_attr(array: NDArray[Any], name: str | None = None) -> TensorAttr:
    """A constant tensor with the elements of `array`, which must not be changed any more.

    A tensor with a name, or of more than `MOST_IN_TEXT` elements, becomes a weight; `TypeError` for a dtype that there
    is not.
    """
    kind = from_numpy(array.dtype)
    if name is not None:
        return WeightAttr(name, array)
    if array.size > MOST_IN_TEXT:
        return WeightAttr(Weight.of_content(array))
    values = array.reshape(-1).tolist()
    if isinstance(kind, AnyFloat):
        return DenseIntOrFPElementsAttr.from_list(ElementsType(kind, array.shape), values)
    return DenseIntOrFPElementsAttr.from_list(ElementsType(kind, array.shape), values)
