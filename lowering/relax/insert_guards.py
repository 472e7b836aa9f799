"""`insert-guards`: what inference could neither prove nor refute is checked at run time, and stays checked when the op
is rewritten away.

`insert-guards` makes the checks of the ops that it meets. A rewrite before it may remove an op, or let one lose its
last use, whose replacement says nothing of the sizes that the op wanted to be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.lower_shapes import open_checks
from lowering.rewriting import PatternIndex, apply_patterns
from relax_dialect.inference import DimCheck, DimRelation, InfersResultTypes
from relax_dialect.ops.binding import GuardOp, MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import ShapeType, TensorType


class InsertGuardsPass(ModulePass):
    """Puts a `relax.guard` on the first tensor operand of every op with an open question about its dimensions, or on
    what it makes if it has none.

    Before:

    ```mlir
    %z = relax.add %x, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    After:

    ```mlir
    %x_1 = relax.guard %x, broadcast n, m, "dimension 0 of ..."
    %z = relax.add %x_1, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    In a dataflow region, where nothing has effects, a guard of sizes that do not broadcast is on what the operand is
    made of, as early as the symbols are known, so that it is not between ops that can be fused.

    So are the sizes that a PrimFunc of the program is called with, where they may not be what its buffers say.

    Has to run before the ops that know of their checks are replaced. Idempotent: an operand that is guarded by the same
    check is not guarded again.
    """

    name = "insert-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every op that infers its results, and every call of a PrimFunc."""
        for inner in list(op.walk()):
            if isinstance(inner, InfersResultTypes):
                _guard(inner, inner.runtime_checks())
            elif isinstance(inner, CallTIROp | CallTIRInplaceOp):
                _guard(inner, open_checks(inner))


def _guard(op: Operation, checks: Iterable[DimCheck]) -> None:
    index = next((i for i, operand in enumerate(op.operands) if isinstance(operand.type, TensorType)), None)
    for check in checks:
        if index is not None:
            guard_operand(op, index, check)
        elif isinstance(op, DestinationPassing):
            sides = f"{check.left} and {check.right}"
            fail(op, f"has no tensor argument to check {check.message} with: {sides} may differ", _NO_TENSOR)
        else:
            for result in op.results:
                value, last = result, op
                while isinstance(user := value.get_user_of_unique_use(), GuardOp) and not user.makes(check):
                    value, last = user.result, user
                if not isinstance(user, GuardOp):
                    guard = _insert(op, GuardOp.of(value, check), InsertPoint.after(last))
                    value.replace_uses_with_if(guard.result, lambda use, guard=guard: use.operation is not guard)


_NO_TENSOR = "write the same dimension in both places"


def guard_operand(op: Operation, index: int, check: DimCheck) -> None:
    """Guards an operand, in a dataflow region the earliest value that it is made of: what is between can be fused."""
    position, symbols = op, check.left.symbols | check.right.symbols
    # Kernels of few operands that may be broadcast have loops for each way; of many they would not.
    broadcasts = check.relation is DimRelation.BROADCAST
    while True:
        value = position.operands[index]
        while isinstance(maker := value.owner, GuardOp):
            if maker.makes(check):
                return
            value = maker.value
        earlier = None if broadcasts else _operand_with(position, maker, symbols)
        if earlier is None or not isinstance(maker, Operation):
            break
        position, index = maker, earlier
    guard = _insert(op, GuardOp.of(position.operands[index], check), InsertPoint.before(position))
    position.operands[index] = guard.result


def _operand_with(op: Operation, maker: Operation | Block, symbols: frozenset[str]) -> int | None:
    """The first tensor operand of what makes a value for an op, if all symbols are known there as well."""
    if not isinstance(maker, Operation) or not isinstance(maker.parent_op(), DataflowOp) or maker.parent != op.parent:
        return None
    known = {name for operand in maker.operands for name in free_symbols(operand.type)} | _symbols_around(maker)
    if isinstance(maker, MatchCastOp) or not symbols <= known:
        return None
    return next((i for i, operand in enumerate(maker.operands) if isinstance(operand.type, TensorType)), None)


