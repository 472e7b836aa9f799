"""The files with legalisations; importing them fills the tables of `context`."""

from __future__ import annotations

from importlib import import_module

FAMILIES: tuple[str, ...] = (
    "activation",
    "advanced_indexing",
    "attention",
    "binary",
    "convolution",
    "creation",
    "datatype",
    "deformable",
    "gather",
    "image",
    "index_maps",
    "indexing",
    "joining",
    "layers",
    "linear_algebra",
    "manipulation",
    "normalization",
    "padding",
    "pooling",
    "quantization",
    "rearranging",
    "recurrent",
    "reduction",
    "resizing",
    "sampling",
    "search",
    "set",
    "signal",
    "sorting",
    "unary",
    "vision",
)
"""Stems of the files, those of the families in `relax_dialect/ops`."""


def load() -> None:
    """Imports all of them; cheap from the second time on."""
    for family in FAMILIES:
        import_module(f"lowering.legalize.{family}")
