"""One call of a primitive, as a trace has it, with its arguments checked and its results, as text of Python and as
JSON.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, TypeAlias, cast

from tir_dialect.dims import Dim, DimLike
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.index_map import IndexMap

Value: TypeAlias = Any
"""An argument or result: handles, numbers, strings, dimensions, `None`, and sequences and mappings of those."""


@dataclass(frozen=True)
class Ref:
    """A handle, by the number that it got when it first appeared."""

    number: int
    kind: str
    """`b` for a block, `l` for a loop, `v` for a number that was drawn."""

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


def plain(value: Value) -> Value:
    """A number of NumPy's as one of Python's, which JSON has, too; anything else as it is."""
    if isinstance(value, bool | int | float):
        return value
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def refs(value: Value) -> Iterator[Ref]:
    """The handles in a value, in order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, dict):
        yield from refs(tuple(cast("dict[str, Value]", value).values()))
    elif isinstance(value, tuple):
        for item in cast("Sequence[Value]", value):
            yield from refs(item)


def text(value: Value) -> str:
    """A value as Python."""
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return f"[{', '.join(map(text, items))}]"
    if isinstance(value, dict):
        entries = cast("dict[str, Value]", value)
        return f"{{{', '.join(f'{json.dumps(key)}: {text(each)}' for key, each in entries.items())}}}"
    return str(value) if isinstance(value, Ref) else json.dumps(value) if isinstance(value, str) else repr(value)


def to_json(value: Value) -> Value:
    """A value as JSON: handles are `{"b": 0}`, mappings `{"map": {..}}`."""
    if isinstance(value, Ref):
        return {value.kind: value.number}
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return [to_json(item) for item in items]
    if isinstance(value, dict):
        entries = cast("dict[str, Value]", value)
        return {"map": {key: to_json(each) for key, each in entries.items()}}
    return value


def from_json(data: Value) -> Value:
    """The value that `to_json` gave; ValueError if the data is none."""
    if isinstance(data, dict):
        entries = cast("dict[str, Value]", data)
        match list(entries.items()):
            case [("b" | "l" | "v" as kind, int(number))]:
                return Ref(number, kind)
            case [("map", dict())]:
                return {key: from_json(each) for key, each in entries["map"].items()}
            case _:
                raise ValueError(f"expected a handle in a schedule trace, got {json.dumps(data)}")
    if isinstance(data, list):
        items = cast("Sequence[Value]", data)
        return tuple(from_json(item) for item in items)
    return data


DECISION = "decision"
"""The argument of the primitives that draw, which says what was drawn."""


@dataclass(frozen=True)
class Instruction:
    """One call of a primitive."""

    primitive: str
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    outputs: Value
    """A `Ref`, a tuple of them, or `None`."""

    def __hash__(self) -> int:
        return hash((self.primitive, str(self)))

    def __str__(self) -> str:
        return self.as_python("sch")

    @property
    def draws(self) -> bool:
        """Whether the call samples a value."""
        return DECISION in self.kwargs

    def with_decision(self, decision: Value) -> Instruction:
        """The call with another decision."""
        return replace(self, kwargs={**self.kwargs, DECISION: decision})

    def as_python(self, name: str) -> str:
        """The call as a statement on a schedule called `name`."""
        arguments = [text(arg) for arg in self.args]
        arguments += [f"{key}={text(value)}" for key, value in self.kwargs.items()]
        call = f"{name}.{self.primitive}({', '.join(arguments)})"
        handles = list(_targets(self.outputs))
        targets = ", ".join(handles)
        if len(handles) == 1 and not isinstance(self.outputs, Ref):
            targets += ","
        return f"{targets} = {call}" if targets else call

    def as_json(self) -> dict[str, Value]:
        """The call as a JSON value."""
        call: dict[str, Value] = {"call": self.primitive, "args": [to_json(arg) for arg in self.args]}
        if self.kwargs:
            call["kwargs"] = {key: to_json(value) for key, value in self.kwargs.items()}
        if any(True for _ in refs(self.outputs)):
            call["outputs"] = to_json(self.outputs)
        return call

    @staticmethod
    def from_json(call: object) -> Instruction:
        """The call that `as_json` gave; ValueError if the data is none."""
        fields = cast("dict[str, Value]", call) if isinstance(call, dict) else {}
        primitive, args, kwargs = fields.get("call"), fields.get("args", []), fields.get("kwargs", {})
        if not isinstance(primitive, str) or not isinstance(args, list) or not isinstance(kwargs, dict):
            raise ValueError(f"a call in a schedule trace must have call, args and kwargs, got {json.dumps(call)}")
        values = cast("list[Value]", args)
        named = cast("dict[str, Value]", kwargs)
        return Instruction(
            primitive,
            tuple(from_json(arg) for arg in values),
            {key: from_json(value) for key, value in named.items()},
            from_json(fields.get("outputs")),
        )


