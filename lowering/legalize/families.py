"""The files with legalisations; importing them fills the tables of `context`."""

from __future__ import annotations

from importlib import import_module

FAMILIES: tuple[str, ...] = (
    "activation",
    "binary",
    "creation",
    "datatype",
    "gather",
    "indexing",
    "joining",
    "linear_algebra",
    "manipulation",
    "normalization",
    "reduction",
    "search",
    "set",
    "sorting",
    "unary",
)
"""Stems of the files, those of the families in `relax_dialect/ops`."""


def load() -> None:
    """Imports all of them; cheap from the second time on."""
    for family in FAMILIES:
        import_module(f"lowering.legalize.{family}")
