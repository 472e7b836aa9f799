"""Index arithmetic of one llvm function as sums of products, and addresses; each value is computed once, outside of the
loops in which it is invariant.

The terms of a sum are ordered by where they become known, outermost loop first, so that each partial sum is
loop-invariant as far out as possible and shared; terms that cancel are not computed at all.

Common subexpression elimination and loop-invariant code motion happen while the function is built. A pure op is emitted
once for all requests that it dominates, and before the loops in which it is invariant. LLVM's passes that do so take
longer than all its other passes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from typing_extensions import override
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowering.llvm.function_builder import POINTER, BlockTree, FunctionBuilder, Loop, is_vector
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.memory import i32_array


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


NO_SIGNED_WRAP = IntegerAttr(1, i32)
WRAPS = IntegerAttr(0, i32)
_FITS: Mapping[str, Attribute] = {"overflowFlags": NO_SIGNED_WRAP}
_MAY_WRAP: Mapping[str, Attribute] = {"overflowFlags": WRAPS}
_STEP: Mapping[str, Attribute] = {"rawConstantIndices": i32_array(llvm.GEP_USE_SSA_VAL), "noWrapFlags": WRAPS}
_INSIDE: Mapping[str, Attribute] = {"inbounds": UnitAttr()}

Terms: TypeAlias = "tuple[tuple[SSAValue, int], ...]"
"""Values with their factors."""


class IndexBuilder(HoistingBuilder):
    """Arithmetic of i64, or vectors of it; numbers fold.

    That of sizes and loop variables has no signed overflow, since the sizes have been checked. That of numbers from
    memory, or from scalar arguments, wraps around.
    """

    def __init__(self, argument_types: Sequence[Attribute]) -> None:
        super().__init__(argument_types)
        self._sums: dict[SSAValue, tuple[Terms, int]] = {}
        """Terms and the number that is added to them."""
        self._totals: dict[tuple[int, ...], SSAValue] = {}
        """Sums by the number that is added, and the identities and factors of the terms."""
        self._ranks: dict[SSAValue, tuple[int, int]] = {}
        self._stack: set[SSAValue] = set()
        """Addresses in the function's own frame."""
        self._small: dict[SSAValue, bool] = {}
        """Whether a number is computed from sizes and loop variables only."""

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The sum."""
        return self._index(llvm.AddOp, lhs, rhs) if is_vector(lhs.type) else self._combined(lhs, rhs, 1)

    def sub(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference."""
        return self._index(llvm.SubOp, lhs, rhs) if is_vector(lhs.type) else self._combined(lhs, rhs, -1)

    def mul(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The product; of a sum whose parts are known at different times, the sum of products."""
        if is_vector(lhs.type):
            return self._index(llvm.MulOp, lhs, rhs)
        if self.known_integer(lhs) is not None:
            lhs, rhs = rhs, lhs
        number = self.known_integer(rhs)
        if number is not None:
            terms, rest = self._parts(lhs)
            if len(terms) > 1 and not rest and number and not self._are_apart(terms):
                return self._index(llvm.MulOp, lhs, self.integer(number))
            return self._total({term: factor * number for term, factor in terms}, rest * number)
        for left, right in ((lhs, rhs), (rhs, lhs)):
            terms, rest = self._parts(left)
            if self._are_apart(terms) or (not rest and terms[0][1] != 1 and len(terms) == 1):
                products = {self._product(term, right): factor for term, factor in terms}
                return self._total(products | ({right: rest} if rest else {}), 0)
        return self._product(lhs, rhs)

    def _combined(self, lhs: SSAValue, rhs: SSAValue, sign: int) -> SSAValue:
        (terms, rest), (others, more) = self._parts(lhs), self._parts(rhs)
        if not others and not more:
            return lhs
        found = dict(terms)
        for term, factor in others:
            found[term] = found.get(term, 0) + sign * factor
        return self._total(found, rest + sign * more)

    def _product(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._index(llvm.MulOp, *sorted((lhs, rhs), key=self._rank))

    def _parts(self, value: SSAValue) -> tuple[Terms, int]:
        known = self.known_integer(value)
        return ((), known) if known is not None else self._sums.get(value) or (((value, 1),), 0)

    def _total(self, found: Mapping[SSAValue, int], rest: int) -> SSAValue:
        """The sum of multiples and a number."""
        terms = [each for each in found.items() if each[1]]
        if not terms:
            return self.integer(rest)
        if len(terms) == 1 and terms[0][1] == 1 and not rest:
            self._rank(terms[0][0])  # among others it stands where it would if this were a sum
            return terms[0][0]
        key = (rest, *[part for term, factor in terms for part in (id(term), factor)])
        total = self._totals.get(key)
        if total is None or not self.is_there(total):
            total = self._totals[key] = self._new_total(terms, rest)
        return total

    def _new_total(self, terms: list[tuple[SSAValue, int]], rest: int) -> SSAValue:
        terms.sort(key=lambda each: self._rank(each[0]))
        total = self._scaled(*terms[0])
        for count, (term, factor) in enumerate(terms[1:], 2):
            if factor == -1:
                total = self._index(llvm.SubOp, total, term)
            else:
                total = self._index(llvm.AddOp, total, self._scaled(term, factor))
            self._sums[total] = tuple(terms[:count]), 0
        if rest:
            total = self._index(llvm.AddOp, total, self.integer(rest))
            self._sums[total] = tuple(terms), rest
        return total

    def _scaled(self, term: SSAValue, factor: int) -> SSAValue:
        if factor == 1:
            return term
        scaled = self._index(llvm.MulOp, term, self.integer(factor))
        self._sums[scaled] = ((term, factor),), 0
        return scaled

    def _index(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        is_small = self.is_small(lhs) and self.is_small(rhs)
        result = self.once(kind, (lhs, rhs), lhs.type, _FITS if is_small else _MAY_WRAP)
        self._small[result] = is_small
        return result

    def note_small(self, argument: SSAValue, is_small: bool = True) -> None:
        """Says of an argument of a block that it is a size, or a loop variable between such numbers."""
        self._small[argument] = is_small

    def is_small(self, value: SSAValue) -> bool:
        """Whether a number is computed from sizes and loop variables only, so that arithmetic with it fits."""
        found = self._small.get(value)
        return self._comes_of_small(value) if found is None else found

    def _comes_of_small(self, value: SSAValue) -> bool:
        known, pending = self._small, [value]
        while pending:
            current = pending[-1]
            operands = () if isinstance(current.owner, Block) else current.owner.operands
            missing = [operand for operand in operands if operand not in known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if current not in known:
                computed = not isinstance(current.owner, Block | llvm.CallOp) and current.type != POINTER
                known[current] = computed and all(known[operand] for operand in operands)
        return known[value]

    def _rank(self, value: SSAValue) -> tuple[int, int]:
        """What is known first comes first."""
        found = self._ranks.get(value)
        if found is None:
            found = self._ranks[value] = self.tree.number_of(value), len(self._ranks)
        return found

    def _are_apart(self, terms: Terms) -> bool:
        """Whether some are known outside of loops in which others are not."""
        return len({self._home(term) for term, _ in terms}) > 1

    def _home(self, value: SSAValue) -> Block:
        return self.tree.home(self.tree.number_of(value), self.block)

    # Addresses.

    def element(self, base: SSAValue, index: SSAValue, type_: Attribute, *, inside: bool = True) -> SSAValue:
        """The address of `base[index]` in an array of `type_`, which has such an element unless not `inside`.

        The way there has a step for each loop that has a part in it, and one for a number.
        """
        terms, rest = self._parts(index)
        steps = [self._total(dict(part), 0) for _, part in groupby(terms, lambda each: self._home(each[0]))]
        if rest:
            steps.append(self.integer(rest))
        address = base
        for step in steps:
            address = self._step(address, step, type_, inside and len(steps) == 1)
        if base in self._stack:
            self._stack.add(address)
        return address

    def _step(self, base: SSAValue, index: SSAValue, type_: Attribute, inside: bool) -> SSAValue:
        properties = {**_STEP, "elem_type": type_, **(_INSIDE if inside else {})}
        return self.once(llvm.GEPOp, (base, index), POINTER, properties, (id(type_), inside))

    def stack(self, type_: Attribute, alignment: int) -> SSAValue:
        """Memory in the function's frame; where the builder stands has to be outside of loops."""
        properties: dict[str, Attribute] = {"alignment": IntegerAttr(alignment, i64), "elem_type": type_}
        address = self.make(llvm.AllocaOp, (self.integer(1),), POINTER, properties)
        self._stack.add(address)
        return address

    def note_read(self, address: SSAValue, value: SSAValue) -> None:
        """Says that memory is read, for the loop around."""
        loop = self._loop_of_each(address)
        if loop is not None:
            loop.read.append(value)

    def note_write(self, address: SSAValue) -> None:
        """Says that memory is written, for the loop around."""
        loop = self._loop_of_each(address)
        if loop is not None:
            loop.writes_one_address = True

    def _loop_of_each(self, address: SSAValue) -> Loop | None:
        """The innermost loop, if each of its iterations accesses the same address here, which is not on the stack."""
        if not self.tree.loops or address in self._stack:
            return None
        loop = self.tree.loops[-1]
        return loop if self.block is loop.head and not self.tree.changes(loop, address) else None
