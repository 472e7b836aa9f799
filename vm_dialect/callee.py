"""What callers are told of a function of an executable, their arguments by name, and function values of bytecode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

import numpy as np
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

        Where there is one parameter that may be a map, a dictionary without its name is its value. `TypeError` for an
        unknown or repeated name.
        """
        kinds = self.types.parameters
        return tuple(
            in_order(self.__name__, self.parameters, *named_arguments(self.parameters, kinds, arguments, named))
        )

    def by_name(self, result: Any) -> dict[str, Any]:
        """A result of the function by the names of the model: of the tensor, or of each field of the tuple."""
        return by_name(result, self.result_names)

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.signature}>"


def have_names(arguments: Sequence[Any]) -> bool:
    """Whether the arguments of a call without keywords are one dictionary, or another mapping: an archive of NumPy."""
    return len(arguments) == 1 and not isinstance(arguments[0], _DIRECT) and isinstance(arguments[0], Mapping)


_DIRECT = (np.ndarray, tvm_ffi.Tensor)
"""What is known to be no mapping, so that calls do not ask the abstract class, which takes longer."""


def named_arguments(
    parameters: Sequence[str], kinds: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of a call without and with names, of parameters of these kinds: a dictionary alone has names.

    Where there is one parameter that may be a map (an object, or of unknown type), a dictionary without its name is its
    value.
    """
    if named or not have_names(arguments):
        return arguments, named
    by_name = cast("Mapping[str, Any]", arguments[0])
    is_value = len(parameters) == 1 and parameters[0] not in by_name and (not kinds or kinds[0] == "object")
    return (arguments, named) if is_value else ((), by_name)


def in_order(function: str, parameters: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call in the order of the parameters; `TypeError` for an unknown or repeated name."""
    rest = parameters[len(arguments) :]
    for name in named:
        if name not in rest:
            free = [each for each in rest if each not in named]
            raise TypeError(f"{function}: no parameter '{name}' is left, {_those_left(name, parameters, rest, free)}")
    if missing := [name for name in rest if name not in named]:
        count = messages.render(messages.wrong_arity(function, parameters), len(arguments) + len(named))
        raise TypeError(f"{count}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return [*arguments, *(named[name] for name in rest)]


def _those_left(name: object, parameters: Sequence[str], rest: Sequence[str], free: Sequence[str]) -> str:
    """What a name should have been that no parameter has, or one with a value: of `rest`, most likely of `free`."""
    if not rest:
        return "all of them have a value" if parameters else "it has none"
    if len(rest) == 1:
        return f"expected {rest[0]}"
    by_spelling = {each.casefold(): each for each in free}
    close = [] if name in parameters else get_close_matches(str(name).casefold(), by_spelling, n=1)
    return f"expected one of {', '.join(rest)}" + (f"; did you mean {by_spelling[close[0]]}?" if close else "")


_OTHER_DTYPE = re.compile(
    r"argument #\d+ \((?P<name>.+?)\): expected dtype (?P<dtype>\w+), got (bool|(u?int|b?float)\d+)"
)


def suggest_conversion(error: TypeError) -> None:
    """Adds a note to an error about the dtype of an argument: nobody converts it unasked."""
    if (match := _OTHER_DTYPE.search(str(error))) is not None:
        name = match["name"] if match["name"].isidentifier() else "array"
        error.add_note(f"to convert it, give {name}.astype({match['dtype']!r})")


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
