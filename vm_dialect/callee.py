"""What callers are told of a function of an executable, their arguments by name, and function values of bytecode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

import tvm_ffi

from vm_dialect import messages
from vm_dialect.arguments import Arguments, Signature, by_name
from vm_dialect.builtins.calls import make_closure
from vm_dialect.executable.model import FunctionInfo, SignatureTypes
from vm_dialect.program import Code


class Callee:
    """A function that is called from Python: its names and types."""

    __name__: str
    parameters: tuple[str, ...]
    result_names: tuple[str, ...]
    """What the model calls the result, or each field of it; empty if it does not say."""
    types: SignatureTypes
    arguments: Arguments
    """How what is given becomes what the function takes."""

    def describe(self, info: FunctionInfo, signature: Signature | None) -> None:
        """Takes names and types from the function table, and what is known about the arguments."""
        self.__name__ = info.name
        self.parameters = info.parameters
        self.result_names = info.result_names
        self.types = info.types
        self.signature = info.signature
        self.arguments = Arguments(info.name, info.parameters, signature)

    def in_order(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters; a dictionary alone has all of them by name.

        Where there is one parameter, a dictionary without its name is its value. `TypeError` for an unknown or
        repeated name.
        """
        if len(arguments) == 1 and not named and isinstance(arguments[0], dict):
            by_name = cast("dict[str, Any]", arguments[0])
            if len(self.parameters) == 1 and self.parameters[0] not in by_name:
                return tuple(arguments)
            return tuple(in_order(self.__name__, self.parameters, (), by_name))
        return tuple(in_order(self.__name__, self.parameters, arguments, named))

    def by_name(self, result: Any) -> dict[str, Any]:
        """A result of the function by the names of the model: of the tensor, or of each field of the tuple."""
        return by_name(result, self.result_names)

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.signature}>"


def in_order(function: str, parameters: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call in the order of the parameters; `TypeError` for an unknown or repeated name."""
    rest = parameters[len(arguments) :]
    for name in named:
        if name not in rest:
            expected = f"expected one of {', '.join(rest)}" if rest else "all of them have a value"
            raise TypeError(f"{function}: no parameter '{name}' is left, {expected}")
    if missing := [name for name in rest if name not in named]:
        count = messages.render(messages.wrong_arity(function, parameters), len(arguments) + len(named))
        raise TypeError(f"{count}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return [*arguments, *(named[name] for name in rest)]


_OTHER_DTYPE = re.compile(
    r"argument #\d+ \((?P<name>.+?)\): expected dtype (?P<dtype>\w+), got (bool|(u?int|b?float)\d+)"
)


def suggest_conversion(error: TypeError) -> None:
    """Adds a note to an error about the dtype of an argument: nobody converts it unasked."""
    if (match := _OTHER_DTYPE.search(str(error))) is not None:
        error.add_note(f"to convert it, give {match['name']}.astype({match['dtype']!r})")


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
            return make_closure(cast("Any", function), *captured)
        return self.make(known.code, (*known.captured, *captured))
