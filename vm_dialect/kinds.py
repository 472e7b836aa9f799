"""Kinds of values as bit masks, for verification: what a builtin takes and gives, read from its annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vm_dialect.integers import fits_int64
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
