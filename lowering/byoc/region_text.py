"""A group as JSON, for libraries that interpret it: steps over numbered values, and which of these are results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from lowering.byoc.run_codegen import inputs_of
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.patterns.attributes import python_value


@dataclass(frozen=True)
class Step:
    """An op: its name, the numbers of its operands, and its properties as plain values.

    Inputs of the group are numbered first, then the result of each step.
    """

    op: str
    operands: tuple[int, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """What a group computes."""

    inputs: int
    steps: Sequence[Step]
    outputs: tuple[int, ...]

    def text(self) -> str:
        """One line of JSON."""
        steps = [[step.op, step.operands, dict(step.properties)] for step in self.steps]
        return json.dumps({"inputs": self.inputs, "steps": steps, "outputs": self.outputs}, sort_keys=True)

    @staticmethod
    def parse(text: str) -> Program:
        """The program that `text` gave; `ValueError` for anything else."""
        try:
            found = json.loads(text)
            steps = [Step(op, tuple(operands), properties) for op, operands, properties in found["steps"]]
            return Program(found["inputs"], steps, tuple(found["outputs"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected the text of a group, got {text[:80]}") from error


def program_of(group: FusedOp) -> Program | None:
    """What a group computes; `None` if an op has several results."""
    inputs = inputs_of(group)
    numbers: dict[SSAValue, int] = {value: index for index, value in enumerate(inputs)}
    steps: list[Step] = []
    for op in group.body.block.ops:
        if isinstance(op, YieldOp):
            return Program(len(inputs), steps, tuple(numbers[value] for value in op.operands))
        if len(op.results) != 1:
            return None
        properties = {name: python_value(attribute) for name, attribute in op.properties.items()}
        steps.append(Step(op.name, tuple(numbers[operand] for operand in op.operands), properties))
        numbers[op.results[0]] = len(numbers)
    return None
