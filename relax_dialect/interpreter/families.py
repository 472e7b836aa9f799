"""The files with rules; importing them fills the tables of `frame`."""

from __future__ import annotations

from importlib import import_module

from relax_dialect.families import FAMILIES


def load() -> None:
    """Imports all of them; cheap from the second time on."""
    for family in FAMILIES:
        import_module(f"relax_dialect.interpreter.{family}")
