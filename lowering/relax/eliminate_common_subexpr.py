"""`eliminate-common-subexpr`: equal computations are done once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from relax_dialect.analysis.aliases import holds_memory
from relax_dialect.analysis.effects import may_be_written, may_write
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.traits import Loop, Unpacks, impurity_of

_Known: TypeAlias = "MutableMapping[Hashable, Operation]"
"""The ops whose results may be used here, by what they compute."""


class EliminateCommonSubexprPass(ModulePass):
    """Replaces an op by an equal one that comes before it.

    Before:

    ```mlir
    %0 = relax.exp %x
    %1 = relax.exp %x
    %2 = relax.add %0, %1
    ```

    After:

    ```mlir
    %0 = relax.exp %x
    %2 = relax.add %0, %0
    ```

    Ops are equal that have the same name, operands, properties, attributes and result types, and whose operands have
    the same elements: nobody writes into their memory between the two, or ever. The one that stays is in the same block
    or around it, so that it has run. Only ops without effects and regions are looked at; these are left alone:

    * an op that binds symbols;
    * an op whose result somebody may write into, as `relax.call_tir_inplace` does: the other use would see it;
    * an op that unpacks weights: the kernel of each use decodes them itself;
    * in a closure, an op that is equal to one outside: it would have to be captured.

    One walk of its own, not xDSL's `cse`: that takes any write to change all memory, and lets a closure capture what is
    outside (`lowering.xdsl_compat`). Idempotent; refuses nothing; what is kept keeps its location.
    """

    name = "eliminate-common-subexpr"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _Visit(func).block(func.body.block, {})


class _Visit:
    """One walk through a function."""

    def __init__(self, func: FuncOp):
        self._pure = func.function_type.pure
        self._written: dict[SSAValue, bool] = {}
        self._age = 0
        """Grows with every op that may write: of equal ops that read what it may have written, each has its own. What
        one region writes, another one of the same op does not read: each begins with the age before the op.
        """

    def block(self, block: Block, known: _Known) -> None:
        """Replaces ops of a block, and in regions of its ops, by those that are known before them."""
        for op in block.ops:
            if op.regions:
                writes = not self._pure and may_write(op)
                if writes and op.has_trait(Loop):  # what the last iteration has written is read by the next one
                    self._age += 1
                start = self._age
                for region in op.regions:
                    self._age = start
                    for inner in region.blocks:
                        around = (known,) if not isinstance(op, ClosureOp) else ()
                        self.block(inner, ChainMap[Hashable, Operation]({}, *around))
                self._age = start + writes
            elif self._is_candidate(op):
                # What an op computes. Attributes are compared by value, operands by identity.
                properties = frozenset(op.properties.items())
                changes = not self._pure and any(self._may_be_written(operand) for operand in _memory(op.operands))
                age = self._age if changes else -1
                first = known.setdefault(
                    (op.name, op.operands, tuple(op.result_types), properties, frozenset(op.attributes.items()), age),
                    op,
                )
                if first is not op:
                    for result, other in zip(op.results, first.results, strict=True):
                        other.name_hint = other.name_hint or result.name_hint
                    Rewriter.replace_op(op, [], first.results)
            elif not self._pure and may_write(op):
                self._age += 1

    def _is_candidate(self, op: Operation) -> bool:
        if op.has_trait(IsTerminator) or op.has_trait(Unpacks):
            return False
        if symbols_witnessed(op) or isinstance(op, CallTIRInplaceOp):
            return False
        return impurity_of(op) is None and not any(self._may_be_written(result) for result in _memory(op.results))

    def _may_be_written(self, value: SSAValue) -> bool:
        """Whether somebody may write into a value. What replaces another is written no more than both were."""
        if value not in self._written:
            self._written[value] = may_be_written(value)
        return self._written[value]


def _memory(values: Sequence[SSAValue]) -> Iterator[SSAValue]:
    return (value for value in values if holds_memory(value))
