"""Parts of programs that a library computes: `fuse-ops-by-pattern` groups ops that it can compute together,
`merge-composites` makes neighbouring groups one, and `run-codegen` makes them calls of the library.

Libraries that interpret programs are given a group as JSON: steps over numbered values, and which of these are results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from lowering.byoc.backends import FusionPattern, find_backend
from lowering.diagnostics import fail
from lowering.locations import inherit_location
from relax_dialect.analysis.effects import unchanged_between
from relax_dialect.ops.call_tir import CallDPSPackedOp
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import StringOp
from relax_dialect.patterns import Match, python_value
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.types import TensorType

CODEGEN = "codegen"
"""The attribute that names the backend of a group."""

COMPOSITES = "composites"
"""The attribute with the names of the patterns that a group was made by."""


@dataclass(frozen=True)
class FuseOpsByPatternPass(ModulePass):
    """Puts the matches of a backend's patterns into `relax.fused` groups.

    Before:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.add %0, %b
    %2 = relax.exp %1
    ```

    After `fuse-ops-by-pattern{backend=blas}`:

    ```mlir
    %1 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul_bias"]} {
      %0 = relax.matmul %x, %w
      %3 = relax.add %0, %b
      relax.yield %3
    }
    %2 = relax.exp %1
    ```

    Patterns are tried in their order; of two matches of one pattern that share ops, the later one in the program wins.
    A group stands where its last op stood. Groups are not looked into, so the pass is idempotent. Mirrors TVM's
    `FuseOpsByPattern`. Refuses a backend that there is not.
    """

    name = "fuse-ops-by-pattern"

    backend: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        try:
            backend = find_backend(self.backend)
        except ValueError as error:
            raise PassFailedException(f"'{self.name}' {error}") from error
        for func in op.ops:
            if isinstance(func, FuncOp):
                group_matches(func, backend.patterns, backend.name)


def group_matches(root: Operation, patterns: Sequence[FusionPattern], backend: str) -> int:
    """Groups all matches inside `root`; gives how many there were."""
    return sum(_group_pattern(root, pattern, backend) for pattern in patterns)


def _group_pattern(root: Operation, fusion: FusionPattern, backend: str) -> int:
    count = 0
    for op in list(root.walk(reverse=True)):
        for result in op.results:
            if op.parent is None or isinstance(op.parent_op(), FusedOp):
                continue
            match = fusion.pattern.match(result)
            if match is not None and _can_group(match) and fusion.check(match):
                _group(match, fusion.name, backend)
                count += 1
    return count


def _can_group(match: Match) -> bool:
    """Groups have no control flow inside, and bind nothing for others."""
    return bool(match.ops) and not any(op.regions or symbols_witnessed(op) for op in match.ops)


def _group(match: Match, name: str, backend: str) -> None:
    last = match.ops[-1]
    marker = InsertPoint.after(last)
    body = Block()
    for op in match.ops:
        op.detach()
        body.add_op(op)
    yielded = YieldOp(*match.outputs)
    inherit_location(last, yielded)
    body.add_op(yielded)
    group = FusedOp(body)
    group.attributes |= {CODEGEN: StringAttr(backend), COMPOSITES: ArrayAttr([StringAttr(name)])}
    group.location = last.location
    Rewriter.insert_op(group, marker)
    for old, new in zip(match.outputs, group.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation.parent is not body)


class MergeCompositesPass(ModulePass):
    """Merges a group into the one that uses its results, if both are of one backend: fewer calls of the library.

    Before:

    ```mlir
    %1 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
      %0 = relax.matmul %x, %w
      relax.yield %0
    }
    %3 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
      %2 = relax.matmul %1, %v
      relax.yield %2
    }
    ```

    After:

    ```mlir
    %3 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul", "blas.matmul"]} {
      %0 = relax.matmul %x, %w
      %2 = relax.matmul %0, %v
      relax.yield %2
    }
    ```

    Two groups stay apart if an op between them uses the first. The merged group stands where the last one stood, and
    yields what others use. Idempotent, refuses nothing. Mirrors TVM's
    `MergeCompositeFunctions`.
    """

    name = "merge-composites"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Block by block; what uses the results of two parts joins one, and may find the other when that is done."""
        for block in [block for inner in op.walk() for region in inner.regions for block in region.blocks]:
            while parts := [members for members in _partition(block) if len(members) > 1]:
                for members in parts:
                    _merge(members)


def _partition(block: Block) -> list[list[FusedOp]]:
    """The groups of a block in parts that can be merged, each in program order."""
    position = {op: index for index, op in enumerate(block.ops)}
    parts: list[list[FusedOp]] = []
    part_of: dict[Operation, list[FusedOp]] = {}
    for op in block.ops:
        if not isinstance(op, FusedOp) or CODEGEN not in op.attributes:
            continue
        part = _choose(op, part_of, position)
        if part is None:
            part = list[FusedOp]()
            parts.append(part)
        part.append(op)
        part_of[op] = part
    return parts


def _choose(
    op: FusedOp, part_of: Mapping[Operation, list[FusedOp]], position: Mapping[Operation, int]
) -> list[FusedOp] | None:
    """The part of a producer that `op` can join."""
    for inner in op.body.block.ops:
        for operand in inner.operands:
            part = part_of.get(operand.owner) if isinstance(operand, OpResult) else None
            if part is None or _backend(part[0]) != _backend(op) or _is_used_before(part, op, position):
                continue
            reads = (value for member in part for each in member.body.block.ops for value in each.operands)
            if unchanged_between(reads, part[0], op):  # for the whole part will stand where `op` stands
                return part
    return None


def _backend(group: FusedOp) -> Attribute:
    return group.attributes[CODEGEN]


def _is_used_before(part: list[FusedOp], op: FusedOp, position: Mapping[Operation, int]) -> bool:
    """Whether an op before `op` and in no member uses a result of the part, which will stand where `op` stands."""
    for result in (result for member in part for result in member.results):
        for use in result.uses:
            user: Operation | None = use.operation
            while user is not None and user not in position:
                user = user.parent_op()
            if user is not None and user not in part and position[user] < position[op]:
                return True
    return False


def _merge(members: list[FusedOp]) -> None:
    last = members[-1]
    body = Block()
    for member in members:
        for op in list(member.body.block.ops):
            if isinstance(op, YieldOp):
                for old, new in zip(member.res, op.operands, strict=True):
                    new.name_hint = old.name_hint
                    old.replace_all_uses_with(new)
                Rewriter.erase_op(op)
            else:
                op.detach()
                body.add_op(op)
    inside = set(body.ops)
    results = [result for op in body.ops for result in op.results]
    outputs = [each for each in results if any(use.operation not in inside for use in each.uses)]
    yielded = YieldOp(*outputs)
    inherit_location(last, yielded)
    body.add_op(yielded)
    group = FusedOp(body)
    composites = ArrayAttr([name for member in members for name in _composites(member)])
    group.attributes |= {CODEGEN: _backend(last), COMPOSITES: composites}
    group.location = last.location
    Rewriter.insert_op(group, InsertPoint.after(last))
    for old, new in zip(outputs, group.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation.parent is not body)
    for member in members:
        Rewriter.erase_op(member)


def _composites(group: FusedOp) -> tuple[Attribute, ...]:
    names = group.attributes.get(COMPOSITES)
    return names.data if isa(names, ArrayAttr[Attribute]) else ()


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
    @lru_cache(maxsize=1024)
    def parse(text: str) -> Program:
        """The program that `text` gave; `ValueError` for anything else. Texts that come again are not parsed again."""
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
