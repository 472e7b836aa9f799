"""Lazy creation of parts of class definitions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tir_dialect.startup.assembly_formats import formats_on_demand
from tir_dialect.startup.dataclass_methods import methods_on_demand


@contextmanager
def definitions_on_demand() -> Generator[None]:
    """A context in which dataclass methods and assembly formats of new classes are made on first use."""
    with methods_on_demand(), formats_on_demand():
        yield
