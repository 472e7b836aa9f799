"""`run-codegen`: groups become calls of the libraries that they were made for.

Libraries that interpret programs are given a group as JSON: steps over numbered values, and which of these are results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from lowering.byoc.backends import find_backend
from lowering.byoc.fuse_ops_by_pattern import CODEGEN
from lowering.diagnostics import fail
from lowering.locations import inherit_location
from relax_dialect.ops.call_tir import CallDPSPackedOp
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.ops.values import StringOp
from relax_dialect.patterns import python_value
from relax_dialect.struct_info.types import TensorType


class RunCodegenPass(ModulePass):
    """Replaces each group by the call that its backend generates for it.

    Before:

    ```mlir
    %1 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
      %0 = relax.matmul %x, %w
      relax.yield %0
    }
    ```

    After:

    ```mlir
    %1 = relax.call_dps_packed "relax.blas"(%text, %x, %w) : !relax.tensor<[n, 8], f32>
    ```

    What a backend declines, and groups whose results have unknown dimensions or dtypes, go back into the program and
    are compiled like the rest. No group for a backend is left; idempotent. Mirrors TVM's `RunCodegen`. Refuses a
    backend that there is not.
    """

    name = "run-codegen"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Group by group."""
        for group in [inner for inner in op.walk() if isinstance(inner, FusedOp) and CODEGEN in inner.attributes]:
            call = _call(group)
            if call is None:
                dissolve(group)
            else:
                texts, packed = call
                inherit_location(group, [*texts, packed])
                for old, new in zip(group.res, packed.res, strict=True):
                    new.name_hint = old.name_hint
                Rewriter.replace_op(group, [*texts, packed], packed.res)


def _call(group: FusedOp) -> tuple[list[StringOp], CallDPSPackedOp] | None:
    name = group.attributes[CODEGEN]
    if not isinstance(name, StringAttr):
        fail(group, f"expected the name of a backend, got {name}")
    try:
        backend = find_backend(name.data)
    except ValueError as error:
        fail(group, str(error))
    types = tuple(group.result_types)
    if not isa(types, tuple[TensorType, ...]) or any(each.known_dims is None or not each.dtype for each in types):
        return None
    handoff = backend.codegen(group)
    if handoff is None:
        return None
    texts = [StringOp(StringAttr(text)) for text in handoff.texts]
    arguments: list[SSAValue] = [*(text.result for text in texts), *inputs_of(group)]
    return texts, CallDPSPackedOp(handoff.function, arguments, types)


def inputs_of(group: FusedOp) -> list[SSAValue]:
    """The values that a group uses and does not make, in the order of use."""
    block = group.body.block
    used = dict.fromkeys(operand for op in block.ops for operand in op.operands if operand.owner.parent is not block)
    return list(used)


def dissolve(group: FusedOp) -> None:
    """Puts the ops of a group where the group stood."""
    block = group.body.block
    yielded = block.last_op
    outputs = yielded.operands if isinstance(yielded, YieldOp) else ()
    for old, new in zip(group.res, outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    if yielded is not None:
        Rewriter.erase_op(yielded)
    Rewriter.inline_block(block, InsertPoint.before(group))
    Rewriter.erase_op(group)


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
