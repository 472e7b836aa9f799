"""`fuse-ops`: calls of kernels that can be computed together become a group.

Which computations are fused follows from their patterns and post-dominators. The algorithm is that of Apache TVM
(`src/relax/transform/fuse_ops.cc`, `GraphPartitioner`): a computation joins its immediate post-dominator, if everything
on the paths in between can be fused too. The graph is plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.structure.contraction import is_byte_depthwise
from lowering.kernels.structure.decoding import decodes
from lowering.kernels.structure.padding import pads_bytes
from lowering.locations import fused_location
from relax_dialect.analysis.effects import may_be_observed
from relax_dialect.ops.call_tir import CallDPSPackedOp, CallTIROp
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.collective import FINISH
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, combined, computation_patterns, op_pattern
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind

ANNOTATION = "op_pattern"
"""The attribute of a PrimFunc that says its pattern instead of the analysis."""


@dataclass(frozen=True)
class KernelFacts:
    """The patterns of a kernel."""

    pattern: OpPattern
    """That of the whole: what may follow it."""
    takes: OpPattern
    """How it uses its operands: the hardest of its computations."""
    moves: bool = False
    """Whether it only gives dimensions another order."""
    ends: bool = False
    """Whether it writes its result part by part, so that nothing can follow it in place."""
    decodes: bool = False
    """Whether it does nothing but decode weights."""
    pads: bool = False
    """Whether it does nothing but put a constant around bytes."""
    slides: bool = False
    """Whether it is a depthwise convolution of bytes, which needs no padding in memory."""

    @property
    def contracts(self) -> bool:
        """Whether a computation of it sums products."""
        return self.takes is OpPattern.OUT_ELEMENTWISE_FUSABLE

    @staticmethod
    def of(func: PrimFuncOp) -> KernelFacts:
        """As annotated, else as analysed."""
        annotated = func.attributes.get(ANNOTATION)
        if isinstance(annotated, StringAttr) and annotated.data.upper() in OpPattern.__members__:
            pattern = OpPattern[annotated.data.upper()]
            return KernelFacts(pattern, pattern)
        patterns = computation_patterns(func)
        takes = max(patterns)
        if takes is OpPattern.OPAQUE and _joins(func):
            return KernelFacts(OpPattern.INJECTIVE, OpPattern.INJECTIVE, ends=True)
        if takes is OpPattern.OPAQUE:
            return KernelFacts(takes, takes)
        is_injective = takes is OpPattern.INJECTIVE
        return KernelFacts(
            combined(patterns),
            takes,
            moves=is_injective and _moves(func),
            decodes=is_injective and decodes(func),
            pads=is_injective and pads_bytes(func),
            slides=takes is OpPattern.OUT_ELEMENTWISE_FUSABLE and is_byte_depthwise(func),
        )


def _moves(func: PrimFuncOp) -> bool:
    """Whether each element is one element of the operand, at the same indices in another order.

    Bytes are moved by a kernel of their own: products read them by words, in the order in which they are added up.
    """
    accesses = [op for op in func.body.walk() if isinstance(op, LoadOp | StoreOp | AllocBufferOp)]
    if len(accesses) != 2:
        return False
    load, store = accesses
    if not isinstance(load, LoadOp) or not isinstance(store, StoreOp) or store.value is not load.result:
        return False
    if byte_size(load.buffer_type.dtype) == 1:
        return False
    space = IndexSpace(func)
    block = store.parent_op()
    plain = isinstance(block, BlockOp) and block.condition is None
    positions = [space.dim_of(index) for index in load.indices]
    same = {*positions} == {space.dim_of(index) for index in store.indices}
    return plain and same and None not in positions and len(set(positions)) == len(positions) == len(store.indices)


def _joins(func: PrimFuncOp) -> bool:
    """Whether each block copies a whole operand to its position in the one result."""
    stores = [op for op in func.body.walk() if isinstance(op, StoreOp)]
    blocks = [store.parent_op() for store in stores]
    if len(stores) < 2 or func.may_alias is not None or len({store.buffer for store in stores}) > 1:
        return False
    space = IndexSpace(func)
    return all(
        isinstance(block, BlockOp) and _copies(block, store, space) for block, store in zip(blocks, stores, strict=True)
    )


def _copies(block: BlockOp, store: StoreOp, space: IndexSpace) -> bool:
    """Whether a block only copies each element of an operand to a position that moves with it."""
    load = store.value.owner
    if not isinstance(load, LoadOp) or load.parent_op() is not block or block.condition is not None:
        return False
    iterators = [each.value for each in block.iterators if each.kind is IteratorKind.SPATIAL]
    if list(load.indices) != iterators or len(iterators) < len(block.iterators) or load.buffer is store.buffer:
        return False
    positions = [space.dim_of(index) for index in store.indices]
    moves = [space.dim_of(each) for each in iterators]
    symbols = {name for move in moves if move is not None for name in move.symbols}
    moving = [position for position in positions if position is not None and not symbols.isdisjoint(position.symbols)]
    if None in positions or None in moves or len(moving) != len(moves):
        return False
    starts = [position - move for position, move in zip(moving, moves, strict=True) if move is not None]
    return all(symbols.isdisjoint(start.symbols) for start in starts)


class AnnotateOpPatternPass(ModulePass):
    """Annotates each PrimFunc with its operator pattern, which can be inspected and changed before `fuse-ops`.

    Before:

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    ```

    After:

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>)
        attributes {op_pattern = "elementwise"} { ... }
    ```

    The patterns are `elementwise`, `broadcast`, `injective`, `reduction`, `out_elementwise_fusable` and `opaque`. What
    is there already stays, hence idempotent. `fuse-ops` does not need the pass: without annotations it analyses.
    """

    name = "annotate-op-pattern"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotates every PrimFunc."""
        for func in op.ops:
            if isinstance(func, PrimFuncOp) and ANNOTATION not in func.attributes:
                func.attributes[ANNOTATION] = StringAttr(op_pattern(func).name.lower())


