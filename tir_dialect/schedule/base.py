"""What a schedule works on: functions, handles of their loops and blocks, and the index space of what is edited."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import ROOT, Block, HandleTable, Loop, is_inside
from tir_dialect.schedule.scope import Functions, Scope
from tir_dialect.schedule.statements import blocks_in, scope_of
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import size_of

_R = TypeVar("_R")

_NUMBERED = re.compile(r"\b([A-Za-z_]\w*)\$\d+")
"""A symbol that an index space has made for a variable."""


class ScheduleBase:
    """The functions of a schedule and what handles stand for in them, without the calls of primitives."""

    def __init__(self, root: PrimFuncOp | ModuleOp):
        self.functions = Functions(root)
        self._handles = HandleTable()
        self._scope = Scope(self.functions.current or root)
        self._running: list[str] = []

    @property
    def func(self) -> PrimFuncOp:
        """The current function."""
        return self.functions.worked_on

    @property
    def space(self) -> IndexSpace:
        """The index space of the block or function that the primitive works in; call `changed` after an edit.

        Iterators of the blocks in it stand for their bindings.
        """
        return self._scope.space

    def symbol(self, loop: ForOp) -> Dim:
        """The symbol that stands for the variable of a loop."""
        return self.space.variable(loop.induction_var).dim

    def extent(self, loop: ForOp) -> Dim:
        """The extent of a loop; ScheduleError if its bounds are not expressions of sizes and loop variables."""
        variable = self.space.variable(loop.induction_var)
        if variable.lower is None or variable.upper is None:
            hint = loop.induction_var.name_hint
            raise self.error(f'the bounds of loop "{hint}" are not expressions of sizes and loop variables')
        return variable.upper - variable.lower

    def lower(self, loop: ForOp) -> Dim:
        """The first value of a loop variable."""
        return self.space.variable(loop.induction_var).lower or constant(0)

    def changed(self) -> None:
        """Invalidates the index space after an edit; loops get new symbols."""
        self._scope.changed()

    def carry(self, dims: Sequence[Dim]) -> list[Dim]:
        """Invalidates the index space after an edit, and translates dimensions to the new symbols."""
        return self._scope.carry(dims)

    def loop(self, op: ForOp) -> Loop:
        """The handle of a loop."""
        return self._handles.loop(op)

    def block(self, op: BlockOp) -> Block:
        """The handle of a block."""
        return self._handles.block(op)

    def replaced(self, block: Block, op: BlockOp) -> None:
        """Redirects a handle to another op."""
        self._handles.redirect(block, op)

    def block_named(self, name: str) -> Block:
        """The first block of that name; ScheduleError, which lists the blocks, if there is none.

        "root" is the function itself, unless a block has that name.
        """
        blocks = blocks_in(self.func)
        for op in blocks:
            if op.block_name.data == name:
                return self.block(op)
        if name == ROOT:
            return self._handles.root(self.func)
        names = ", ".join(f'"{op.block_name.data}"' for op in blocks) or "none"
        raise self.error(f'expected the name of a block, got "{name}"; there are {names}')

    def forget(self, handle: Loop | Block) -> None:
        """Invalidates a handle."""
        self._handles.remove(handle)

    def error(self, message: str) -> ScheduleError:
        """The ScheduleError of the running primitive; in the message, symbols have the names of their variables."""
        return ScheduleError(self._running[0] if self._running else "schedule", _NUMBERED.sub(r"\1", message))

    def as_refusal(self, action: Callable[[], _R]) -> _R:
        """The result of an action on another schedule; its ScheduleError becomes one of the primitive running here."""
        try:
            return action()
        except ScheduleError as error:
            raise self.error(str(error).partition(": ")[2]) from None

    def check(self, handle: Loop | Block) -> None:
        """ScheduleError for a handle that was removed, or whose loop or block is no longer in the function."""
        if self._handles.is_removed(handle):
            raise self.error(f'the handle of "{handle.name}" was removed')
        if self._handles.is_root(handle):
            raise self.error('"root" is the function, which no block is around; name one of its blocks or loops')
        if not is_inside(handle.op, self.func):
            kind = "loop" if isinstance(handle, Loop) else "block"
            raise self.error(
                f'{kind} "{handle.name}" is no longer in the function, use the handles of what replaced it'
            )

    def own_handle(self, handle: Loop | Block) -> Loop | Block:
        """What a handle of the schedule that this one was copied from stands for here; any other as it is."""
        return self._handles.own(handle)

    def _own(self, value: Any) -> Any:
        """An argument with handles of the schedule that this is a copy of translated, and `te` sizes as dimensions."""
        if isinstance(value, Loop | Block):
            return self.own_handle(value)
        if isinstance(value, Expr):
            return size_of(value)
        if isinstance(value, list | tuple):
            items = cast("list[Any] | tuple[Any, ...]", value)
            return type(items)(map(self._own, items))
        return value

    def _enter(self, handles: Sequence[Loop | Block]) -> None:
        """Makes the block or function around the first handle the scope; all handles have to be in one scope."""
        scopes = [scope_of(handle.op) for handle in handles]
        scope = scopes[0] if scopes else self.functions.current or self.functions.root
        for handle, other in zip(handles, scopes, strict=True):
            if other is not scope:
                raise self.error(f'"{handle.name}" and "{handles[0].name}" are not in the same block')
        self._scope.enter(scope)
