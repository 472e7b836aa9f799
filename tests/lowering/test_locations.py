from dataclasses import dataclass

import pytest
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    i32,
)
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from lowering.locations import (
    SourcePosition,
    fused_location,
    inherit_location,
    keep_locations,
    named_location,
    names,
    source_position,
)

HERE = FileLineColLoc(StringAttr("a.mlir"), IntAttr(3), IntAttr(5))
THERE = FileLineColLoc(StringAttr("b.mlir"), IntAttr(1), IntAttr(1))


@pytest.mark.parametrize(
    ("location", "expected", "text"),
    [
        (UNKNOWN_LOC, SourcePosition(), ""),
        (HERE, SourcePosition(None, "a.mlir", 3, 5), "a.mlir:3:5"),
        (named_location("conv1"), SourcePosition("conv1"), '"conv1"'),
        (named_location("conv1", HERE), SourcePosition("conv1", "a.mlir", 3, 5), 'a.mlir:3:5 "conv1"'),
        (fused_location([named_location("conv1"), HERE]), SourcePosition("conv1"), '"conv1"'),
        (CallSiteLoc(HERE, THERE), SourcePosition(None, "a.mlir", 3, 5), "a.mlir:3:5"),
    ],
    ids=str,
)
def test_place(location: LocationAttr, expected: SourcePosition, text: str):
    assert source_position(location) == expected
    assert str(source_position(location)) == text


def test_fused_location_has_each_known_part_once():
    conv, relu = named_location("conv1"), named_location("relu1")
    inner = fused_location([conv, relu])
    assert isinstance(inner, FusedLoc)
    assert fused_location([UNKNOWN_LOC, inner, conv]) == inner
    assert fused_location([conv, conv, UNKNOWN_LOC]) == conv
    assert fused_location([UNKNOWN_LOC]) == UNKNOWN_LOC


def test_names_are_those_of_all_parts():
    location = fused_location([named_location("a", named_location("b", HERE)), CallSiteLoc(named_location("c"), THERE)])
    assert names(location) == ("a", "b", "c")
    assert names(HERE) == ()


def test_inherit_location_leaves_known_ones_alone():
    inner = test.TestOp()
    inner.location = THERE
    unknown = test.TestOp()
    outer = test.TestOp(regions=[_region(inner, unknown)])
    inherit_location(HERE, outer)
    assert (outer.location, inner.location, unknown.location) == (HERE, THERE, HERE)


def _region(*ops: Operation):
    from xdsl.ir import Block, Region

    return Region(Block(ops))


@dataclass
class _Rewrite(RewritePattern):
    """Rewrites each `arith.constant` in one of the ways that a pattern may."""

    way: str

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /):
        if not isinstance(op, arith.ConstantOp):
            return
        first, last = test.TestOp(), test.TestOp(result_types=[i32])
        if self.way == "replace":
            rewriter.replace(op, [first, last])
        elif self.way == "insert and replace":
            rewriter.insert([first, last])
            rewriter.replace(op, [], [last.results[0]])
        elif self.way == "insert and erase":
            rewriter.insert([first, last])
            rewriter.erase(op, safe_erase=False)
        else:
            rewriter.insert([first, last])
            rewriter.notify_op_modified(last)
            rewriter.notify_op_modified(op)


@pytest.mark.parametrize("way", ["replace", "insert and replace", "insert and erase", "modify"])
def test_keep_locations(way: str):
    one, two = arith.ConstantOp.from_int_and_width(1, i32), arith.ConstantOp.from_int_and_width(2, i32)
    one.location, two.location = HERE, THERE
    module = ModuleOp([one, two])
    PatternRewriteWalker(_Rewrite(way), apply_recursively=False, listener=keep_locations()).rewrite_module(module)
    made = [op.location for op in module.ops if isinstance(op, test.TestOp)]
    assert made == [HERE, HERE, THERE, THERE]
