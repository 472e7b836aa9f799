"""What fusion needs to know about a PrimFunc, and `annotate-op-pattern`, which writes how results depend on
operands.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from lowering.kernels.cpu.structure.contraction import is_byte_depthwise
from lowering.kernels.cpu.structure.decoding import decodes
from lowering.kernels.cpu.structure.padding import pads_bytes
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
