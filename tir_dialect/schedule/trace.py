"""Traces of schedules: printed as Python, saved as JSON, replayed on other functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from tir_dialect.dims import Dim
from tir_dialect.schedule.handles import Block, Drawn, Loop, Origin, ScheduleError
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.instruction import DECISION, Instruction, Ref, Value, plain, refs

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
