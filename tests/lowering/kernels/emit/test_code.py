"""The builder of TensorIR code: index arithmetic is emitted once, and constants are folded."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Block, SSAValue

from lowering.kernels.emit.code import INDEX, Code
from tir_dialect.types import LoopKind


def written() -> tuple[Code, Block, SSAValue, SSAValue]:
    block = Block(arg_types=[INDEX, INDEX])
    x, y = block.args
    return Code(block, UNKNOWN_LOC), block, x, y


def test_equal_arithmetic_is_one_op_where_the_first_can_be_seen() -> None:
    code, block, x, y = written()
    assert code.add(x, y) is code.add(x, y)
    assert code.mul(x, 4) is code.mul(x, code.index(4))
    assert code.compare("slt", x, y) is code.compare("slt", x, y)
    assert code.sub(x, y) is not code.sub(y, x)
    with code.when(code.compare("slt", x, y)):
        outer, inner = code.add(x, y), code.divide(x, y)
    assert outer.owner.parent is block
    assert code.divide(x, y) is not inner


def test_threads_get_few_values_of_arithmetic() -> None:
    """What a parallel loop uses from outside is passed to it; it computes again what takes an instruction."""
    code, _, x, y = written()
    total = code.add(x, y)
    with code.loop(x, "task", kind=LoopKind.PARALLEL):
        again = code.add(x, y)
        assert again is not total
        assert code.index(3) is code.index(3)
    assert code.add(x, y) is total


def test_what_constants_decide_is_not_computed() -> None:
    code, block, x, _ = written()
    zero, one, three = map(code.index, (0, 1, 3))
    assert code.add(x, 0) is x
    assert code.add(zero, x) is x
    assert code.sub(x, zero) is x
    assert code.mul(x, one) is x
    assert code.mul(one, x) is x
    assert code.divide(x, 1) is x
    assert code.mul(x, zero) is zero
    assert code.mul(zero, x) is zero
    assert code.minimum(three, 1) is one
    assert code.sub(three, 3) is zero
    assert [type(op) for op in block.ops] == [arith.ConstantOp] * 3
