"""Traces of schedules: calls of primitives, with their arguments checked and their results, printed as Python, saved as
JSON, and replayed on other functions.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias, cast

from tir_dialect.dims import Dim, DimLike
from tir_dialect.schedule.handles import Block, Drawn, Loop, Origin, ScheduleError
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike

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


Handle: TypeAlias = "Block | Loop | Origin"

QUERIES: set[str] = set()
"""The primitives that change nothing: calls of them whose results nobody uses may be left out."""

MARK = "enter_postproc"
"""The primitive that does nothing: what comes after it may be left out."""

Provider: TypeAlias = "Callable[[Instruction, Sequence[Value], Mapping[str, Value], Value], Value]"
"""What is drawn by a call with these arguments instead of what was drawn: the last argument."""

VERSION = 1


class Schedule(Protocol):
    """The interface of a schedule on which a trace is replayed."""

    def call(self, name: str, /, *args: Value, **kwargs: Value) -> Value:
        """Calls a primitive."""
        ...


@dataclass
class Trace:
    """The recorded calls; handles and sampled numbers in them are numbered."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _numbers: dict[Handle, Ref] = field(default_factory=dict[Handle, Ref], repr=False)

    def record(self, primitive: str, args: Sequence[Value], kwargs: Mapping[str, Value], result: Value) -> None:
        """Appends a call."""
        named = {key: self._encode(value) for key, value in kwargs.items()}
        encoded = tuple(self._encode(arg) for arg in args)
        # Those of the numbers that a call drew.
        drawn = cast("Sequence[Value]", result) if isinstance(result, list | tuple) else (result,)
        for origin in (value.origin for value in drawn if isinstance(value, Drawn)):
            self._number(origin, "v")
        self.instructions.append(Instruction(primitive, encoded, named, self._encode(result)))

    def copy(self, copies: Mapping[Any, Handle]) -> Trace:
        """A copy for another schedule, with the handles of that."""
        numbers = {copies.get(handle, handle): ref for handle, ref in self._numbers.items()}
        return Trace(list(self.instructions), numbers)

    def _encode(self, value: Value) -> Value:
        if isinstance(value, Block | Loop):
            return self._number(value, "b" if isinstance(value, Block) else "l")
        if isinstance(value, Drawn):  # by another schedule: just a number
            return self._numbers.get(value.origin, int(value))
        if isinstance(value, list | tuple):
            items = cast("Sequence[Value]", value)
            return tuple(self._encode(item) for item in items)
        if isinstance(value, IndexMap) or callable(value):
            return str(IndexMap.of(cast("IndexMapLike", value)))
        if isinstance(value, Dim):
            return str(value) if value.constant_value is None else value.constant_value
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, Value]", value)
            return {str(key): self._encode(each) for key, each in entries.items()}
        return plain(value)

    def _number(self, handle: Handle, kind: str) -> Ref:
        return self._numbers.setdefault(handle, Ref(len(self._numbers), kind))

    @property
    def insts(self) -> list[Instruction]:
        """TVM's name of `instructions`."""
        return self.instructions

    @property
    def decisions(self) -> dict[Instruction, Value]:
        """The sampled values by instruction."""
        return {call: call.kwargs[DECISION] for call in self.instructions if call.draws}

    def get_decision(self, inst: Instruction) -> Value:
        """The value sampled by an instruction; `None` if it samples nothing."""
        return inst.kwargs.get(DECISION)

    def append(self, inst: Instruction, decision: Value = None) -> None:
        """Appends an instruction, with another decision if one is given."""
        self.instructions.append(inst if decision is None else inst.with_decision(self._encode(decision)))

    def pop(self) -> Instruction | None:
        """Removes and returns the last instruction; `None` if the trace is empty."""
        return self.instructions.pop() if self.instructions else None

    def with_decision(self, inst: Instruction, decision: Value, remove_postproc: bool = False) -> Trace:
        """The trace with another decision of one instruction, which later instructions use when it is replayed."""
        calls = self._calls(remove_postproc)
        if inst not in calls or not inst.draws:
            drawing = ", ".join(call.primitive for call in calls if call.draws) or "none"
            raise ValueError(f"expected an instruction of the trace that draws ({drawing}), got {inst}")
        calls[calls.index(inst)] = inst.with_decision(self._encode(decision))
        return Trace(calls, dict(self._numbers))

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The trace without queries whose results are unused.

        With `remove_postproc`, also without what follows `enter_postproc`.
        """
        used: set[Ref] = set()
        kept: list[Instruction] = []
        for call in reversed(self._calls(remove_postproc)):
            if call.primitive not in QUERIES or not used.isdisjoint(refs(call.outputs)):
                used |= {*refs(call.args), *refs(dict(call.kwargs))}
                kept.append(call)
        return Trace(kept[::-1], dict(self._numbers))

    def _calls(self, remove_postproc: bool) -> list[Instruction]:
        names = [call.primitive for call in self.instructions]
        return self.instructions[: names.index(MARK) if remove_postproc and MARK in names else None]

    def __str__(self) -> str:
        return self.as_python()

    def show(self) -> None:
        """Prints the calls as Python."""
        print(self.as_python(), end="")

    def as_python(self, name: str = "sch") -> str:
        """The calls as Python statements on a schedule called `name`."""
        return "".join(f"{instruction.as_python(name)}\n" for instruction in self.instructions)

    def as_json(self, remove_postproc: bool = False) -> list[dict[str, Value]]:
        """The calls as JSON values."""
        return [instruction.as_json() for instruction in self._calls(remove_postproc)]

    @staticmethod
    def from_json(data: object) -> Trace:
        """The trace that `as_json` gave; ValueError if the data is none."""
        if not isinstance(data, list):
            raise ValueError("a schedule trace must be a list of calls")
        return Trace([Instruction.from_json(call) for call in cast("list[object]", data)])

    @staticmethod
    def apply_json_to_schedule(data: object, schedule: Schedule) -> None:
        """Replays a trace written by `as_json` on another schedule."""
        Trace.from_json(data).replay(schedule)

    def apply_to_schedule(
        self, sch: Schedule, remove_postproc: bool = False, decision_provider: Provider | None = None
    ) -> None:
        """Replays the trace on another schedule; `decision_provider` may choose other decisions."""
        Trace(self._calls(remove_postproc)).replay(sch, decision_provider)

    def replay(self, schedule: Schedule, provider: Provider | None = None) -> None:
        """Replays the trace on another schedule; ScheduleError if a primitive is not applicable there."""
        handles: dict[Ref, Value] = {}
        for instruction in self.instructions:
            args = [_resolve(arg, handles) for arg in instruction.args]
            kwargs = {key: _resolve(value, handles) for key, value in instruction.kwargs.items()}
            if provider is not None and instruction.draws:
                drawn = kwargs.pop(DECISION)
                kwargs[DECISION] = provider(instruction, args, kwargs, drawn)
            result = schedule.call(instruction.primitive, *args, **kwargs)
            _bind(instruction, instruction.outputs, result, handles)


def save(traces: Mapping[str, Trace], module: Trace | None = None) -> str:
    """Traces by the name of their function, and one of a whole module, as JSON text, one call a line."""
    entries = ",\n".join(f" {json.dumps(name)}: {_lines(trace)}" for name, trace in traces.items())
    of_module = "" if module is None else f', "module": {_lines(module)}'
    return f'{{"version": {VERSION}, "functions": {{\n{entries}}}{of_module}}}\n'


def _lines(trace: Trace) -> str:
    return "[\n  " + ",\n  ".join(json.dumps(call) for call in trace.as_json()) + "]"


def load(text: str) -> dict[str, Trace]:
    """The traces of functions that `save` wrote; ValueError for other text."""
    return {str(name): Trace.from_json(calls) for name, calls in _fields(text)[0].items()}


def load_module(text: str) -> Trace | None:
    """The trace of a module that `save` wrote, if it wrote one; ValueError for other text."""
    calls = _fields(text)[1]
    return None if calls is None else Trace.from_json(calls)


def _fields(text: str) -> tuple[dict[object, object], object]:
    """What a schedule file says of functions, and of the module."""
    try:
        data: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON, got other text in line {error.lineno}, column {error.colno}") from None
    if not isinstance(data, dict):
        raise ValueError("a schedule file must be a JSON object")
    fields = cast("dict[object, object]", data)
    module = fields.get("module")
    functions = fields.get("functions", {} if module is not None else None)
    if fields.get("version") != VERSION or not isinstance(functions, dict):
        raise ValueError(f"a schedule file must have version {VERSION} and functions, or a module")
    return cast("dict[object, object]", functions), module


KINDS: dict[str, type] = {"b": Block, "l": Loop, "v": int}
"""What handles stand for."""


def _resolve(value: Value, handles: Mapping[Ref, Value]) -> Value:
    if isinstance(value, Ref):
        if value not in handles:
            raise ScheduleError("replay", f"handle {value} is used before it is defined")
        return handles[value]
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return [_resolve(item, handles) for item in items]
    if isinstance(value, dict):
        entries = cast("dict[str, Value]", value)
        return {key: _resolve(each, handles) for key, each in entries.items()}
    return value


def _bind(instruction: Instruction, outputs: Value, result: Value, handles: dict[Ref, Value]) -> None:
    if isinstance(outputs, Ref):
        if not isinstance(result, KINDS[outputs.kind]):
            raise ScheduleError("replay", f"{instruction.primitive} gave {result!r}, the trace has handle {outputs}")
        handles[outputs] = result
    elif isinstance(outputs, tuple):
        names = cast("Sequence[Value]", outputs)
        results: Sequence[Value] = cast("Sequence[Value]", result) if isinstance(result, list | tuple) else (result,)
        if len(names) != len(results):
            raise ScheduleError(
                "replay", f"{instruction.primitive} gave {len(results)} handles, the trace has {len(names)}"
            )
        for name, item in zip(names, results, strict=True):
            _bind(instruction, name, item, handles)
