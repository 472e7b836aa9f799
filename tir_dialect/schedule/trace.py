"""What a schedule did, as data: print it as Python, save it, replay it on another function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, cast

from tir_dialect.dims import Dim
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import Block, Drawn, Loop, Origin
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.trace_values import Ref, Value, from_json, plain, refs, text, to_json

Handle: TypeAlias = "Block | Loop | Origin"

QUERIES: set[str] = set()
"""The primitives that change nothing: calls of them whose results nobody uses may be left out."""

VERSION = 1


class Schedule(Protocol):
    """What a trace needs of the schedule on which it is replayed."""

    def call(self, name: str, *args: Value, **kwargs: Value) -> Value:
        """Calls a primitive."""
        ...


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
    """A list of calls in which handles are numbered, and so are numbers that were drawn (`sample_...`)."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _numbers: dict[Handle, Ref] = field(default_factory=dict[Handle, Ref], repr=False)

    def record(self, primitive: str, args: Sequence[Value], kwargs: Mapping[str, Value], result: Value) -> None:
        """Appends a call."""
        named = {key: self._encode(value) for key, value in kwargs.items()}
        encoded = tuple(self._encode(arg) for arg in args)
        for origin in _origins(result):
            self._number(origin, "v")
        self.instructions.append(Instruction(primitive, encoded, named, self._encode(result)))

    def copy(self, twins: Mapping[Any, Handle]) -> Trace:
        """The same calls, to be continued with other handles."""
        numbers = {twins.get(handle, handle): ref for handle, ref in self._numbers.items()}
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
    def decisions(self) -> dict[int, Value]:
        """What was drawn by each call that draws, by the number of the call."""
        return {number: call.kwargs["decision"] for number, call in _drawing(self.instructions)}

    def with_decision(self, number: int, decision: Value) -> Trace:
        """The same calls, of which one draws something else: what uses the numbers follows when it is replayed."""
        calls = list(self.instructions)
        if number not in self.decisions:
            raise ValueError(f"expected the number of a call that draws, {sorted(self.decisions)}, got {number}")
        calls[number] = replace(calls[number], kwargs={**calls[number].kwargs, "decision": self._encode(decision)})
        return Trace(calls, dict(self._numbers))

    def simplified(self) -> Trace:
        """The same calls without those that change nothing and whose results nobody uses."""
        used: set[Ref] = set()
        kept: list[Instruction] = []
        for call in reversed(self.instructions):
            if call.primitive not in QUERIES or not used.isdisjoint(refs(call.outputs)):
                used |= {*refs(call.args), *refs(dict(call.kwargs))}
                kept.append(call)
        return Trace(kept[::-1], dict(self._numbers))

    def show(self) -> None:
        """Prints the calls as Python."""
        print(self.as_python(), end="")

    def as_python(self, name: str = "sch") -> str:
        """The calls as Python statements on a schedule called `name`."""
        return "".join(f"{_statement(instruction, name)}\n" for instruction in self.instructions)

    def as_json(self) -> list[dict[str, Value]]:
        """The calls as JSON values."""
        return [_call_to_json(instruction) for instruction in self.instructions]

    @staticmethod
    def from_json(data: object) -> Trace:
        """The trace that `as_json` gave; ValueError if the data is none."""
        if not isinstance(data, list):
            raise ValueError("a schedule trace must be a list of calls")
        return Trace([_call_from_json(call) for call in cast("list[object]", data)])

    def replay(self, schedule: Schedule) -> None:
        """Makes the same calls on another schedule; ScheduleError where one cannot be applied there."""
        handles: dict[Ref, Value] = {}
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


KINDS: dict[str, type] = {"b": Block, "l": Loop, "v": int}
"""What handles stand for."""


def _origins(result: Value) -> Iterator[Origin]:
    """Those of the numbers that a call drew."""
    drawn = cast("Sequence[Value]", result) if isinstance(result, list | tuple) else (result,)
    return (value.origin for value in drawn if isinstance(value, Drawn))


def _drawing(calls: Sequence[Instruction]) -> Iterator[tuple[int, Instruction]]:
    return ((number, call) for number, call in enumerate(calls) if "decision" in call.kwargs)


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


def _statement(instruction: Instruction, name: str) -> str:
    arguments = [text(arg) for arg in instruction.args]
    arguments += [f"{key}={text(value)}" for key, value in instruction.kwargs.items()]
    call = f"{name}.{instruction.primitive}({', '.join(arguments)})"
    outputs = instruction.outputs
    targets = ", ".join(map(str, refs(outputs)))
    if isinstance(outputs, tuple) and len(list(refs(outputs))) == 1:
        targets += ","
    return f"{targets} = {call}" if targets else call


def _call_to_json(instruction: Instruction) -> dict[str, Value]:
    call: dict[str, Value] = {"call": instruction.primitive, "args": [to_json(arg) for arg in instruction.args]}
    if instruction.kwargs:
        call["kwargs"] = {key: to_json(value) for key, value in instruction.kwargs.items()}
    if any(True for _ in refs(instruction.outputs)):
        call["outputs"] = to_json(instruction.outputs)
    return call


def _call_from_json(call: object) -> Instruction:
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
