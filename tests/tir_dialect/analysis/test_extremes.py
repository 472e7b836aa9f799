"""Extremes of index expressions against all values of the variables."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.dims import Prover, constant, floordiv, maximum, minimum, mod, symbol
from tir_dialect.ops.control_flow import ForOp

row, col, size = symbol("i"), symbol("j"), symbol("n")

leaves = st.sampled_from([row, col, size, constant(1), constant(3), constant(8)])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        st.tuples(inner, st.integers(-3, 4)).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda pair: floordiv(pair[0], constant(pair[1]))),
        st.tuples(inner, st.integers(1, 4)).map(lambda pair: mod(pair[0], constant(pair[1]))),
        st.tuples(inner, inner).map(lambda pair: minimum(*pair)),
        st.tuples(inner, inner).map(lambda pair: maximum(*pair)),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
    ),
    max_leaves=6,
)


def variable(dim, lower, upper):
    return Variable(None, dim, lower, upper)  # the block argument is not looked at


@given(expressions, st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_extremes_contain_all_values(dim, n, extent, dependent):
    inner = variable(col, constant(0), row + 1 if dependent else constant(extent))
    variables = [variable(row, constant(0), size), inner]
    bounds = {"i": (0, "n - 1"), "j": (0, None), "n": (0, None)}
    found = extremes(dim, variables, Prover(bounds))
    if found is None:
        return
    assert not {"i", "j"} & (found.low.symbols | found.high.symbols)
    points = [(i, j) for i in range(n) for j in range(i + 1 if dependent else extent)]
    values = [dim.evaluate({"i": i, "j": j, "n": n}) for i, j in points]
    low, high = found.low.evaluate({"n": n}), found.high.evaluate({"n": n})
    assert low <= min(values)
    assert max(values) <= high
    if found.exact:
        assert (low, high) == (min(values), max(values))


@pytest.mark.parametrize(
    ("dim", "low", "high", "exact"),
    [
        (8 * row + col, "0", "8 * n - 1", True),
        (row - col, "-7", "n - 1", True),
        ((size + 2) * row, "0", "n * n + n - 2", True),
        (size * row + col, "0", "n * n + 7 - n", True),
        (floordiv(8 * row + col, constant(2)), "0", "4 * n - 1", True),
        (mod(row + col, constant(4)), "0", "3", False),
        (mod(col, constant(8)), "0", "7", True),
        (minimum(row, col), "0", "min(n - 1, 7)", False),
    ],
)
def test_known_extremes(dim, low, high, exact):
    variables = [variable(row, constant(0), size), variable(col, constant(0), constant(8))]
    found = extremes(dim, variables, Prover({"i": (0, "n - 1"), "j": (0, 7)}))
    assert found is not None
    assert (str(found.low), str(found.high), found.exact) == (low, high, exact)


def test_unknown_signs_and_ends():
    variables = [variable(row, constant(0), size)]
    assert extremes(symbol("k") * row, variables, Prover({"k": (None, None)})) is None
    assert extremes(row, [variable(row, constant(0), None)], Prover()) is None
    assert extremes(row * row, variables, Prover()) is None


def test_variables_of_a_function():
    func = parse_prim_func(
        """
    tir.prim_func @f[%n in [1, 64]](%X: !tir.buffer<[n], f32>) {
      %c2 = arith.constant 2 : index
      tir.for (%i) in (%c2 to %n) {
        tir.block "b" (%v = spatial %i in %n) {
          tir.for (%j) in (%v) {
            %k = arith.addi %v, %j : index
          }
        }
      }
    }
    """
    )
    space = IndexSpace(func)
    loops = [op for op in func.walk() if isinstance(op, ForOp)]
    outer, inner = (space.variable(loop.induction_var) for loop in loops)
    k = next(value for op in func.walk() for value in op.results if value.name_hint == "k")
    dim = space.dim_of(k)
    assert dim is outer.dim + inner.dim  # the iterator stands for its binding
    assert (str(outer.lower), str(outer.upper)) == ("2", "n")
    assert inner.upper is outer.dim
    assert space.prover.range(dim) == (2, 125)
    for n, i in product((3, 5), (2, 3)):
        values = {"n": n, str(outer.dim): i, str(inner.dim): 1}
        assert dim.evaluate(values) == i + 1
