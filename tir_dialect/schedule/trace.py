"""What a schedule did, as data: print it as Python, save it, replay it on another function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from tir_dialect.dims import Dim
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike

Handle: TypeAlias = "Block | Loop"
Value: TypeAlias = Any
"""An argument or result: handles, numbers, strings, dimensions, `None`, and sequences of those."""

VERSION = 1


class Schedule(Protocol):
    """What a trace needs of the schedule on which it is replayed."""

    def call(self, name: str, *args: Value, **kwargs: Value) -> Value:
        """Calls a primitive."""
        ...


@dataclass(frozen=True)
class Ref:
    """A handle, by the number that it got when it first appeared."""

    number: int
    kind: str
    """`b` for a block, `l` for a loop."""

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


@dataclass(frozen=True)
class Instruction:
    """One call of a primitive."""

    primitive: str
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    outputs: Value
    """A `Ref`, a tuple of them, or `None`."""


@dataclass
class Trace:
    """A list of calls in which handles are numbered."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _numbers: dict[Handle, Ref] = field(default_factory=dict[Handle, Ref], repr=False)

    def record(self, primitive: str, args: Sequence[Value], kwargs: Mapping[str, Value], result: Value) -> None:
        """Appends a call."""
        named = {key: self._encode(value) for key, value in kwargs.items()}
        encoded = tuple(self._encode(arg) for arg in args)
        self.instructions.append(Instruction(primitive, encoded, named, self._encode(result)))

    def copy(self, twins: Mapping[Handle, Handle]) -> Trace:
        """The same calls, to be continued with other handles."""
        numbers = {twins.get(handle, handle): ref for handle, ref in self._numbers.items()}
        return Trace(list(self.instructions), numbers)

    def _encode(self, value: Value) -> Value:
        if isinstance(value, Block | Loop):
            if value not in self._numbers:
                kind = "b" if isinstance(value, Block) else "l"
                self._numbers[value] = Ref(len(self._numbers), kind)
            return self._numbers[value]
        if isinstance(value, list | tuple):
            items = cast("Sequence[Value]", value)
            return tuple(self._encode(item) for item in items)
        if isinstance(value, IndexMap) or callable(value):
            return str(IndexMap.of(cast("IndexMapLike", value)))
        if isinstance(value, Dim):
            return str(value) if value.constant_value is None else value.constant_value
        return value

    def as_python(self, name: str = "sch") -> str:
        """The calls as Python statements on a schedule called `name`."""
        return "".join(f"{_statement(instruction, name)}\n" for instruction in self.instructions)

    def as_json(self) -> list[dict[str, Value]]:
        """The calls as JSON values."""
        return [_to_json(instruction) for instruction in self.instructions]

    @staticmethod
    def from_json(data: object) -> Trace:
        """The trace that `as_json` gave; ValueError if the data is none."""
        if not isinstance(data, list):
            raise ValueError("a schedule trace must be a list of calls")
        return Trace([_from_json(call) for call in cast("list[object]", data)])

    def replay(self, schedule: Schedule) -> None:
        """Makes the same calls on another schedule; ScheduleError where one cannot be applied there."""
        handles: dict[Ref, Handle] = {}
        for instruction in self.instructions:
            args = [_resolve(arg, handles) for arg in instruction.args]
            kwargs = {key: _resolve(value, handles) for key, value in instruction.kwargs.items()}
            result = schedule.call(instruction.primitive, *args, **kwargs)
            _bind(instruction, instruction.outputs, result, handles)


def save(traces: Mapping[str, Trace]) -> str:
    """Traces by the name of their function as JSON text, one call a line."""
    entries = [
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(call) for call in trace.as_json()) + "]"
        for name, trace in traces.items()
    ]
    return f'{{"version": {VERSION}, "functions": {{\n' + ",\n".join(entries) + "}}\n"


def load(text: str) -> dict[str, Trace]:
    """The traces that `save` wrote; ValueError for other text."""
    data: object = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("a schedule file must be a JSON object")
    fields = cast("dict[object, object]", data)
    functions = fields.get("functions")
    if fields.get("version") != VERSION or not isinstance(functions, dict):
        raise ValueError(f"a schedule file must have version {VERSION} and functions")
    entries = cast("dict[object, object]", functions)
    return {str(name): Trace.from_json(calls) for name, calls in entries.items()}


def _resolve(value: Value, handles: Mapping[Ref, Handle]) -> Value:
    if isinstance(value, Ref):
        if value not in handles:
            raise ScheduleError("replay", f"handle {value} is used before it is defined")
        return handles[value]
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return [_resolve(item, handles) for item in items]
    return value


def _bind(instruction: Instruction, outputs: Value, result: Value, handles: dict[Ref, Handle]) -> None:
    if isinstance(outputs, Ref):
        if not isinstance(result, Block if outputs.kind == "b" else Loop):
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


def _refs(value: Value) -> Iterator[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        for item in items:
            yield from _refs(item)


def _statement(instruction: Instruction, name: str) -> str:
    arguments = [_text(arg) for arg in instruction.args]
    arguments += [f"{key}={_text(value)}" for key, value in instruction.kwargs.items()]
    call = f"{name}.{instruction.primitive}({', '.join(arguments)})"
    outputs = instruction.outputs
    targets = ", ".join(map(str, _refs(outputs)))
    if isinstance(outputs, tuple) and len(list(_refs(outputs))) == 1:
        targets += ","
    return f"{targets} = {call}" if targets else call


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return f"[{', '.join(map(_text, items))}]"
    return str(value) if isinstance(value, Ref) else json.dumps(value) if isinstance(value, str) else repr(value)


def _to_json(instruction: Instruction) -> dict[str, Value]:
    call: dict[str, Value] = {"call": instruction.primitive, "args": [_json(arg) for arg in instruction.args]}
    if instruction.kwargs:
        call["kwargs"] = {key: _json(value) for key, value in instruction.kwargs.items()}
    if any(True for _ in _refs(instruction.outputs)):
        call["outputs"] = _json(instruction.outputs)
    return call


def _json(value: Value) -> Value:
    if isinstance(value, Ref):
        return {value.kind: value.number}
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return [_json(item) for item in items]
    return value


def _from_json(call: object) -> Instruction:
    fields = cast("dict[str, Value]", call) if isinstance(call, dict) else {}
    primitive, args, kwargs = fields.get("call"), fields.get("args", []), fields.get("kwargs", {})
    if not isinstance(primitive, str) or not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError(f"a call in a schedule trace must have call, args and kwargs, got {json.dumps(call)}")
    values = cast("list[Value]", args)
    named = cast("dict[str, Value]", kwargs)
    return Instruction(
        primitive,
        tuple(_value(arg) for arg in values),
        {key: _value(value) for key, value in named.items()},
        _value(fields.get("outputs")),
    )


def _value(data: Value) -> Value:
    if isinstance(data, dict):
        entries = cast("dict[str, Value]", data)
        match list(entries.items()):
            case [("b" | "l" as kind, int(number))]:
                return Ref(number, kind)
            case _:
                raise ValueError(f"expected a handle in a schedule trace, got {json.dumps(data)}")
    if isinstance(data, list):
        items = cast("Sequence[Value]", data)
        return tuple(_value(item) for item in items)
    return data
