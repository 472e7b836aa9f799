"""What fusion asks about a PrimFunc."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns, op_pattern
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp

ANNOTATION = "op_pattern"
"""The attribute of a PrimFunc that says its pattern in the place of the analysis."""


@dataclass(frozen=True)
class KernelFacts:
    """The patterns of a kernel."""

    pattern: OpPattern
    """That of the whole: what may follow it."""
    takes: OpPattern
    """How it uses its operands: the hardest of its computations."""
    moves: bool = False
    """Whether it only gives dimensions another order."""

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
        takes = max(computation_patterns(func))
        if takes is OpPattern.OPAQUE:
            return KernelFacts(takes, takes)
        return KernelFacts(op_pattern(func), takes, takes is OpPattern.INJECTIVE and _moves(func))


def _moves(func: PrimFuncOp) -> bool:
    """Whether each element is one element of the operand, at the same indices in another order."""
    accesses = [op for op in func.body.walk() if isinstance(op, LoadOp | StoreOp | AllocBufferOp)]
    if len(accesses) != 2:
        return False
    load, store = accesses
    if not isinstance(load, LoadOp) or not isinstance(store, StoreOp) or store.value is not load.result:
        return False
    space = IndexSpace(func)
    block = store.parent_op()
    plain = isinstance(block, BlockOp) and block.condition is None
    places = [space.dim_of(index) for index in load.indices]
    same = {*places} == {space.dim_of(index) for index in store.indices}
    return plain and same and None not in places and len(set(places)) == len(places) == len(store.indices)
