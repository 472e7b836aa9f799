"""Element types of PyTorch, and tensors as arrays on the same memory."""

from __future__ import annotations

from typing import Any

from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.library import torch
from tir_dialect.dtypes import ElementType, numpy_dtype, parse_dtype


def element_type(dtype: Any) -> ElementType:
    """The element type that is a `torch.dtype`; `Refusal` if there is none for it."""
    name = str(dtype).removeprefix("torch.")
    try:
        return parse_dtype(name)
    except ValueError:
        raise Refusal(f"elements of type {name} are not supported") from None


def to_array(tensor: Any) -> Any:
    """A tensor as an array on its memory; it is copied if it is not on the CPU, or not in order."""
    dtype = numpy_dtype(element_type(tensor.dtype))
    if tensor.layout is not torch().strided:
        raise Refusal(f"tensors of layout {str(tensor.layout).removeprefix('torch.')} are not supported")
    plain = tensor.detach().cpu().resolve_neg().contiguous()
    if dtype.type.__module__ == "ml_dtypes":  # NumPy has no such dtype of its own
        return plain.view(torch().int16 if dtype.itemsize == 2 else torch().uint8).numpy().view(dtype)
    return plain.numpy()