def _targets(outputs: Value) -> Iterator[str]:
    """The names that a statement gives results; `_` for those that are no handles."""
    if isinstance(outputs, tuple):
        for each in cast("Sequence[Value]", outputs):
            yield from _targets(each) if each is not None else "_"
    elif isinstance(outputs, Ref):
        yield str(outputs)


class Recording:
    """Arguments that stand for others in the trace, and additional ones, such as sampled decisions."""

    def __init__(self):
        self._meant: dict[int, object] = {}
        self._decided: dict[str, object] = {}

    def record_as(self, given: object, meant: object) -> None:
        """Records an argument as `meant`; it is recognised by its identity."""
        self._meant[id(given)] = meant

    def record_with(self, decided: Mapping[str, object]) -> None:
        """Records additional arguments, or other values of arguments, by name."""
        self._decided = dict(decided)

    def arguments(
        self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call as they are recorded, by position and by name.

        `names` are those of the first `args`: further ones have none.
        """
        pairs = zip_longest(args, names[: len(args)])
        given = [self._recorded(arg) for arg, name in pairs if name not in self._decided]
        named = {key: self._recorded(arg) for key, arg in kwargs.items()}
        return given, {**named, **self._decided}

    def _recorded(self, argument: Any) -> Any:
        return self._meant.get(id(argument), argument)


KNOWN: dict[str, object] = {
    "Block": Block,
    "Dim": Dim,
    "DimLike": DimLike,
    "IndexMap": IndexMap,
    "Loop": Loop,
    "bool": bool,
    "float": float,
    "int": int,
    "str": str,
}
"""What annotations and aliases in them are made of, beside what the module of a primitive has."""

GREATEST = 1 << 62
"""The greatest number in an argument: the sum of it and a size is an index, too."""

NAMED = ("block", "block_or_loop")
"""The parameters for which the name of a block may be given."""


def wrong_arguments(primitive: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The first argument of a wrong type, as an error message; `None` if all are right."""
    signature = _signature(primitive)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError as error:
        return str(error)
    names = KNOWN | primitive.__globals__
    for name, value in list(bound.arguments.items())[1:]:
        parameter = signature.parameters[name]
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for each in cast("Sequence[object]", value) if several else (value,):
            # a block may be given by its name
            if not fits(each, str(parameter.annotation), names) and not (name in NAMED and isinstance(each, str)):
                return f'expected "{name}" to be {parameter.annotation}, got {each!r}'
    return None


def too_great(values: Sequence[Any]) -> int | None:
    """A number in arguments whose magnitude is over `GREATEST`."""
    for value in values:
        match value:
            case list() | tuple():
                found = too_great(cast("Sequence[Any]", value))
            case Dim():
                found = too_great([coefficient for coefficient, _ in value.terms])
            case _:
                found = int(value) if isinstance(value, Integral) and abs(int(value)) > GREATEST else None
        if found is not None:
            return found
    return None


_signature = cache(inspect.signature)


def fits(value: object, annotation: str, names: Mapping[str, object]) -> bool:
    """Whether a value has the type that an annotation says; `names` maps its names to types and aliases."""
    return _fits(value, _parsed(annotation), names)


@cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _fits(value: object, node: ast.expr, names: Mapping[str, object]) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left, names) or _fits(value, right, names)
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id=name):
            kind = names[name]
            if isinstance(kind, str):
                return fits(value, kind, names)
            if kind is not bool and isinstance(value, bool):
                return False
            # NumPy's numbers are numbers, too
            return isinstance(value, Real if kind is float else Integral if kind is int else cast("type", kind))
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _fits_generic(value, name, inner, names)
        case _:
            raise TypeError(f"'{ast.unparse(node)}' is no type that arguments are checked for")


def _fits_generic(value: object, name: str, inner: ast.expr, names: Mapping[str, object]) -> bool:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name in ("Callable", "Mapping"):
        return callable(value) if name == "Callable" else isinstance(value, Mapping)
    if name == "Literal":
        return any(isinstance(part, ast.Constant) and part.value == value for part in parts)
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[object]", value)
    if name == "tuple":
        return len(items) == len(parts) and all(_fits(*pair, names) for pair in zip(items, parts, strict=True))
    return all(_fits(item, inner, names) for item in items)
