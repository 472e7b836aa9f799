"""Which ops are erased once nothing uses them."""

from xdsl.dialects import arith, test
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.rewriter import Rewriter

from tir_dialect.fast_ops import erase_dead


def _chain() -> tuple[ModuleOp, list[arith.AddiOp]]:
    """`c + c`, and its sum with itself, three times; nothing uses the last one."""
    ops = [arith.ConstantOp(IntegerAttr(1, i32))]
    for _ in range(3):
        ops.append(arith.AddiOp(ops[-1].results[0], ops[-1].results[0]))
    return ModuleOp([*ops, test.TestOp()]), ops[1:]


def test_what_only_a_dead_op_used_is_erased():
    module, sums = _chain()
    erase_dead([sums[-1]])
    assert [op.name for op in module.ops] == ["test.op"]


def test_only_candidates_that_are_dead_start_it():
    module, sums = _chain()
    erase_dead([sums[0], sums[1], *(op for op in module.ops if isinstance(op, test.TestOp))])
    assert len(list(module.ops)) == 5


def test_it_ends_at_ops_that_are_not_among_those_named():
    module, sums = _chain()
    erase_dead([sums[-1]], among=lambda op: op is not sums[0])
    assert [op.name for op in module.ops] == ["arith.constant", "arith.addi", "test.op"]


def test_each_op_is_erased_by_the_given_function():
    module, sums = _chain()
    erased = []

    def erase(op):
        erased.append(op.name)
        Rewriter.erase_op(op)

    erase_dead([sums[-1]], erase=erase)
    assert erased == ["arith.addi"] * 3 + ["arith.constant"]
    assert len(list(module.ops)) == 1