def _symbols_around(op: Operation) -> set[str]:
    """The symbols that the arguments of the function around bind."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return set() if parent is None else set(parent.function_type.symbol_names)


def _insert(op: Operation, guard: GuardOp, point: InsertPoint) -> GuardOp:
    inherit_location(op, guard)
    guard.result.name_hint = guard.value.name_hint
    Rewriter.insert_op(guard, point)
    return guard


def apply_graph_patterns(
    scope: Operation, patterns: Sequence[RewritePattern] | PatternIndex, *, reverse: bool = False
) -> bool:
    """`apply_patterns` of rewrites that come before `insert-guards`: no run-time check of an op that they remove is
    lost.
    """
    return apply_patterns(scope, patterns, reverse=reverse, record=KeptChecks())


class KeptChecks:
    """The checks of the ops that a rewrite removes; those that no new op makes become guards of the new values."""

    def __init__(self) -> None:
        self._inserted: list[Operation] = []
        self._removed: dict[DimCheck, SSAValue | None] = {}
        self._replaced: list[_Replaced] = []

    def listener(self) -> PatternRewriterListener:
        """What the rewriter tells what it does."""
        return PatternRewriterListener(
            operation_insertion_handler=[self._inserted.append],
            operation_replacement_handler=[self._note_replacement],
            operation_removal_handler=[self._note_removal],
        )

    def _note_replacement(self, op: Operation, results: Sequence[SSAValue | None]) -> None:
        block = op.parent
        if block is not None:
            pairs = zip(op.results, results, strict=True)
            self._replaced += [
                _Replaced(new, tuple(old.uses), block)
                for old, new in pairs
                if new is not None and isinstance(new.type, TensorType)
            ]

    def _note_removal(self, op: Operation) -> None:
        for check in _checks(op):
            self._removed[check] = next(
                (_unguarded(each) for each in op.operands if isinstance(each.type, TensorType)), None
            )

    def settle(self, rewriter: PatternRewriter) -> None:
        """Ends a rewrite, after ops without uses were erased."""
        if self._removed and self._replaced:
            inserted = [op for op in self._inserted if op.parent is not None]
            made = [check for op in inserted for check in _checks(op)]
            for check, operand in self._removed.items():
                if not any(implies(each, check) for each in made) and not self._guard_early(inserted, operand, check):
                    for replaced in self._replaced:
                        replaced.guard(check, rewriter)
        self._inserted.clear()
        self._removed.clear()
        self._replaced.clear()

    def _guard_early(self, inserted: Sequence[Operation], operand: SSAValue | None, check: DimCheck) -> bool:
        """Guards what the removed op had, where new ops have it as well, so that the guard is not between these and
        their uses, which may be fused with them; whether there are such ops.
        """
        all_uses = [(op, index, value) for op in inserted for index, value in enumerate(op.operands)]
        uses = [(op, index) for op, index, value in all_uses if _unguarded(value) is operand]
        if not uses and len(self._replaced) == 1:
            made = {result for op in inserted for result in op.results}
            uses = [(op, index) for op, index, value in all_uses if value not in made and _varies(value)]
        for op, index in uses[:1]:
            before = op.operands[index]
            guard_operand(op, index, check)
            for other, number in uses[1:]:
                if other.operands[number] is before:
                    other.operands[number] = op.operands[index]
        return bool(uses)


class _Replaced:
    """A value that replaces another one in a rewrite, and the uses of that one, in or below a block."""

    def __init__(self, new: SSAValue, uses: Iterable[Use], block: Block):
        self._new = new
        self._uses = tuple(uses)
        self._block = block

    def guard(self, check: DimCheck, rewriter: PatternRewriter) -> None:
        """Makes a check before the uses."""
        uses = [use for use in self._uses if use.operation.parent is not None and self._has(use)]
        users = {_ancestor(use.operation, self._block) for use in uses}
        first = next((op for op in self._block.ops if op in users), None)
        if first is None:
            return
        guard = GuardOp.of(self._new, check)
        guard.result.name_hint = self._new.name_hint
        inherit_location(first, guard)
        rewriter.insert(guard, InsertPoint.before(first))
        for use in uses:
            use.operation.operands[use.index] = guard.result
            rewriter.handle_operation_modification(use.operation)
        self._new = guard.result

    def _has(self, use: Use) -> bool:
        operands = use.operation.operands
        return use.index < len(operands) and operands[use.index] is self._new


def _unguarded(value: SSAValue) -> SSAValue:
    """What a guarded value is without its guards."""
    while isinstance(guard := value.owner, GuardOp):
        value = guard.value
    return value


def _varies(value: SSAValue) -> bool:
    """Whether a value is a tensor, and no constant, which with a guard would be none."""
    return isinstance(value.type, TensorType) and not isinstance(value.owner, ConstantOp)


def _ancestor(op: Operation, block: Block) -> Operation | None:
    """The op of a block in which an op is, or which it is itself."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def _checks(op: Operation) -> Iterable[DimCheck]:
    """What an op checks at run time; nothing if all sizes are numbers."""
    if isinstance(op, GuardOp):
        return (op.check,)
    if isinstance(op, InfersResultTypes) and any(map(_is_symbolic, op.operand_types)):
        return op.runtime_checks()
    return ()


def _is_symbolic(info: object) -> bool:
    if not isinstance(info, TensorType | ShapeType):
        return False
    return info.dims is None or any(dim is None or not dim.is_constant for dim in info.dims)


def implies(made: DimCheck, wanted: DimCheck) -> bool:
    """Whether nothing is left to check if a check was made."""
    same = (made.left, made.right) == (wanted.left, wanted.right)
    if wanted.relation is DimRelation.AT_MOST:
        return same and made.relation is not DimRelation.BROADCAST
    swapped = (made.left, made.right) == (wanted.right, wanted.left)
    return (same or swapped) and made.relation in (wanted.relation, DimRelation.EQUAL)
