"""One architecture that is tried: a model, and its inputs by size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Size = tuple[int, ...]


@dataclass(frozen=True)
class Architecture:
    """A model in a small random configuration."""

    name: str
    """With the package in front: `transformers/bert`."""

    make: Callable[[], torch.nn.Module]
    """The model. What it gives is compared leaf by leaf."""

    inputs: Callable[..., Sequence[torch.Tensor]]
    """Its inputs at a size."""

    dynamic: Any
    """`dynamic_shapes` of `torch.export.export`."""

    sizes: tuple[Size, ...]
    """The model is exported at the first, and compared at all."""


class Tensors(torch.nn.Module):
    """A model by the floating-point tensors of its results, without caches; with inputs by name, or in order."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str] = (), fields: Sequence[str] = (), **fixed: Any):
        super().__init__()
        self.model, self.names, self.fields, self.fixed = model, names, fields, fixed

    def forward(self, *inputs: torch.Tensor) -> Any:
        named = dict(zip(self.names, inputs, strict=True)) if self.names else {}
        found = self.model(*(() if self.names else inputs), **named, **self.fixed)
        if self.fields:
            return [getattr(found, field) for field in self.fields]
        if isinstance(found, torch.Tensor):
            return [found]
        leaves = found.values() if isinstance(found, dict) else found
        return [each for each in leaves if isinstance(each, torch.Tensor) and each.is_floating_point()]