MOST_IN_A_GROUP = 256
"""Larger kernels take long to compile and gain nothing."""

FARTHEST = 512
"""How many computations are looked at to find where uses meet; beyond, they count as not meeting."""


@dataclass(frozen=True)
class Node:
    """One computation. Nodes stand in program order."""

    pattern: OpPattern
    """What may follow it."""
    inputs: tuple[tuple[int, OpPattern], ...]
    """The nodes whose results it uses, and how: elementwise, broadcast, or as hard as it is itself."""
    escapes: bool = False
    """Whether somebody who is no node uses a result."""
    moves: bool = False
    """Whether it only gives dimensions another order."""
    contracts: bool = False
    """Whether it sums products, and can read its operands in any order of dimensions."""
    ends: bool = False
    """Whether nothing may follow it: it writes its result part by part."""
    decodes: bool = False
    """Whether it only decodes weights: a contraction decodes them as it reads them."""
    pads: bool = False
    """Whether it only puts a constant around bytes."""
    slides: bool = False
    """Whether it is a convolution that reads its data without padding."""


def group(nodes: Sequence[Node]) -> list[list[int]]:
    """The nodes of each group of at least two, in order; the last one is the only one that is used outside."""
    partition = _Partition(nodes)
    partition.join_decoded_operands()
    partition.join_padded_operands()
    for phase in (0, 1):
        for index in range(len(nodes)):
            partition.join_successor(index, phase)
    partition.join_moved_operands()
    return partition.groups()


@dataclass(frozen=True)
class _Meeting:
    """Where all uses of a node lead to first, and the hardest use on the way."""

    node: int
    pattern: OpPattern
    depth: int


