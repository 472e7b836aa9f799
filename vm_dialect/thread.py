"""One run of bytecode: frames, the position in the code, the loop over the steps, and what observers are told of
calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from vm_dialect import messages
from vm_dialect.builtins.calls import expect_function
from vm_dialect.callee import ClosureTable
from vm_dialect.messages import render
from vm_dialect.program import BranchStep, CallStep, Code, EnterStep, InvokeStep, JumpStep, ReturnStep, Site, Step
from vm_dialect.tensors import kind_of


class Decision(Enum):
    """What an instrument answers before a call."""

    RUN = auto()
    SKIP = auto()
    """The call does not happen; its result is null."""


class Instrument(Protocol):
    """Sees every call of a run, of builtins, kernels, packed functions and bytecode alike.

    While an instrument watches, tail calls take a frame like any other call. An exception of an instrument ends the
    run.
    """

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        """Called with the arguments before a call."""
        ...

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Called with arguments and result when a call that was not skipped has returned."""
        ...


MOST_SLOTS = 1 << 26
"""Registers and constants of all functions that wait for others: half a gigabyte."""


class _Caller(NamedTuple):
    """A function that waits for the result of a call."""

    code: Code
    position: int
    frame: list[Any]
    destination: int
    site: Site
    arguments: Sequence[Any]


class Thread:
    """A run that can be stopped between instructions and resumed."""

    def __init__(
        self,
        code: Code,
        arguments: Sequence[Any],
        closures: ClosureTable,
        max_depth: int,
        instrument: Instrument | None = None,
    ):
        code.check_arity(len(arguments))
        self.code = code
        """The function that is running."""
        self.position = 0
        """The step that comes next, counted within the function."""
        self.frame = code.new_frame(arguments)
        """Registers, then constants."""
        self.done = False
        """Whether the first function has returned."""
        self.result: Any = None
        """What it returned."""
        self.unused = 0
        """What the last `run` has left of its budget."""
        self._callers: list[_Caller] = []
        self._slots = 0
        self._closures = closures
        self._max_depth = max_depth
        self._instrument = instrument

    @property
    def depth(self) -> int:
        """Number of functions that wait for the running one."""
        return len(self._callers)

    def waiting(self) -> list[Site]:
        """The calls that the functions which wait have made, innermost first."""
        return [caller.site for caller in reversed(self._callers)]

    def run(self, budget: int = -1) -> bool:
        """Executes up to `budget` instructions, all of them if it is negative; returns `done`.

        An exception of a function that is called passes through, with a note that says where.
        """
        while budget and not self.done:
            budget = self._run_straight(budget)
        self.unused = budget
        return self.done

    def _run_straight(self, budget: int) -> int:
        """Executes until the function changes or the budget is used up; returns what is left of it."""
        steps, frame, position = self.code.steps, self.frame, self.position
        instrument = self._instrument
        step: Step | None = None
        try:
            while budget:
                budget -= 1
                step = steps[position]
                position += 1
                if type(step) is CallStep:
                    arguments = [frame[slot] for slot in step.arguments]
                    if instrument is None:
                        frame[step.destination] = step.function(*arguments)
                    else:
                        frame[step.destination] = _observed(instrument, step, arguments)
                elif type(step) is JumpStep:
                    position = step.target
                elif type(step) is BranchStep:
                    if not _condition(frame[step.condition]):
                        position = step.target
                else:
                    self.position = position
                    self._transfer(step)
                    return budget
        except Exception as error:
            # Says in a note which instruction an exception comes from.
            if isinstance(step, CallStep | EnterStep | InvokeStep | BranchStep):
                site = step.site
                callee = f" ({site.callee})" if site.callee else ""
                location = f", from {site.location}" if site.location else ""
                error.add_note(f"in function {site.caller}, instruction {site.index}{callee}{location}")
            raise
        self.position = position
        return budget

    def _transfer(self, step: Step) -> None:
        """Leaves the function, or enters another one."""
        match step:
            case ReturnStep(value):
                self._leave(self.frame[value])
            case EnterStep(code, _, slots):
                self._enter(step, code, [self.frame[slot] for slot in slots])
            case InvokeStep(_, slots):
                function, *arguments = [self.frame[slot] for slot in slots]
                expect_function(function, "invoke_closure")
                closure = self._closures.find(function)
                if closure is None:
                    call = CallStep(function, step.destination, step.arguments, step.site)
                    instrument = self._instrument
                    self.frame[step.destination] = (
                        function(*arguments) if instrument is None else _observed(instrument, call, arguments)
                    )
                else:
                    closure.code.check_arity(len(arguments), len(closure.captured))
                    self._enter(step, closure.code, [*closure.captured, *arguments])
            case _:
                raise TypeError(f"{type(step).__name__} is not a transfer")

    def _enter(self, step: EnterStep | InvokeStep, code: Code, arguments: Sequence[Any]) -> None:
        if self._instrument is not None and self._instrument.before(step.site, arguments) is Decision.SKIP:
            self.frame[step.destination] = None
            return
        # An instrument hears of every return, so every call keeps its caller.
        if not step.tail or self._instrument is not None:
            if len(self._callers) >= self._max_depth:
                raise RecursionError(messages.too_deep(code.info.name, self._max_depth))
            self._slots += len(self.frame)
            if self._slots > MOST_SLOTS:
                raise RecursionError(messages.too_many_registers(code.info.name, MOST_SLOTS))
            self._callers.append(_Caller(self.code, self.position, self.frame, step.destination, step.site, arguments))
        self.code, self.position, self.frame = code, 0, code.new_frame(arguments)

    def _leave(self, result: Any) -> None:
        if not self._callers:
            self.done, self.result = True, result
            return
        caller = self._callers.pop()
        self._slots -= len(caller.frame)
        self.code, self.position, self.frame = caller.code, caller.position, caller.frame
        self.frame[caller.destination] = result
        if self._instrument is not None:
            self._instrument.after(caller.site, caller.arguments, result)


def _observed(instrument: Instrument, step: CallStep, arguments: Sequence[Any]) -> Any:
    if instrument.before(step.site, arguments) is Decision.SKIP:
        return None
    result = step.function(*arguments)
    instrument.after(step.site, arguments, result)
    return result


def _condition(value: object) -> bool:
    if isinstance(value, int):
        return value != 0
    raise TypeError(render(messages.wrong_kind("if", "bool"), name=kind_of(value)))
