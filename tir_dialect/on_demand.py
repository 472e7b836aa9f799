"""Parts of class definitions that are made when they are first needed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tir_dialect.assembly_formats import formats_on_demand
from tir_dialect.dataclass_methods import methods_on_demand


@contextmanager
def definitions_on_demand() -> Generator[None]:
    """What is defined meanwhile gets methods of dataclasses and assembly formats when somebody asks for them."""
    with methods_on_demand(), formats_on_demand():
        yield
