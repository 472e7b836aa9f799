"""The driver of rewrite patterns: what it visits, erases, keeps and refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.rewriting import Canonicalize, PatternIndex, apply_patterns, may_match, op_rewrite_pattern
from relax_dialect.ops.manipulation import FlattenOp
from relax_dialect.ops.unary import NegativeOp


class FoldAddition(RewritePattern):
    """`a + b` of constants is a constant."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
        numbers = [operand.owner for operand in op.operands]
        if all(isinstance(number, arith.ConstantOp) for number in numbers):
            rewriter.replace(op, arith.ConstantOp(IntegerAttr(sum(map(_number, numbers)), i32)))


class NegateSubtraction(RewritePattern):
    """`a - a` is 0."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: arith.SubiOp | arith.XOrIOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            rewriter.replace(op, arith.ConstantOp(IntegerAttr(0, i32)))


class Exchange(RewritePattern):
    """`a + b` is `b + a`: matches again and again."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, arith.AddiOp(op.rhs, op.lhs))


class AnyOp(RewritePattern):
    """Says nothing of what it matches, and counts what it sees."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        self.seen.append(op.name)


def _number(op: object) -> int:
    assert isinstance(op, arith.ConstantOp)
    assert isinstance(op.value, IntegerAttr)
    return op.value.value.data


def _sum(numbers: list[int]) -> ModuleOp:
    """A chain of additions, whose result is used, on constants."""
    constants = [arith.ConstantOp(IntegerAttr(number, i32)) for number in numbers]
    ops: list[Operation] = [*constants]
    total = constants[0].result
    for constant in constants[1:]:
        ops.append(addition := arith.AddiOp(total, constant))
        total = addition.result
    return ModuleOp([*ops, test.TestOp([total])])


def test_what_a_pattern_matches_is_read_from_its_annotation():
    ops = (arith.AddiOp, arith.SubiOp, arith.XOrIOp, test.TestOp)
    assert [may_match(FoldAddition(), op) for op in ops] == [True, False, False, False]
    assert [may_match(NegateSubtraction(), op) for op in ops] == [False, True, True, False]
    assert all(may_match(AnyOp(), op) for op in ops)


def test_ops_are_visited_in_either_order():
    last = arith.ConstantOp(IntegerAttr(2, i32))
    outer = test.TestOp(regions=[Region(Block([arith.ConstantOp(IntegerAttr(1, i32))]))])
    module = ModuleOp([outer, last])
    forward, backward = AnyOp(), AnyOp()
    assert not apply_patterns(module, [forward])
    assert not apply_patterns(module, [backward], reverse=True)
    assert forward.seen == ["test.op", "arith.constant", "arith.constant"]
    assert backward.seen == ["arith.constant", "arith.constant", "test.op"]


def test_patterns_are_found_by_class_in_their_order():
    first, second, third = FoldAddition(), AnyOp(), Exchange()
    index = PatternIndex([first, second, third])
    (addition,) = [op for op in _sum([1, 2]).ops if isinstance(op, arith.AddiOp)]
    assert index.of(addition) == (first, second, third)
    assert index.of(test.TestOp()) == (second,)


def test_what_follows_a_rewrite_is_visited_and_what_is_unused_goes():
    module = _sum([1, 2, 3, 4])
    assert apply_patterns(module, [FoldAddition()])
    constant, user = module.ops
    assert _number(constant) == 10
    assert user.operands[0].owner is constant
    assert not apply_patterns(module, [FoldAddition()])


def test_dead_code_that_no_rewrite_made_stays():
    module = _sum([1, 2])
    module.body.block.add_op(unused := arith.ConstantOp(IntegerAttr(1, i32)))
    apply_patterns(module, [FoldAddition()])
    assert unused.parent is not None


def test_new_ops_have_the_location_of_what_they_replace():
    module = _sum([1, 2])
    here = FileLineColLoc(StringAttr("a.mlir"), IntAttr(3), IntAttr(5))
    for op in module.ops:
        if isinstance(op, arith.AddiOp):
            op.location = here
    apply_patterns(module, [FoldAddition()])
    assert next(iter(module.ops)).location == here


def test_patterns_that_undo_each_other_are_reported():
    with pytest.raises(InvalidModule, match=r"expected patterns that end, but Exchange still matches 'arith\.addi'"):
        apply_patterns(_sum([1, 2]), [Exchange()])


def test_ops_inside_of_regions_are_visited_in_program_order():
    inner = arith.ConstantOp(IntegerAttr(1, i32))
    module = ModuleOp([test.TestOp(regions=[Region(Block([inner]))]), test.TestOp()])
    visited = AnyOp()
    assert not apply_patterns(module, [visited])
    assert visited.seen == ["test.op", "arith.constant", "test.op"]


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=12))
def test_results_are_those_of_the_walker_of_xdsl(numbers: list[int]):
    module = _sum(numbers)
    other = module.clone()
    apply_patterns(module, [FoldAddition(), NegateSubtraction()])
    PatternRewriteWalker(GreedyRewritePatternApplier([FoldAddition(), NegateSubtraction()])).rewrite_module(other)
    assert str(module) == str(other)


def test_patterns_with_the_decorator_of_xdsl_work_too():
    class Drop(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
            rewriter.replace(op, [], [op.lhs])

    module = _sum([1, 2, 3])
    assert apply_patterns(module, [Drop()])
    assert [type(op) for op in module.ops] == [arith.ConstantOp, test.TestOp]


def test_a_module_without_ops_is_left_alone():
    assert not apply_patterns(ModuleOp([]), [FoldAddition()])


def test_ops_are_canonicalised_by_what_they_say_of_themselves():
    module = parse_module("""
    relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
      %0 = relax.negative %x
      %1 = relax.negative %0
      %2 = relax.flatten %1
      %3 = relax.exp %2
      relax.return %3
    }
    """)
    canonicalize = Canonicalize(NegativeOp, FlattenOp)
    assert [may_match(canonicalize, op) for op in (NegativeOp, FlattenOp, test.TestOp)] == [True, True, False]
    assert apply_patterns(module, [Canonicalize(NegativeOp)])
    assert [op.name for op in module.walk()] == [
        "builtin.module",
        "relax.func",
        "relax.flatten",
        "relax.exp",
        "relax.return",
    ]
    assert apply_patterns(module, [Canonicalize(FlattenOp)])
    assert [op.name for op in module.walk()][2:] == ["relax.exp", "relax.return"]


class DropLonely(RewritePattern):
    """`a - b` is `a` if nothing else uses `b`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: arith.SubiOp, rewriter: PatternRewriter) -> None:
        if op.rhs.has_one_use():
            rewriter.replace(op, [], [op.lhs])


def test_the_only_user_left_is_visited_again():
    one, two = (test.TestOp(result_types=[i32]) for _ in range(2))
    first, same = arith.SubiOp(one.results[0], two.results[0]), arith.SubiOp(two.results[0], two.results[0])
    module = ModuleOp([one, two, first, same, test.TestOp([first.result, same.result])])
    assert apply_patterns(module, [NegateSubtraction(), DropLonely()])
    assert [op.name for op in module.ops] == ["test.op", "test.op", "arith.constant", "test.op"]
