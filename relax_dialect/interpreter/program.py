"""A program that is interpreted: what all of its calls share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relax_dialect.interpreter.runtime_values import Value, from_python, packed
from relax_dialect.ops.callees import captured_parameters
from vm_dialect import messages
from vm_dialect.errors import StepLimitError, register_error_types
from vm_dialect.numpy_library import register_functions_of_tvm

register_error_types()

T = TypeVar("T")

MAX_DEPTH = 2_000
"""Calls inside each other before a `RecursionError`."""

MAX_ENTRIES = 50
"""How often packed functions may call back into the interpreter inside each other: these calls are on the C stack."""

FRAMES_OF_A_CALL = 20
"""Frames of Python that a call may take, for its branches and loops too. They are on the heap, not on the C stack."""


class Worker(Protocol):
    """What a rank knows of the other ranks that run the same program."""

    @property
    def rank(self) -> int:
        """Its number, from 0."""
        ...

    @property
    def mesh(self) -> Mapping[str, int]:
        """How many workers there are along each axis."""
        ...

    @property
    def begun(self) -> dict[str, str]:
        """The exchanges of groups that have begun and not ended."""
        ...

    def exchange(self, group: str, what: str, value: Value) -> Sequence[Value]:
        """The values of all workers of a group, in its order; `what` is the same for all of them, or an error."""
        ...

    def send(self, group: str, to: int, tag: int, what: str, value: Value) -> None:
        """Gives a value to another worker of a group, which need not wait for it yet."""
        ...

    def receive(self, group: str, source: int, tag: int, what: str) -> Value:
        """The next value that another worker of a group sends with a tag; `what` is as the sender says, or an error."""
        ...


class Program:
    """The module, what is given to it from outside, what is known about its ops, and how deep its calls are.

    The module must not be changed while a program of it is in use.
    """

    def __init__(
        self,
        module: ModuleOp,
        packed_functions: Mapping[str, Callable[..., Any]] | None = None,
        weights: Mapping[str, Any] | None = None,
        worker: Worker | None = None,
        max_steps: int | None = None,
    ):
        """Packed functions come from `packed_functions`, then from the tvm-ffi registry; `weights` are the constants
        that are kept outside of the module, by name; `worker` is the rank that this is, if there are several;
        `max_steps` is how many calls and iterations of loops there may be in all, if that is limited.
        """
        self.module = module
        self.worker = worker
        self._packed = packed_functions or {}
        self._weights = weights or {}
        self._facts: dict[tuple[Operation, str], Any] = {}
        self._depth = 0
        self._entries = 0
        self._steps, self._max_steps = 0, max_steps

    @cached_property
    def captured(self) -> dict[str, int]:
        """How many arguments the closures of a private function give; errors do not count these."""
        return captured_parameters(self.module)

    def packed_function(self, name: str) -> Callable[..., Value]:
        """A packed function on values of the interpreter; `ValueError` if it is not registered."""
        register_functions_of_tvm()
        found = self._packed.get(name) or tvm_ffi.get_global_func(name, allow_missing=True)
        if found is None:
            raise ValueError(messages.unknown_packed(name))
        return packed(found)

    def weight(self, name: str) -> Value:
        """A constant that is kept outside; `KeyError` if it was not given."""
        if name not in self._weights:
            raise KeyError(f"the elements of weight {name} were not given to the interpreter")
        return from_python(self._weights[name])

    def remember(self, op: Operation, make: Callable[[], T], what: str = "") -> T:
        """A fact about an op that holds for every time that it is run; `make` is called the first time."""
        key = (op, what)
        if key not in self._facts:
            self._facts[key] = make()
        return cast("T", self._facts[key])

    def step(self, function: str) -> None:
        """A call or an iteration begins; `StepLimitError` after the last one that may."""
        self._steps += 1
        if self._max_steps is not None and self._steps > self._max_steps:
            raise StepLimitError(messages.too_many_iterations(function, self._max_steps))

    # Depth

    def push(self, function: str) -> None:
        """A call begins; `RecursionError` if there are too many inside each other."""
        self.step(function)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RecursionError(too_deep(function, MAX_DEPTH))

    def pop(self) -> None:
        """A call has ended."""
        self._depth -= 1

    @contextmanager
    def entered(self) -> Generator[None]:
        """Python has enough frames for the calls that begin inside; depth is as before afterwards, also on errors."""
        if self._entries >= MAX_ENTRIES:
            raise RecursionError(too_deep("packed functions", MAX_ENTRIES))
        depth, limit = self._depth, sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, FRAMES_OF_A_CALL * MAX_DEPTH))
        self._entries += 1
        try:
            yield
        finally:
            self._entries -= 1
            self._depth = depth
            sys.setrecursionlimit(limit)


def too_deep(function: str, limit: int) -> str:
    """What the error of a recursion without end says."""
    return f"{function}: more than {limit} calls inside each other: turn the recursion into a loop or a tail call"
