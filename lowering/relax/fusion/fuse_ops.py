"""`fuse-ops`: calls of kernels that can be computed together become a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import fused_location
from lowering.relax.fusion.grouping import Node, group
from lowering.relax.fusion.kernel_facts import KernelFacts
from relax_dialect.analysis.effects import may_be_observed
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.ops.prim_func import find_prim_func
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.analysis.patterns import OpPattern


class FuseOpsPass(ModulePass):
    """Groups calls of PrimFuncs that one kernel can compute in a `relax.fused` region, for `fuse-tir`.

    Before:

    ```mlir
    %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 8], f32>
    %1 = relax.call_tir @add(%0, %b) : !relax.tensor<[n, 8], f32>
    %2 = relax.call_tir @relu(%1) : !relax.tensor<[n, 8], f32>
    ```

    After:

    ```mlir
    %2 = relax.fused {
      %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 8], f32>
      %1 = relax.call_tir @add(%0, %b) : !relax.tensor<[n, 8], f32>
      %3 = relax.call_tir @relu(%1) : !relax.tensor<[n, 8], f32>
      relax.yield %3
    }
    ```

    Which go together follows from the patterns of the PrimFuncs, as in TVM: chains of elementwise and broadcast
    functions, also diamonds; what follows a product or a reduction element by element; what a reduction or a
    rearrangement reads, or a concatenation, which ends its group; and a changed order of dimensions before a
    product. The group stands where its last call
    stood, and no call moves past an op with effects. Expects `legalize-ops`; calls whose shapes are not known, or of
    opaque functions, stay as they are. Idempotent.
    """

    name = "fuse-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Groups the calls of every block by itself."""
        facts: dict[str, KernelFacts] = {}
        for func in op.ops:
            if isinstance(func, FuncOp):
                for block in list(_blocks(func)):
                    for calls in _segments(block, facts):
                        _fuse(calls, facts)


def _blocks(op: Operation) -> Iterator[Block]:
    """The blocks in an op, but for those of groups."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, FusedOp):
                    yield from _blocks(inner)


def _segments(block: Block, facts: dict[str, KernelFacts]) -> list[list[CallTIROp]]:
    """The calls that may be moved, in runs without effects between them."""
    segments: list[list[CallTIROp]] = [[]]
    for op in block.ops:
        if isinstance(op, CallTIROp):
            if _may_be_fused(op, facts):
                segments[-1].append(op)
        elif segments[-1] and may_be_observed(op):
            segments.append([])
    return [calls for calls in segments if len(calls) > 1]


def _may_be_fused(op: CallTIROp, facts: dict[str, KernelFacts]) -> bool:
    name = op.callee.string_value()
    if name not in facts:
        func = find_prim_func(op, op.callee)
        facts[name] = KernelFacts(OpPattern.OPAQUE, OpPattern.OPAQUE) if func is None else KernelFacts.of(func)
    types = (*op.arguments.types, *op.res.types)
    known = all(isinstance(info, PrimType) or _is_known(info) for info in types)
    return known and not op.shapes and facts[name].pattern is not OpPattern.OPAQUE


def _is_known(info: object) -> bool:
    return isinstance(info, TensorType) and info.known_dims is not None and info.dtype is not None


def _fuse(calls: Sequence[CallTIROp], facts: Mapping[str, KernelFacts]) -> None:
    graph = _Graph(calls, facts)
    for members in group([graph.node(call) for call in calls]):
        _make_group([calls[index] for index in members])


@dataclass
class _Graph:
    """The calls as nodes."""

    calls: Sequence[CallTIROp]
    facts: Mapping[str, KernelFacts]
    numbers: dict[Operation, int] = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = {call: number for number, call in enumerate(self.calls)}

    def node(self, call: CallTIROp) -> Node:
        facts = self.facts[call.callee.string_value()]
        inputs: list[tuple[int, OpPattern]] = []
        for argument in call.arguments:
            if isinstance(argument, OpResult) and argument.op in self.numbers:
                inputs.append((self.numbers[argument.op], _edge(call, argument, facts)))
        escapes = any(use.operation not in self.numbers for result in call.res for use in result.uses)
        return Node(facts.pattern, tuple(inputs), escapes, facts.moves, facts.contracts, facts.ends, facts.decodes)


def _edge(call: CallTIROp, argument: OpResult, facts: KernelFacts) -> OpPattern:
    """How a call uses an argument."""
    if facts.takes > OpPattern.BROADCAST:
        return facts.takes
    shapes = {result.type.known_dims for result in call.res}
    same = isinstance(argument.type, TensorType) and shapes == {argument.type.known_dims}
    return OpPattern.ELEMENTWISE if same else OpPattern.BROADCAST


def _make_group(members: Sequence[CallTIROp]) -> None:
    """Moves calls into a group instead of the last one."""
    last = members[-1]
    marker = InsertPoint.after(last)
    outputs = [result for result in last.res if result.uses] or list(last.res)
    block = Block()
    for member in members:
        member.detach()
        block.add_op(member)
    block.add_op(YieldOp(*outputs))
    fused = FusedOp(block)
    for op in (fused, block.last_op):
        if op is not None:
            op.location = fused_location(member.location for member in members)
    Rewriter.insert_op(fused, marker)
    for output, result in zip(outputs, fused.results, strict=True):
        result.name_hint = output.name_hint
        output.replace_uses_with_if(result, lambda use: use.operation.parent is not block)
