"""The block or function in which a primitive works, and its index space."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim


class Scope:
    """A block or function whose index space is made when it is asked for, anew after each edit."""

    def __init__(self, op: Operation):
        self._op = op
        self._space: IndexSpace | None = None

    def enter(self, op: Operation) -> None:
        """Makes another block or function the scope."""
        if op is not self._op:
            self._op = op
            self.changed()

    @property
    def space(self) -> IndexSpace:
        """The index space; iterators of the blocks in it stand for their bindings."""
        if self._space is None:
            self._space = IndexSpace(self._op)
        return self._space

    def changed(self) -> None:
        """Invalidates the index space after an edit; loops get new symbols."""
        self._space = None

    def carry(self, dims: Sequence[Dim]) -> list[Dim]:
        """Invalidates the index space after an edit, and translates dimensions to the new symbols."""
        before = self.space
        self.changed()
        names = {name for dim in dims for name in dim.symbols if name in before.variables}
        symbols = {name: self.space.variable(before.variables[name].value).dim for name in names}
        return [dim.substitute(symbols) for dim in dims]
