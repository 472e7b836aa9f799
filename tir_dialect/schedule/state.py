"""The state of a schedule, and how primitives are called: arguments resolved, handles checked, calls recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from random import Random
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp

from tir_dialect.dims import DimSyntaxError
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.schedule.arguments import NAMED, too_great, wrong_arguments
from tir_dialect.schedule.base import ScheduleBase
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import handles_in
from tir_dialect.schedule.instruction import Recording
from tir_dialect.schedule.rewriting.edits import erase_dead_ops
from tir_dialect.schedule.trace import QUERIES, Trace

if TYPE_CHECKING:
    from tir_dialect.schedule.validation import Validator

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
            other.functions.current = cast(PrimFuncOp, copies[current])
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
            self._record(primitive, args, kwargs, selection, result)
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
        self._enter(handles)
        if handles and primitive.__name__ not in QUERIES | IN_ORDER:
            self._check_known_memory()
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
        code = primitive.__code__
        names = code.co_varnames[1 : code.co_argcount]
        given, named = self._recording.arguments(names, args, {**kwargs, **selection})
        self.trace.record(primitive.__name__, given, named, result)

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

    def _check_known_memory(self) -> None:
        """ScheduleError for a function in which different buffers may be the same memory."""
        func = self.func
        if func.may_alias is not None:
            raise self.error(
                f"the parameters of @{func.sym_name.data} may overlap, so accesses have to stay in their order"
            )
        if any(isinstance(op, AddressOfOp) for op in func.walk()):
            raise self.error(
                f"@{func.sym_name.data} takes the address of an element, so accesses have to stay in their order"
            )

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

    return cast(_F, wrapper)


def query(function: _F) -> _F:
    """Decorator of a primitive that only finds loops or blocks; it is recorded for the handles that it returns."""
    QUERIES.add(function.__name__)
    return primitive(function)
