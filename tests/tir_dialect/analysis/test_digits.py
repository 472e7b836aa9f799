"""Indices as sums of digits of loop variables with symbolic lengths."""

import pytest

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.digits import as_sum
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.ops.control_flow import ForOp


def product_of(lower: int, upper: str):
    """`i * m` for `i` from `lower` to `upper`, as a sum."""
    func = parse_prim_func(f"""
tir.prim_func @f[%m](%A: !tir.buffer<[4], f32>) {{
  %low = arith.constant {lower} : index
  %end = tir.dim {upper}
  tir.for (%i) in (%low to %end) {{
    %k = arith.muli %i, %m : index
  }}
}}""")
    (loop,) = (op for op in func.walk() if isinstance(op, ForOp))
    space = IndexSpace(func)
    (product,) = loop.body.block.ops
    return as_sum(space, space.dim_of(product.results[0]), {space.variable(loop.induction_var).dim.as_symbol})


@pytest.mark.parametrize("upper", ["m", "m - 2", "floordiv(m + 1, 2)", "2 * m + 1 - 3"])
def test_lengths_of_loops_with_iterations_are_at_least_1(upper):
    (term,) = product_of(0, upper).terms
    assert str(term.factor) == "m"


def test_a_loop_that_begins_below_0_says_nothing_of_its_end():
    assert product_of(-3, "m - 2") is None
