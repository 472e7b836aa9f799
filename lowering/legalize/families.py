"""The files with legalisations; importing them fills the tables of `context`."""

from __future__ import annotations

from importlib import import_module

from relax_dialect.families import OPERATORS


def load() -> None:
    """Imports all of them; cheap from the second time on."""
    for family in OPERATORS:
        import_module(f"lowering.legalize.{family}")
