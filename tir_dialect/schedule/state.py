"""The state of a schedule: the functions, the handles of their loops and blocks, and the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from random import Random
from typing import Any, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, DimSyntaxError, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.arguments import NAMED, wrong_arguments
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.functions import Functions
from tir_dialect.schedule.handles import Block, Loop, handles_in, is_inside
from tir_dialect.schedule.rewriting.edits import blocks_in, erase_dead_ops, scope_of
from tir_dialect.schedule.trace import QUERIES, Trace
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import size_of

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")

PRIMITIVES: dict[str, Callable[..., Any]] = {}
"""All primitives by name."""

FUNCTION = "func_name"
SPELLING = frozenset({"preserve_unit_iters", FUNCTION})
"""Arguments of all primitives: `preserve_unit_iters` has no effect here, `func_name` selects a function."""

WORK_ON = "work_on"

ROOT = "root"
"""TVM's name of the block around a function, for which the function itself stands here."""
OF_ROOT = frozenset({"get_child_blocks", "get_output_blocks"})
"""The queries that accept the root block."""


class ScheduleState:
    """A function under transformation. Primitives first check their legality and then change it in place."""

    def __init__(self, root: PrimFuncOp | ModuleOp, *, seed: int = 0):
        """`root` is a function, or a module whose functions `work_on` or handles select; `seed` is for sampling."""
        self.functions = Functions(root)
        self.random = Random(seed)
        """The random number generator of the sampling primitives."""
        self.trace = Trace()
        self._handles: dict[Operation, Loop | Block] = {}
        self._running: list[str] = []
        self._scope: Operation = self.functions.current or root
        self._space: IndexSpace | None = None
        self._meant: dict[int, object] = {}
        self._decided: dict[str, object] = {}
        self._twins: dict[Loop | Block, Loop | Block] = {}
        self._forgotten: set[Loop | Block] = set()
        self._roots: dict[Loop | Block, PrimFuncOp] = {}

    def copy(self) -> Self:
        """A schedule of a copy of the function in its current state, with a copy of the trace.

        The handles of this schedule are valid there, too, for the copies of their loops and blocks.
        """
        root = self.functions.root.clone()
        twin = type(self)(root)
        twin.random.setstate(self.random.getstate())
        copies = dict(zip(self.functions.root.walk(), root.walk(), strict=True))
        if (current := self.functions.current) is not None:
            twin.functions.current = cast(PrimFuncOp, copies[current])
        for op, handle in self._handles.items():
            if op in copies:
                twin._twins[handle] = twin._handles[copies[op]] = type(handle)(cast(Any, copies[op]))
        for handle, func in self._roots.items():
            twin._twins[handle] = twin._root(cast(PrimFuncOp, copies[func]))
        for handle, own in self._twins.items():
            twin._twins[handle] = twin._twins.get(own, own)
        twin.trace = self.trace.copy(twin._twins)
        return twin

    @property
    def func(self) -> PrimFuncOp:
        """The current function."""
        return self.functions.worked_on

    @property
    def space(self) -> IndexSpace:
        """The index space of the block or function that the primitive works in; call `changed` after an edit.

        Iterators of the blocks in it stand for their bindings.
        """
        if self._space is None:
            self._space = IndexSpace(self._scope)
        return self._space

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
        self._space = None

    def carry(self, dims: Sequence[Dim]) -> list[Dim]:
        """Invalidates the index space after an edit, and translates dimensions to the new symbols."""
        before = self.space
        self._space = after = IndexSpace(self._scope)
        names = {name for dim in dims for name in dim.symbols if name in before.variables}
        symbols = {name: after.variable(before.variables[name].value).dim for name in names}
        return [dim.substitute(symbols) for dim in dims]

    def loop(self, op: ForOp) -> Loop:
        """The handle of a loop."""
        found = self._handles.setdefault(op, Loop(op))
        return cast(Loop, found)

    def block(self, op: BlockOp) -> Block:
        """The handle of a block."""
        found = self._handles.setdefault(op, Block(op))
        return cast(Block, found)

    def replaced(self, block: Block, op: BlockOp) -> None:
        """Redirects a handle to another op."""
        del self._handles[block.op]
        block.op = op
        self._handles[op] = block

    def block_named(self, name: str) -> Block:
        """The first block of that name; ScheduleError, which lists the blocks, if there is none.

        "root" is the function itself, unless a block has that name.
        """
        blocks = blocks_in(self.func)
        for op in blocks:
            if op.block_name.data == name:
                return self.block(op)
        if name == ROOT:
            return self._root(self.func)
        names = ", ".join(f'"{op.block_name.data}"' for op in blocks) or "none"
        raise self.error(f'expected the name of a block, got "{name}"; there are {names}')

    def _root(self, func: PrimFuncOp) -> Block:
        """The handle of a function as TVM's root block; its op is a dummy in no function."""
        found = next((handle for handle, root in self._roots.items() if root is func), None)
        if found is None:
            self._roots[found := Block(BlockOp(ROOT))] = func
        return cast(Block, found)

    def forget(self, handle: Loop | Block) -> None:
        """Invalidates a handle."""
        self._forgotten.add(handle)
        if self._handles.get(handle.op) is handle:
            del self._handles[handle.op]

    def _is_root(self, value: object) -> bool:
        return isinstance(value, Block) and value in self._roots

    def record_as(self, given: object, meant: object) -> None:
        """Records an argument of the running primitive as `meant` in the trace."""
        self._meant[id(given)] = meant

    def record_with(self, **decided: object) -> None:
        """Records additional arguments, such as sampled decisions, of the running primitive in the trace."""
        self._decided = decided

    def error(self, message: str) -> ScheduleError:
        """The ScheduleError of the running primitive."""
        return ScheduleError(self._running[0] if self._running else "schedule", message)

    def as_refusal(self, action: Callable[[], _R]) -> _R:
        """The result of an action on another schedule; its ScheduleError becomes one of the primitive running here."""
        try:
            return action()
        except ScheduleError as error:
            raise self.error(str(error).partition(": ")[2]) from None

    def check(self, handle: Loop | Block) -> None:
        """ScheduleError for a handle that was removed, or whose loop or block is no longer in the function."""
        if handle in self._forgotten:
            raise self.error(f'the handle of "{handle.name}" was removed')
        if handle in self._roots:
            raise self.error('"root" is the function, which no block is around; name one of its blocks or loops')
        if not is_inside(handle.op, self.func):
            kind = "loop" if isinstance(handle, Loop) else "block"
            raise self.error(
                f'{kind} "{handle.name}" is no longer in the function, use the handles of what replaced it'
            )

    def run(self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a primitive, and records the call in the trace unless it was made by another primitive."""
        name, current = primitive.__name__, self.functions.current
        if not self._running:
            self._meant, self._decided = {}, {}
        self._running.append(name)
        try:
            self.functions.current = self._function_of(args, kwargs) or current
            selection = {key: kwargs[key] for key in kwargs if key == FUNCTION and self.functions.are_several}
            args = tuple(self._own(value) for value in args)
            kwargs = {key: self._own(value) for key, value in kwargs.items() if key not in SPELLING}
            result = self._result(primitive, *self._resolved(primitive, args, kwargs))
            if len(self._running) == 1 and name not in QUERIES:
                erase_dead_ops(self.func)
        finally:
            self._running.pop()
            if name != WORK_ON:
                self.functions.current = current
            if name not in QUERIES:
                self.changed()
        if not self._running:
            self._record(primitive, args, kwargs, selection, result)
        return result

    def _resolved(
        self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with handles for names of blocks; all handles are valid, and their scope is entered."""
        given, named = self._find_block(primitive, args, kwargs)
        if primitive.__name__ in OF_ROOT:
            given = tuple(None if self._is_root(value) else value for value in given)
            named = {key: None if self._is_root(value) else value for key, value in named.items()}
        handles = handles_in((*given, *named.values()))
        for handle in handles:
            self.check(handle)
        self._enter(handles)
        return given, named

    def _record(
        self,
        primitive: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        selection: dict[str, Any],
        result: Any,
    ) -> None:
        """Appends a call to the trace, with what `record_as` and `record_with` say about it."""
        meant, decided = self._meant, self._decided
        names = primitive.__code__.co_varnames[1 : 1 + len(args)]
        pairs = zip(args, names, strict=False) if decided else ((arg, "") for arg in args)
        given = [meant.get(id(arg), arg) for arg, parameter in pairs if parameter not in decided]
        named = {key: meant.get(id(arg), arg) for key, arg in kwargs.items()}
        self.trace.record(primitive.__name__, given, named | selection | decided, result)

    def _result(self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a primitive; exceptions caused by arguments of wrong types become ScheduleErrors."""
        try:
            return primitive(self, *args, **kwargs)
        except (AttributeError, TypeError, LookupError):
            if (wrong := wrong_arguments(primitive, args, kwargs)) is None:
                raise
            raise self.error(wrong) from None

    def _function_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PrimFuncOp | None:
        """The function selected by the argument `func_name` or the first handle; `None` without either."""
        name = kwargs.get(FUNCTION)
        if name is not None:
            if (found := self.functions.get(str(name))) is None:
                raise self.error(f"expected the name of a function, got @{name}; {self.functions.names}")
            return found
        handles = handles_in(tuple(self._own(value) for value in (*args, *kwargs.values())))
        if handles and handles[0] in self._roots:
            return self._roots[handles[0]]
        return self.functions.around(handle.op for handle in handles)

    def own_handle(self, handle: Loop | Block) -> Loop | Block:
        """What a handle of the schedule that this one was copied from stands for here; any other as it is."""
        return self._twins.get(handle, handle)

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

    def _find_block(
        self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with a block that is given by name replaced by its handle."""
        for key in NAMED:
            if isinstance(name := kwargs.get(key), str):
                return args, {**kwargs, key: self.block_named(name)}
        parameters = primitive.__code__.co_varnames[1 : primitive.__code__.co_argcount]
        if args and isinstance(args[0], str) and parameters and parameters[0] in NAMED:
            return (self.block_named(args[0]), *args[1:]), kwargs
        return args, kwargs

    def _enter(self, handles: Sequence[Loop | Block]) -> None:
        """Makes the block or function around the first handle the scope; all handles have to be in one scope."""
        scopes = [scope_of(handle.op) for handle in handles]
        scope = scopes[0] if scopes else self.functions.current or self.functions.root
        for handle, other in zip(handles, scopes, strict=True):
            if other is not scope:
                raise self.error(f'"{handle.name}" and "{handles[0].name}" are not in the same block')
        if scope is not self._scope:
            self._scope = scope
            self.changed()

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the primitive `name` with arguments from a file; ScheduleError if these are not its arguments."""
        if name not in PRIMITIVES:
            raise ScheduleError("replay", f'there is no primitive "{name}"')
        own = {key: value for key, value in kwargs.items() if key not in SPELLING}
        if (wrong := wrong_arguments(PRIMITIVES[name], args, own)) is not None:
            raise ScheduleError(name, wrong)
        try:
            return self.run(PRIMITIVES[name], args, kwargs)
        except DimSyntaxError as error:
            raise ScheduleError(name, str(error)) from None


def primitive(function: _F) -> _F:
    """Decorator of a primitive: resolves and checks handles, and records the call in the trace."""
    PRIMITIVES[function.__name__] = function

    @wraps(function)
    def wrapper(self: ScheduleState, *args: Any, **kwargs: Any) -> Any:
        return self.run(function, args, kwargs)

    return cast(_F, wrapper)


def query(function: _F) -> _F:
    """Decorator of a primitive that only finds loops or blocks; it is recorded for the handles that it returns."""
    QUERIES.add(function.__name__)
    return primitive(function)
