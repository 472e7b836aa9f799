"""Values of the virtual machine: what they are called in errors, and how Python's become tvm-ffi's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect.tensors import array_element, from_dlpack, from_numpy

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (tvm_ffi.dtype, "dtype"),
    (str, "string"),
    (bytes, "bytes"),
    (tvm_ffi.Tensor, "tensor"),
    (tvm_ffi.Shape, "shape"),
    (tvm_ffi.Function, "function"),
    (tvm_ffi.Array, "tuple"),
    (tvm_ffi.Map, "map"),
    (tvm_ffi.Module, "module"),
    (tvm_ffi.Device, "device"),
)


def kind_of(value: object) -> str:
    """The name of a value's kind, as errors print it: those of `vm_dialect.messages.KINDS`."""
    if value is None:
        return "null"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:  # tvm-ffi passes it as an object of Python
        return "object"
    return next((name for python_type, name in _KINDS if isinstance(value, python_type)), "object")


_PLAIN: tuple[type, ...] = (
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
    tvm_ffi.Tensor,
    tvm_ffi.Shape,
    tvm_ffi.Function,
    tvm_ffi.Array,
)


def to_value(value: Any) -> Any:
    """A value of the virtual machine from one of Python's.

    Tensors of NumPy, torch and others that speak DLPack keep their memory; a read-only NumPy array is copied.
    Sequences become tuples, mappings maps, callables functions. `TypeError` for anything else.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        return from_numpy(cast("np.ndarray[Any, Any]", value))
    if isinstance(value, np.generic):
        return _scalar(cast("np.generic[Any]", value))
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return tvm_ffi.Map({to_value(key): to_value(item) for key, item in items})
    if isinstance(value, Sequence):
        return tvm_ffi.Array([to_value(item) for item in cast("Sequence[object]", value)])
    if isinstance(value, tvm_ffi.Object | tvm_ffi.Device) or callable(value):
        return tvm_ffi.convert(value)
    raise TypeError(f"a {type(value).__name__} is not a value of the virtual machine")


def _scalar(value: np.generic) -> bool | int | float:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(cast(Any, value))
    if isinstance(value, np.floating) or ((element := array_element(value.dtype)) is not None and element.is_float):
        return float(cast(Any, value))
    if element is not None:
        return int(cast(Any, value))
    raise TypeError(f"a NumPy scalar of dtype {value.dtype} is not a value of the virtual machine")
