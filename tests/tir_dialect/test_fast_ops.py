"""Ops that are made directly are those that xDSL's own constructors make."""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, i1, i64
from xdsl.ir import Block, Operation, Region

from tir_dialect.fast_ops import as_value, new_op
from tir_dialect.ops.control_flow import IfOp

_PLACE = FileLineColLoc(StringAttr("f.mlir"), IntAttr(3), IntAttr(1))


def _assert_equal(made: Operation, known: Operation) -> None:
    made.verify()
    assert made.is_structurally_equivalent(known)
    assert (made.properties, made.attributes) == (known.properties, known.attributes)


def test_defaults_are_filled_in():
    block = Block(arg_types=[i64, i64])
    made = new_op(arith.AddiOp, block.args, (i64,), location=_PLACE)
    known = arith.AddiOp.create(operands=block.args, result_types=(i64,))
    assert "overflowFlags" in made.properties
    assert made.location == _PLACE
    _assert_equal(made, known)


def test_properties_are_the_ops_own():
    properties = {"value": arith.ConstantOp.from_int_and_width(7, 64).value}
    made = new_op(arith.ConstantOp, (), (i64,), properties)
    made.properties["value"] = arith.ConstantOp.from_int_and_width(8, 64).value
    made.attributes["note"] = StringAttr("one")
    other = new_op(arith.ConstantOp, (), (i64,), properties)
    assert other.properties == properties
    assert not other.attributes


def test_operands_are_used_and_replaced():
    block = Block(arg_types=[i64, i64])
    x, y = block.args
    made = new_op(arith.AddiOp, (x, x), (i64,))
    assert [(use.operation, use.index) for use in x.uses] == [(made, 1), (made, 0)]
    x.replace_all_uses_with(y)
    assert tuple(made.operands) == (y, y)
    made.erase()
    assert y.first_use is None


def test_successors_are_used():
    block, target = Block(), Block(arg_types=[i64])
    value = new_op(arith.ConstantOp, (), (i64,), {"value": arith.ConstantOp.from_int_and_width(1, 64).value})
    jump = new_op(llvm.BrOp, value.results, successors=(target,))
    block.add_ops((value, jump))
    region = Region([block, target])
    assert tuple(block.last_op.successors if block.last_op else ()) == (target,)
    assert [use.operation for use in target.uses] == [jump]
    assert region.blocks[0] is block


def test_regions_belong_to_the_op():
    condition = Block(arg_types=[i1]).args[0]
    made = IfOp(condition)
    assert [region.parent for region in made.regions] == [made, made]
    made.verify()


def test_as_value_takes_ops_and_values():
    op = arith.ConstantOp.from_int_and_width(1, 64)
    block = Block(arg_types=[i64])
    assert as_value(op) is op.result
    assert as_value(op.result) is op.result
    assert as_value(block.args[0]) is block.args[0]
