"""`simplify-match-cast`: casts that check nothing go, casts of casts become one."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.relax.infer_struct_info import StructInfoInference, with_result
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.function_symbols import substitute_in
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.match import Match, Mismatch, Verdict, is_subtype


class SimplifyMatchCastPass(ModulePass):
    """Removes every `relax.match_cast` that provably succeeds, and merges repeated ones.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.object) -> !relax.tensor<[_], f32> {
      %0, %m = relax.match_cast %x : !relax.tensor<[m, 4], f32> binds [m]
      %1 = relax.match_cast %0 : !relax.tensor<[_, _], f32>
      %2 = relax.flatten %1
      %3 = relax.match_cast %y : !relax.tensor<[_], f32>
      %4, %k = relax.match_cast %3 : !relax.tensor<[k], f32> binds [k]
      %5 = relax.add %2, %4
      relax.return %5
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.object) -> !relax.tensor<[_], f32> {
      %2 = relax.flatten %x
      %4, %k = relax.match_cast %y : !relax.tensor<[k], f32> binds [k]
      %5 = relax.add %2, %4
      relax.return %5
    }
    ```

    * A cast goes if the prover shows, from the types and the bounds of symbols, that it checks nothing. A symbol that
      it binds becomes the dimension that it is, in all types and properties.
    * A cast that only another cast uses goes if that checks all that it does.
    * In a function that has changed the types are inferred again, so that what a cast made the program forget is known
      afterwards. Signatures stay.

    A check that may fail stays. A function in which an op is then seen to fail whenever it runs stays as it is:
    a failure at run time is not made an error at compile time. Idempotent; refuses nothing.
    """

    name = "simplify-match-cast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            if any(isinstance(inner, MatchCastOp) for inner in func.walk()):
                before = func.clone()
                if not _simplify(func):
                    Rewriter.insert_op(before, InsertPoint.before(func))
                    Rewriter.erase_op(func)


def _simplify(func: FuncOp) -> bool:
    """Simplifies until nothing changes; whether the function is valid then."""
    declared = func.function_type.ret
    while apply_graph_patterns(func, [RemoveProvenCast(), MergeCasts()]):
        inference = StructInfoInference()
        inference.function(func)
        func.function_type = with_result(func.function_type, declared)
        if inference.findings:
            return False
    try:
        for op in func.walk():
            op.verify_()
    except VerifyException:
        return False
    return True


class RemoveProvenCast(RewritePattern):
    """A cast that provably succeeds is its operand, and the symbols that it binds are dimensions of that."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatchCastOp, rewriter: PatternRewriter) -> None:
        match = _match(op)
        if match is None or match.verdict is not Verdict.YES or match.slots:
            return
        for name, witness in op.result_witnesses.items():
            if witness.first_use is not None:
                number = PrimOp(match.bindings[name])
                number.result.name_hint = witness.name_hint
                number.location = op.location
                rewriter.insert(number, InsertPoint.before(op))
                rewriter.replace_all_uses_with(witness, number.result)
        op.value.name_hint = op.value.name_hint or op.result.name_hint
        scope = list(_scope(op, set(match.bindings)))
        rewriter.replace_all_uses_with(op.result, op.value)
        rewriter.erase(op)
        substitute_in(scope, match.bindings)


class MergeCasts(RewritePattern):
    """A cast that checks all that the one before it does reads the operand of that."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatchCastOp, rewriter: PatternRewriter) -> None:
        inner = op.value.owner
        if isinstance(inner, MatchCastOp) and _implies(op, inner):
            op.operands[0] = inner.value
            rewriter.notify_op_modified(op)
            rewriter.erase(inner)


def _match(cast: MatchCastOp) -> Match | None:
    """How the value meets the type; `None` if, with what is known by now, it never can."""
    try:
        return cast.match()
    except Mismatch:
        return None


def _implies(cast: MatchCastOp, inner: MatchCastOp) -> bool:
    """Whether `cast` checks all that `inner` does, from which it alone gets its value."""
    if cast.value is not inner.result or inner.symbols or not inner.result.has_one_use():
        return False
    return is_subtype(cast.result.type, inner.result.type, prover_at(cast)) is Verdict.YES


def _scope(op: Operation, symbols: set[str]) -> Iterator[Operation]:
    """The ops after `op` that may name one of the symbols, which it binds; outside of a region too if that passes
    one on.
    """
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op
    parent = op.parent_op()
    if isinstance(parent, DataflowOp) and not symbols.isdisjoint(parent.result_witnesses):
        yield parent
        yield from _scope(parent, symbols)
