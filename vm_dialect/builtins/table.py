"""The table of the run-time library: functions that bytecode calls as `vm.builtin.<name>`; and the kinds of values that
each takes and gives, as bit masks read from its annotations, for verification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from vm_dialect import messages
from vm_dialect.integers import fits_int64
from vm_dialect.messages import render
from vm_dialect.tensors import kind_of

_NAMES = ("null", "int", "bool", "float", "dtype", "string", "tensor", "shape", "function", "tuple", "object")
BITS = {name: 1 << index for index, name in enumerate(_NAMES)}
"""The bit of each kind; kinds that no builtin takes are objects."""

ANY = (1 << len(_NAMES)) - 1
"""Nothing is known."""

_INT = BITS["int"] | BITS["bool"]
_TEXT = BITS["string"] | BITS["dtype"]


class Accepted(NamedTuple):
    """What a parameter takes."""

    mask: int
    name: str
    """The kind that errors ask for."""


_ANNOTATIONS = {
    "Any": Accepted(ANY, "object"),
    "object": Accepted(ANY, "object"),
    "None": Accepted(BITS["null"], "null"),
    "int": Accepted(_INT, "int"),
    "int | None": Accepted(_INT | BITS["null"], "int"),
    "int | str": Accepted(_INT | BITS["string"], "int"),
    "bool": Accepted(_INT, "bool"),
    "float": Accepted(BITS["float"], "float"),
    "str": Accepted(_TEXT, "string"),
    "str | None": Accepted(_TEXT | BITS["null"], "string"),
    "Sequence[int]": Accepted(BITS["shape"], "shape"),
    "tvm_ffi.Shape": Accepted(BITS["shape"], "shape"),
    "tvm_ffi.Tensor": Accepted(BITS["tensor"], "tensor"),
    "tvm_ffi.Function": Accepted(BITS["function"], "function"),
}


class Signature(NamedTuple):
    """What a builtin takes and gives."""

    parameters: tuple[Accepted, ...]
    rest: Accepted
    """What arguments after the parameters are."""
    result: int
    """The mask of what it gives."""

    @staticmethod
    def of(function: Callable[..., Any], text: str | None) -> Signature:
        """That of a Python function, without parameters for our own use; `text` gives the annotations of one that has
        none: `int int -> bool`.
        """
        if text is not None:
            given, _, result = text.partition(" -> ")
            parameters = tuple(_ANNOTATIONS[word] for word in given.split())
            return Signature(parameters, _ANNOTATIONS["Any"], _ANNOTATIONS[result].mask)
        code, annotations = function.__code__, function.__annotations__
        names = [name for name in code.co_varnames[: code.co_argcount] if annotations[name] in _ANNOTATIONS]
        rest = (
            annotations[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
            if code.co_flags & _HAS_REST
            else "Any"
        )
        parameters = tuple(_ANNOTATIONS[annotations[name]] for name in names)
        return Signature(parameters, _ANNOTATIONS[rest], _ANNOTATIONS[annotations["return"]].mask)

    def accepted(self, index: int) -> Accepted:
        """What argument `index` may be."""
        return self.parameters[index] if index < len(self.parameters) else self.rest


_HAS_REST = 4  # CO_VARARGS

_BY_TYPE: dict[type, int] = {}


def mask_of(value: object) -> int:
    """The bit of a value's kind."""
    if isinstance(value, int) and not fits_int64(value):
        return BITS["object"]
    found = _BY_TYPE.get(type(value))
    if found is None:
        found = _BY_TYPE[type(value)] = BITS.get(kind_of(value), BITS["object"])
    return found


Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Builtin:
    """One function of the run-time library."""

    name: str
    """Without the prefix `vm.builtin.`."""
    function: Callable[..., Any]
    minimum: int
    """Least number of arguments."""
    maximum: int | None
    """Greatest number of arguments; `None` if there is no limit."""
    signature: Signature
    """Kinds of its arguments and of its result."""

    def check_count(self, count: int) -> None:
        """`ValueError` if the function cannot be called with `count` arguments."""
        if count < self.minimum or (self.maximum is not None and count > self.maximum):
            wanted = f"at least {self.minimum}" if self.maximum != self.minimum else f"{self.minimum}"
            raise ValueError(f"call of vm.builtin.{self.name} expected {wanted} arguments, got {count}")

    def checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, which stands for the builtin, for arguments of which nothing is known: `TypeError` for one of a
        wrong kind.
        """
        accepted = self.signature.accepted

        def call(*arguments: Any) -> Any:
            for index, value in enumerate(arguments):
                if not mask_of(value) & accepted(index).mask:
                    raise TypeError(render(self.wrong_kind(index), name=kind_of(value)))
            return function(*arguments)

        return call

    def wrong_kind(self, index: int) -> str:
        """The template of the error for argument `index`."""
        return messages.wrong_kind(f"{self.name}: argument #{index}", self.signature.accepted(index).name)


BUILTINS: dict[str, Builtin] = {}
"""Every builtin by name; `vm_dialect.builtins` fills it."""


def builtin(
    name: str, minimum: int, maximum: int | None = -1, kinds: str | None = None
) -> Callable[[Function], Function]:
    """Enters the decorated function into the table.

    It takes exactly `minimum` arguments, or up to `maximum`, or any number from `minimum` on if `maximum` is `None`.
    The annotations say of which kinds; `kinds` does for a function that has none.
    """

    def enter(function: Function) -> Function:
        most = minimum if maximum == -1 else maximum
        BUILTINS[name] = Builtin(name, function, minimum, most, Signature.of(function, kinds))
        return function

    return enter
