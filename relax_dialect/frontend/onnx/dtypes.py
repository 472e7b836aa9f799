"""Element types of ONNX."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
from xdsl.ir import Attribute

from relax_dialect.frontend.onnx.errors import Refusal
from tir_dialect.dtypes import ElementType, from_numpy, numpy_dtype, range_in_i64


@cache
def element_type(elem_type: int) -> ElementType:
    """The dtype with a number of `TensorProto.DataType`; `Refusal` if there is none for it."""
    import numpy as np

    names = onnx.TensorProto.DataType
    if elem_type not in names.values() or elem_type == onnx.TensorProto.UNDEFINED:
        raise Refusal(f"the element type {elem_type} does not exist")
    try:
        return from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type)))
    except (KeyError, TypeError, ValueError):
        raise Refusal(f"elements of type {names.Name(elem_type).lower()} are not supported") from None


def onnx_type(dtype: Attribute) -> int:
    """The number of a dtype in `TensorProto.DataType`."""
    return onnx.helper.np_dtype_to_tensor_dtype(to_numpy(dtype))


def to_numpy(dtype: Attribute) -> Any:
    """NumPy's dtype."""
    return numpy_dtype(dtype)


def integer_limits(dtype: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype below 64 bits."""
    low, high = range_in_i64(dtype) or (0, None)
    if high is None:
        raise Refusal(f"quantised numbers of {dtype} are not supported; the dtype has to have less than 64 bits")
    return low, high