class _Partition:
    def __init__(self, nodes: Sequence[Node]):
        self._nodes = nodes
        self._users: list[list[tuple[int, OpPattern]]] = [[] for _ in nodes]
        for index, node in enumerate(nodes):
            for source, pattern in node.inputs:
                self._users[source].append((index, pattern))
        self._meetings: list[_Meeting | None] = [None] * len(nodes)
        for index in reversed(range(len(nodes))):
            self._meetings[index] = self._meeting(index)
        self._parents = list(range(len(nodes)))
        self._patterns = [node.pattern for node in nodes]
        self._sizes = [1] * len(nodes)

    def groups(self) -> list[list[int]]:
        """The members of each group with more than one."""
        members: dict[int, list[int]] = {}
        for index in range(len(self._nodes)):
            members.setdefault(self._root(index), []).append(index)
        return [each for each in members.values() if len(each) > 1]

    # Post-dominators

    def _depth(self, index: int) -> int:
        meeting = self._meetings[index]
        return 0 if meeting is None else meeting.depth

    def _meeting(self, index: int) -> _Meeting | None:
        users = self._users[index]
        if self._nodes[index].escapes or not users:
            return None
        (position, pattern), *rest = users
        for user, edge in rest:
            found = self._meet(position, user)
            if found is None:
                return None
            position, pattern = found[0], max(pattern, edge, found[1])
        return _Meeting(position, pattern, self._depth(position) + 1)

    def _meet(self, left: int, right: int) -> tuple[int, OpPattern] | None:
        """The first node that both lead to, and the hardest use on the ways."""
        pattern = OpPattern.ELEMENTWISE
        for _ in range(FARTHEST):
            if left == right:
                return left, pattern
            if self._depth(left) < self._depth(right):
                left, right = right, left
            step = self._meetings[left]
            if step is None:
                return None
            left, pattern = step.node, max(pattern, step.pattern)
        return None

    # Groups

    def _root(self, index: int) -> int:
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index

    def join_successor(self, index: int, phase: int) -> None:
        """Joins a node with the one that all its uses lead to, if what is between can be computed in place."""
        meeting = self._meetings[index]
        if meeting is None or self._nodes[index].ends or self._root(index) == self._root(meeting.node):
            return
        pattern = self._patterns[self._root(index)]
        if pattern in (OpPattern.OUT_ELEMENTWISE_FUSABLE, OpPattern.REDUCTION):
            allowed = phase == 0 and meeting.pattern is OpPattern.ELEMENTWISE
            between, last = OpPattern.BROADCAST, OpPattern.BROADCAST
        elif pattern <= OpPattern.BROADCAST:
            allowed = meeting.pattern <= OpPattern.REDUCTION
            between, last = OpPattern.INJECTIVE, OpPattern.OUT_ELEMENTWISE_FUSABLE
        elif pattern is OpPattern.INJECTIVE:
            allowed, between, last = phase == 1, OpPattern.INJECTIVE, OpPattern.INJECTIVE
        else:
            return
        way = self._way(index, meeting.node, between) if allowed else None
        if way is not None and self._patterns[self._root(meeting.node)] <= last:
            self._join([index, *way], meeting.node)

    def _way(self, first: int, last: int, hardest: OpPattern) -> list[int] | None:
        """The nodes between two nodes; `None` if one of them is in a group that is harder."""
        found: dict[int, None] = {}
        pending = [user for user, _ in self._users[first]]
        while pending:
            index = pending.pop()
            if index == last or index in found:
                continue
            if self._patterns[self._root(index)] > hardest or len(found) > MOST_IN_A_GROUP or self._nodes[index].ends:
                return None
            found[index] = None
            pending += [user for user, _ in self._users[index]]
        return list(found)

    def _join(self, indices: Sequence[int], target: int) -> None:
        roots = {self._root(index) for index in (*indices, target)}
        if sum(self._sizes[root] for root in roots) > MOST_IN_A_GROUP:
            return
        into = self._root(target)
        for root in roots - {into}:
            self._parents[root] = into
            self._patterns[into] = max(self._patterns[into], self._patterns[root])
            self._sizes[into] += self._sizes[root]

    def join_decoded_operands(self) -> None:
        """Weights are decoded by the contraction that reads them, also if their dimensions get another order."""
        for index, node in enumerate(self._nodes):
            if not node.decodes:
                continue
            chain = [index]
            while (user := self._only_user(chain[-1])) is not None and self._nodes[user].moves:
                chain.append(user)
            if user is not None and self._nodes[user].contracts:
                self._join(chain, user)

    def join_padded_operands(self) -> None:
        """Data are padded by the convolution that reads them."""
        for index, node in enumerate(self._nodes):
            user = self._only_user(index) if node.pads else None
            if user is not None and self._nodes[user].slides:
                self._join([index], user)

    def _only_user(self, index: int) -> int | None:
        """The only node that uses a node, if there is one."""
        users = {user for user, _ in self._users[index]}
        return users.pop() if len(users) == 1 and not self._nodes[index].escapes else None

    def join_moved_operands(self) -> None:
        """A contraction reads an operand where it was before its dimensions got another order."""
        for index, node in enumerate(self._nodes):
            users = [user for user, _ in self._users[index]]
            alone = self._sizes[self._root(index)] == 1 and not node.escapes
            if node.moves and alone and len(users) == 1 and self._nodes[users[0]].contracts:
                self._join([index], users[0])


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
    rearrangement reads, or a concatenation, which ends its group; a changed order of dimensions before a
    product, and padding of bytes before a depthwise convolution. The group stands where its last call
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
                        graph = _Graph(calls, facts)
                        for members in group([graph.node(call) for call in calls]):
                            _make_group([calls[index] for index in members])


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
            name = op.callee.string_value()
            if name not in facts:
                func = find_prim_func(op, op.callee)
                facts[name] = KernelFacts(OpPattern.OPAQUE, OpPattern.OPAQUE) if func is None else KernelFacts.of(func)
            types = (*op.arguments.types, *op.res.types)
            known = all(isinstance(info, PrimType) or _is_known(info) for info in types)
            if known and not op.shapes and facts[name].pattern is not OpPattern.OPAQUE:
                segments[-1].append(op)
        elif segments[-1] and (may_be_observed(op) or _ends_exchange(op)):
            segments.append([])
    return [calls for calls in segments if len(calls) > 1]


def _ends_exchange(op: Operation) -> bool:
    """Whether an op waits for other workers: what has been put before it would be computed after it."""
    return isinstance(op, CallDPSPackedOp) and op.symbol.data.startswith(FINISH)


def _is_known(info: object) -> bool:
    return isinstance(info, TensorType) and info.known_dims is not None and info.dtype is not None


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
        return Node(
            facts.pattern,
            tuple(inputs),
            escapes,
            facts.moves,
            facts.contracts,
            facts.ends,
            facts.decodes,
            facts.pads,
            facts.slides,
        )


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
