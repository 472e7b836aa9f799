"""The functions that a schedule changes, and the block or function in which a primitive works."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.rewriting.materialize import hoist_sizes

MAIN = "main"


class Functions:
    """The functions by name, and the current one."""

    def __init__(self, root: object):
        """TypeError for anything but a prim_func or a module."""
        if not isinstance(root, PrimFuncOp | ModuleOp):
            raise TypeError(f"schedule: expected a tir.prim_func or a module, got {type(root).__name__}")
        self.root: PrimFuncOp | ModuleOp = root
        found = [root] if isinstance(root, PrimFuncOp) else [op for op in root.ops if isinstance(op, PrimFuncOp)]
        for func in found:
            hoist_sizes(func)
        self.named = {func.sym_name.data: func for func in found}
        self.current = found[0] if len(found) == 1 else self.named.get(MAIN)

    @property
    def worked_on(self) -> PrimFuncOp:
        """The current function; ScheduleError if none of several has been selected."""
        if self.current is None:
            raise ScheduleError("schedule", f"expected a function to be selected by work_on; {self.names}")
        return self.current

    @property
    def are_several(self) -> bool:
        """Whether there are several functions, so that one has to be selected."""
        return len(self.named) > 1

    @property
    def names(self) -> str:
        """The list of functions for error messages."""
        return "there are " + (", ".join(f"@{name}" for name in self.named) or "none")

    def get(self, name: str) -> PrimFuncOp | None:
        """The function with a name; a schedule of a single function ignores the name."""
        return self.root if isinstance(self.root, PrimFuncOp) else self.named.get(name)

    def around(self, ops: Iterable[Operation]) -> PrimFuncOp | None:
        """The function that the first op is in, if there is one."""
        if isinstance(self.root, PrimFuncOp):
            return self.root
        first = next(iter(ops), None)
        return next((func for func in self.named.values() if first is not None and is_inside(first, func)), None)


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
