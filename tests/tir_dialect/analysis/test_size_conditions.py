"""Conditions on sizes: they fail exactly where an access leaves its buffer."""

from itertools import product

import pytest

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.accesses import size_conditions

COPY = """
tir.prim_func @f[%n, %m, %k](%X: !tir.buffer<[m], f32>, %Y: !tir.buffer<[n, k], f32>) {{
  %c2 = arith.constant 2 : index
  tir.for (%i, %j) in (%n, %k) {{
    {at}
    %x = tir.load %X[%at]
    tir.store %x, %Y[%i, %j]
  }}
}}
"""
INDICES = {
    "%at = arith.addi %i, %c2 : index": lambda i, j, n, m, k: i + 2,
    "%at = arith.subi %i, %k : index": lambda i, j, n, m, k: i - k,
    "%at = arith.muli %j, %c2 : index": lambda i, j, n, m, k: 2 * j,
    "%at = arith.addi %i, %j : index": lambda i, j, n, m, k: i + j,
    "%l = tir.dim n - 1 %at = arith.subi %l, %i : index": lambda i, j, n, m, k: n - 1 - i,
    "%at = arith.floordivsi %i, %c2 : index": lambda i, j, n, m, k: i // 2,
    "%d = tir.dim m - n %at = arith.addi %d, %j : index": lambda i, j, n, m, k: m - n + j,
}


@pytest.mark.parametrize("at", INDICES)
def test_conditions_fail_exactly_where_an_access_leaves_its_buffer(at: str):
    conditions = size_conditions(parse_prim_func(COPY.format(at=at)))
    assert conditions
    for n, m, k in product(range(5), repeat=3):
        sizes = {"n": n, "m": m, "k": k}
        hold = all(
            each.smaller.evaluate(sizes) <= each.larger.evaluate(sizes)
            or any(length.evaluate(sizes) <= 0 for length in each.lengths)
            for each in conditions
        )
        assert hold == all(0 <= INDICES[at](i, j, n, m, k) < m for i in range(n) for j in range(k)), sizes


@pytest.mark.parametrize(
    "at",
    [
        "%at = arith.minsi %i, %c2 : index",  # the least and greatest value are not attained together
        "%l = tir.load %Y[%i, %j] %h = arith.fptosi %l : f32 to i64 %at = arith.index_cast %h : i64 to index",
    ],
)
def test_where_data_tells_the_place_there_has_to_be_one(at: str):
    (condition,) = size_conditions(parse_prim_func(COPY.format(at=at)))
    assert (str(condition.smaller), str(condition.larger), *map(str, condition.lengths)) == ("1", "m", "n", "k")
    assert "index 0 of %X reaches at least 0, expected less than m" in condition.message


def test_sizes_that_divide_by_a_length():
    at = "%d = tir.dim floordiv(m, n) %at = arith.addi %d, %i : index"
    assert size_conditions(parse_prim_func(COPY.format(at=at)))


def test_an_init_writes_for_empty_reductions_too():
    (condition,) = size_conditions(
        parse_prim_func("""
        tir.prim_func @sum[%n, %m, %k](%X: !tir.buffer<[n, k], f32>, %Y: !tir.buffer<[m], f32>) {
          tir.for (%i, %r) in (%n, %k) {
            tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %k) {
              tir.init {
                %0 = arith.constant 0.0 : f32
                tir.store %0, %Y[%vi]
              }
              %x = tir.load %X[%vi, %vr]
              %y = tir.load %X[%vi, %vr]
              %s = arith.addf %x, %y : f32
            }
          }
        }""")
    )
    assert (str(condition.smaller), str(condition.larger), condition.lengths) == ("n", "m", ())


def test_sizes_that_have_no_value_for_an_empty_loop():
    (condition,) = size_conditions(
        parse_prim_func("""
        tir.prim_func @parts[%n, %m](%X: !tir.buffer<[floordiv(m, n)], f32>, %Y: !tir.buffer<[n], f32>) {
          tir.for (%i) in (%n) {
            %x = tir.load %X[%i]
            tir.store %x, %Y[%i]
          }
        }""")
    )
    assert (str(condition.larger), tuple(map(str, condition.lengths))) == ("floordiv(m, n)", ("n",))


@pytest.mark.parametrize(("other", "count"), [("X", 1), ("Z", 0)])
def test_a_buffer_that_both_ways_of_a_branch_read_has_an_element(other: str, count: int):
    at = f"""
    %up = arith.cmpi sge, %i, %c2 : index
    %v = tir.if %up -> (f32) {{
      %l = tir.load %Y[%i, %j] %h = arith.fptosi %l : f32 to i64 %d = arith.index_cast %h : i64 to index
      %a = tir.load %X[%d]
      tir.yield %a
    }} else {{
      %l = tir.load %Y[%i, %j] %h = arith.fptosi %l : f32 to i64 %d = arith.index_cast %h : i64 to index
      %b = tir.load %{other}[%d]
      tir.yield %b
    }}"""
    text = COPY.format(at=at).replace("%x = tir.load %X[%at]", "").replace("%x,", "%v,")
    conditions = size_conditions(parse_prim_func(text.replace("(%X:", "(%Z: !tir.buffer<[m], f32>, %X:")))
    assert [f"{each.smaller} <= {each.larger}" for each in conditions] == ["1 <= m"] * count
