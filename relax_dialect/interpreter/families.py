"""The files with rules; importing them fills the tables of `frame`."""

from __future__ import annotations

from importlib import import_module

FAMILIES: tuple[str, ...] = (
    "activation",
    "advanced_indexing",
    "attention",
    "binary",
    "binding",
    "call_packed",
    "call_tir",
    "calls",
    "control_flow",
    "convolution",
    "creation",
    "dataflow",
    "datatype",
    "deformable",
    "effects",
    "fused",
    "gather",
    "guard",
    "image",
    "index_maps",
    "indexing",
    "joining",
    "layers",
    "linear_algebra",
    "loops",
    "manipulation",
    "memory",
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
    "shapes",
    "signal",
    "sorting",
    "structure",
    "unary",
    "values",
    "vision",
)
"""Stems of the files, those of the families in `relax_dialect/ops`."""


def load() -> None:
    """Imports all of them; cheap from the second time on."""
    for family in FAMILIES:
        import_module(f"relax_dialect.interpreter.{family}")
