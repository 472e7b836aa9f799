"""Function values of bytecode, recognised when they come back so that calling them needs no Python stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

import tvm_ffi

from vm_dialect.builtins.calls import make_closure
from vm_dialect.program import Code

Runner: TypeAlias = Callable[[Code, Sequence[Any]], Any]
"""Runs a bytecode function from Python."""


class Closure:
    """A bytecode function with its first arguments."""

    __slots__ = ("__weakref__", "_run", "captured", "code")

    def __init__(self, run: Runner, code: Code, captured: tuple[Any, ...]):
        self._run = run
        self.code = code
        self.captured = captured

    def __call__(self, *arguments: Any) -> Any:
        """Calls it from outside the machine; `TypeError` for a wrong number of arguments."""
        self.code.check_arity(len(arguments), len(self.captured))
        return self._run(self.code, (*self.captured, *arguments))


class ClosureTable:
    """The closures of one machine that are alive, by the handle of their function value.

    tvm-ffi keeps the Python object as long as the function value lives, so an entry goes when its handle does.
    """

    def __init__(self, run: Runner):
        self._run = run
        self._alive: WeakValueDictionary[int, Closure] = WeakValueDictionary()

    def make(self, code: Code, captured: tuple[Any, ...] = ()) -> tvm_ffi.Function:
        """A function value."""
        closure = Closure(self._run, code, captured)
        function = tvm_ffi.convert(closure)
        self._alive[function.__chandle__()] = closure
        return function

    def find(self, function: tvm_ffi.Function) -> Closure | None:
        """The closure after a function value; `None` if it is not one of this machine's."""
        return self._alive.get(function.__chandle__())

    def make_closure(self, function: object, *captured: Any) -> tvm_ffi.Function:
        """The builtin `make_closure`: captured values of a closure of this machine are joined."""
        known = self.find(function) if isinstance(function, tvm_ffi.Function) else None
        if known is None:
            return make_closure(cast(Any, function), *captured)
        return self.make(known.code, (*known.captured, *captured))
