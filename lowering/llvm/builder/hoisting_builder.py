"""Common subexpression elimination and loop-invariant code motion while an llvm function is built.

A pure op is emitted once for all requests that it dominates, and before the loops in which it is invariant. LLVM's
passes that do so take longer than all its other passes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowering.llvm.builder.block_tree import BlockTree
from lowering.llvm.builder.function_builder import FunctionBuilder
from lowering.llvm.builder.vector_types import is_vector
from tir_dialect.new_ops import new_op


class HoistingBuilder(FunctionBuilder):
    """The blocks of one function, and what is known to be computed in them."""

    def __init__(self, argument_types: Sequence[Attribute]) -> None:
        super().__init__(argument_types)
        self.tree = BlockTree(self.entry)
        self._computed: dict[tuple[object, ...], SSAValue] = {}
        """By kind, facts and the identities of the operands, which is quicker than their hashes."""
        self._movable: list[SSAValue] = []

    @override
    def finish(self) -> Region:
        """The body of the function, without dead ops."""
        for value in reversed(self._movable):
            if value.first_use is None and isinstance(value.owner, Operation):
                value.owner.detach()
                value.owner.erase()
        return super().finish()

    @override
    def start(self, block: Block) -> None:
        self.tree.start(block)
        super().start(block)

    @override
    def branch(self, target: Block, *values: SSAValue) -> Operation:
        self.tree.branch(self.block, target)
        return super().branch(target, *values)

    @override
    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block, *values: SSAValue) -> Operation:
        self.tree.branch(self.block, then)
        self.tree.branch(self.block, otherwise)
        return super().branch_if(condition, then, otherwise, *values)

    def once(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = {},
        fact: object = None,
    ) -> SSAValue:
        """The result of a pure op; `fact` identifies everything about it that its operands do not."""
        key = (kind, fact, *map(id, operands))
        found = self._computed.get(key)
        if found is None or not self.is_there(found):
            op = new_op(kind, operands, (result_type,), properties, self.location)
            self._insert_early(op, operands, is_vector(result_type))
            found = self._computed[key] = op.results[0]
            self._movable.append(found)
        return found

    def is_there(self, value: SSAValue) -> bool:
        """Whether a value dominates the current block."""
        block = self.tree.block_of(value)
        return block is not None and self.tree.dominates(block, self.block)

    def _insert_early(self, op: Operation, operands: Sequence[SSAValue], is_vector: bool) -> None:
        number = max(map(self.tree.number_of, operands), default=0)
        home = self.tree.home(number, self.block, levels=1 if is_vector else None)
        last = home.last_op
        if home is self.block or last is None:
            home.add_op(op)
        else:
            home.insert_ops_before((op,), last)
