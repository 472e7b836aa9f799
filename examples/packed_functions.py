"""The packed functions that the examples call; `relax-run --load examples/packed_functions.py` registers them."""

from __future__ import annotations

import numpy as np
import tvm_ffi


def array(tensor: tvm_ffi.Tensor) -> np.ndarray:
    """A view of the tensor's elements."""
    return np.from_dlpack(tensor)


def custom_inplace_update(tensor: tvm_ffi.Tensor) -> None:
    """Doubles every element, in place."""
    values = array(tensor)
    np.multiply(values, 2, out=values)


def custom_print(tensor: tvm_ffi.Tensor) -> None:
    """Prints what the tensor is; its elements would drown the rest."""
    print(f"custom_print: a tensor of shape {tuple(tensor.shape)} and dtype {tensor.dtype}")


def custom_add(lhs: tvm_ffi.Tensor, rhs: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """The sum, as a new tensor."""
    return tvm_ffi.from_dlpack(array(lhs) + array(rhs))


def custom_tile(source: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Writes `source` twice, side by side, into `out` (destination-passing style)."""
    array(out)[...] = np.tile(array(source), (1, 2))


def myshape_func(shape: tvm_ffi.Shape) -> tvm_ffi.Shape:
    """An opaque shape function: half of the only dimension, rounded up."""
    return tvm_ffi.Shape(((shape[0] + 1) // 2,))


def custom_func(source: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Writes the leading elements of `source` into `out`."""
    array(out)[...] = array(source)[: out.shape[0]]


FUNCTIONS = {
    function.__name__: function
    for function in (custom_inplace_update, custom_print, custom_add, custom_tile, myshape_func, custom_func)
}


def register() -> None:
    """Puts the functions into the tvm-ffi registry under their names."""
    for name, function in FUNCTIONS.items():
        tvm_ffi.register_global_func(name, function, override=True)


register()
