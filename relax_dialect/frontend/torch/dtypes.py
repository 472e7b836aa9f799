"""Element types of PyTorch, and tensors as arrays on the same memory."""

from __future__ import annotations

from typing import Any

from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.library import torch
from tir_dialect.dtypes import ElementType, numpy_dtype, parse_dtype

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def is_complex(value: Any) -> bool:
    """Whether a value of PyTorch is a complex number, or a tensor of them."""
    return isinstance(value, complex) or (isinstance(value, torch().Tensor) and value.is_complex())


def element_type(dtype: Any) -> ElementType:
    """The element type that is a `torch.dtype`, of complex numbers that of their parts; `Refusal` if there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return parse_dtype(_PARTS.get(name, name))
    except ValueError:
        raise Refusal(f"elements of type {name} are not supported") from None


def to_array(tensor: Any) -> Any:
    """A tensor as an array on its memory; it is copied if it is not on the CPU, or not in order.

    Complex numbers have their two parts as last dimension.
    """
    dtype = numpy_dtype(element_type(tensor.dtype))
    if tensor.layout is not torch().strided:
        raise Refusal(f"tensors of layout {str(tensor.layout).removeprefix('torch.')} are not supported")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    plain = torch().view_as_real(plain) if plain.is_complex() else plain
    if dtype.type.__module__ == "ml_dtypes":  # NumPy has no such dtype of its own
        return plain.view(torch().int16 if dtype.itemsize == 2 else torch().uint8).numpy().view(dtype)
    return plain.numpy()
