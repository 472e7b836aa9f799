"""One call of a primitive, as a trace has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from tir_dialect.schedule.trace_values import Ref, Value, from_json, refs, text, to_json

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
