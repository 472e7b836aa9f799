"""The state of a schedule, and how primitives are called: arguments resolved, handles checked, calls recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from random import Random
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, DimSyntaxError, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.schedule.edits import blocks_in, erase_dead_ops, hoist_sizes, scope_of
from tir_dialect.schedule.handles import ROOT, Block, HandleTable, Loop, ScheduleError, handles_in, is_inside
from tir_dialect.schedule.trace import NAMED, QUERIES, Recording, Trace, too_great, wrong_arguments
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import size_of

if TYPE_CHECKING:
    from tir_dialect.schedule.validation import Validator

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


_F = TypeVar("_F", bound=Callable[..., Any])

PRIMITIVES: dict[str, Callable[..., Any]] = {}
"""All primitives by name."""

FUNCTION = "func_name"
SPELLING = frozenset({"preserve_unit_iters", FUNCTION})
"""Arguments of all primitives: `preserve_unit_iters` has no effect here, `func_name` selects a function."""

WORK_ON = "work_on"

IN_ORDER = frozenset(
    (
        *("split", "fuse", "add_unit_loop", "loop_partition", "reorder_block_iter_var", "unroll"),
        *("annotate", "unannotate", "annotate_buffer_access", "set_scope", "storage_align", "unsafe_set_dtype"),
    )
)
"""The primitives that leave all accesses of memory as they are, in their order."""

OF_ROOT = frozenset({"get_child_blocks", "get_output_blocks"})
"""The queries that accept the root block."""


class ScheduleState(ScheduleBase):
    """A function under transformation. Primitives first check their legality and then change it in place."""

    def __init__(
        self, root: PrimFuncOp | ModuleOp, *, seed: int = 0, validate: bool | Sequence[Mapping[str, int]] = False
    ):
        """`root` is a function, or a module whose functions `work_on` or handles select; `seed` is for sampling.

        With `validate`, each step is first tried on a copy, which the interpreter runs at small sizes, or those given,
        values of the symbols: a step after which another result is found raises ScheduleError.
        """
        super().__init__(root)
        self.random = Random(seed)
        """The random number generator of the sampling primitives."""
        self.trace = Trace()
        self._recording = Recording()
        self._validator = _validator(validate)

    def copy(self) -> Self:
        """A schedule of a copy of the function in its current state, with a copy of the trace.

        The handles of this schedule are valid there, too, for the copies of their loops and blocks.
        """
        root = self.functions.root.clone()
        # a schedule moves sizes to the start of functions, which adds ops
        copies = dict(zip(self.functions.root.walk(), root.walk(), strict=True))
        other = type(self)(root)
        other.random.setstate(self.random.getstate())
        if (current := self.functions.current) is not None:
            other.functions.current = cast("PrimFuncOp", copies[current])
        other._handles = self._handles.copy(copies)
        other.trace = self.trace.copy(other._handles.copies)
        other._validator = self._validator
        return other

    def record_as(self, given: object, meant: object) -> None:
        """Records an argument of the running primitive as `meant` in the trace."""
        self._recording.record_as(given, meant)

    def record_with(self, **decided: object) -> None:
        """Records additional arguments, such as sampled decisions, of the running primitive in the trace."""
        self._recording.record_with(decided)

    def run(self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a primitive, and records the call in the trace unless it was made by another primitive."""
        name, current = primitive.__name__, self.functions.current
        if not self._running:
            self._recording = Recording()
            if name not in QUERIES:
                self._try_on_copy(primitive, args, kwargs)
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
            # Appends a call to the trace, with what `record_as` and `record_with` say about it.
            code = primitive.__code__
            names = code.co_varnames[1 : code.co_argcount]
            given, named = self._recording.arguments(names, args, {**kwargs, **selection})
            self.trace.record(primitive.__name__, given, named, result)
        return result

    def _try_on_copy(self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """ScheduleError if the step makes a function compute something else, where the schedule is validated."""
        if self._validator is not None:
            trial = self.copy()
            trial._validator = None
            trial.run(primitive, args, kwargs)
            self._validator.check(primitive.__name__, self.functions.named, trial.functions.named)

    def _resolved(
        self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with handles for names of blocks; all handles are valid, and their scope is entered."""
        given, named = self._find_block(primitive, args, kwargs)
        if primitive.__name__ in OF_ROOT:
            given = tuple(None if self._handles.is_root(value) else value for value in given)
            named = {key: None if self._handles.is_root(value) else value for key, value in named.items()}
        handles = handles_in((*given, *named.values()))
        for handle in handles:
            self.check(handle)
        # Makes the block or function around the first handle the scope; all handles have to be in one scope.
        scopes = [scope_of(handle.op) for handle in handles]
        scope = scopes[0] if scopes else self.functions.current or self.functions.root
        for handle, other in zip(handles, scopes, strict=True):
            if other is not scope:
                raise self.error(f'"{handle.name}" and "{handles[0].name}" are not in the same block')
        self._scope.enter(scope)
        if handles and primitive.__name__ not in QUERIES | IN_ORDER:
            # ScheduleError for a function in which different buffers may be the same memory.
            func = self.func
            if func.may_alias is not None:
                raise self.error(
                    f"the parameters of @{func.sym_name.data} may overlap, so accesses have to stay in their order"
                )
            if any(isinstance(op, AddressOfOp) for op in func.walk()):
                raise self.error(
                    f"@{func.sym_name.data} takes the address of an element, so accesses have to stay in their order"
                )
        return given, named

    def _result(self, primitive: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a primitive; what arguments of wrong types, or text that is no size, raise is ScheduleError."""
        if (number := too_great((*args, *kwargs.values()))) is not None:
            raise self.error(f"expected numbers between -2**62 and 2**62, got {number}")
        try:
            return primitive(self, *args, **kwargs)
        except DimSyntaxError as error:
            raise self.error(str(error)) from None
        except (AttributeError, TypeError, LookupError, ValueError) as error:
            if isinstance(error, ScheduleError) or (wrong := wrong_arguments(primitive, args, kwargs)) is None:
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
        root = self._handles.function_of(handles[0]) if handles else None
        return self.functions.around(handle.op for handle in handles) if root is None else root

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

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the primitive `name` with arguments from a file; ScheduleError if these are not its arguments."""
        if name not in PRIMITIVES:
            raise ScheduleError("replay", f'there is no primitive "{name}"')
        own = {key: value for key, value in kwargs.items() if key not in SPELLING}
        if (wrong := wrong_arguments(PRIMITIVES[name], args, own)) is not None:
            raise ScheduleError(name, wrong)
        return self.run(PRIMITIVES[name], args, kwargs)


def _validator(validate: object) -> Validator | None:
    if validate is False:
        return None
    from tir_dialect.schedule.validation import Validator  # with the interpreter, only where it is asked for

    if validate is True:
        return Validator()
    given = cast("Sequence[object]", validate) if isinstance(validate, Sequence) else (None,)
    if not all(isinstance(each, Mapping) for each in given):
        raise TypeError(f"validate: expected True, or a list of values of the symbols by name, got {validate!r}")
    return Validator(cast("Sequence[Mapping[str, int]]", validate))


def primitive(function: _F) -> _F:
    """Decorator of a primitive: resolves and checks handles, and records the call in the trace."""
    PRIMITIVES[function.__name__] = function

    @wraps(function)
    def wrapper(self: ScheduleState, *args: Any, **kwargs: Any) -> Any:
        return self.run(function, args, kwargs)

    return cast("_F", wrapper)


def query(function: _F) -> _F:
    """Decorator of a primitive that only finds loops or blocks; it is recorded for the handles that it returns."""
    QUERIES.add(function.__name__)
    return primitive(function)
