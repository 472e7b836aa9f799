"""Branches whose results differ in shape, rank, dtype or kind, in every mode."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from tests.support.programs import MODES, run_everywhere, runner

ANY = "!relax.tensor<*, _>"


def arange(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


EQUAL_SYMBOLS = """
relax.func @main[%n](%c: !relax.prim<i1>, %x: !relax.tensor<[n], f32>, %u: !relax.tensor<[_], f32>) -> !relax.object {
  %r, %k = relax.if %c {
    %0, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    relax.yield %0, %m
  } else {
    %0, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
    %1 = relax.exp %0
    relax.yield %1, %m
  }
  %s = relax.shape [m, 1]
  %z = relax.reshape %r, %s
  %w = relax.add %z, %z
  %t = relax.tuple(%w, %k)
  relax.return %t
}
"""


def test_a_symbol_that_both_branches_yield():
    x, u = arange(3), arange(5)
    then = run_everywhere(EQUAL_SYMBOLS, "main", [True, x, u])
    other = run_everywhere(EQUAL_SYMBOLS, "main", [False, x, u])
    assert isinstance(then, tuple)
    assert isinstance(other, tuple)
    np.testing.assert_array_equal(then[0], 2 * x[:, None])
    np.testing.assert_allclose(other[0], 2 * np.exp(u)[:, None], rtol=1e-6)
    assert (then[1], other[1]) == (3, 5)


NEW_SYMBOL = """
relax.func @main[%n](%c: !relax.prim<i1>, %x: !relax.tensor<[n], f32>) -> !relax.tensor<[1, _], f32> {
  %r, %k = relax.if %c {
    %0 = relax.unique %x
    %1, %m = relax.match_cast %0 : !relax.tensor<[m], f32> binds [m]
    relax.yield %1, %m
  } else {
    %0 = relax.concat %x, %x axis = 0
    %1 = relax.prim 2 * n
    relax.yield %0, %1
  } : !relax.tensor<[k], f32>, !relax.prim<i64, k>
  %s = relax.shape [1, k]
  %z = relax.reshape %r, %s
  %w = relax.negative %z
  relax.return %w
}
"""


def test_a_symbol_that_each_branch_gives_a_value():
    x = np.array([3, 1, 3], np.float32)
    np.testing.assert_array_equal(run_everywhere(NEW_SYMBOL, "main", [True, x]), [[-1, -3]])
    np.testing.assert_array_equal(run_everywhere(NEW_SYMBOL, "main", [False, x]), [[-3, -1, -3, -3, -1, -3]])


def branch(then: str, other: str, after: str) -> str:
    params = "%c: !relax.tensor<[], i1>, %x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[m], i64>"
    return f"""
      relax.func @main[%n, %m]({params}) -> !relax.object {{
        %r = relax.if %c {{
          {then}
          relax.yield %0
        }} else {{
          {other}
          relax.yield %0
        }}
        {after}
        relax.return %z
      }}
    """


@pytest.mark.parametrize("choice", [True, False])
def test_other_dimensions(choice: bool):
    program = branch("%0 = relax.exp %x", "%0 = relax.concat %x, %x axis = 0", "%z = relax.add %r, %r")
    x = arange(2, 3)
    expected = np.exp(x) if choice else np.concatenate([x, x])
    result = run_everywhere(program, "main", [np.array(choice), x, arange(3, dtype="int64")])
    np.testing.assert_allclose(result, 2 * expected, rtol=1e-6)


@pytest.mark.parametrize("choice", [True, False])
def test_other_ranks(choice: bool):
    program = branch("%0 = relax.exp %x", "%0 = relax.flatten %x", "%z = relax.add %r, %r")
    x = arange(2, 3)
    expected = np.exp(x) if choice else x.reshape(-1)
    result = run_everywhere(program, "main", [np.array(choice), x, arange(3, dtype="int64")])
    np.testing.assert_allclose(result, 2 * expected, rtol=1e-6)


@pytest.mark.parametrize("choice", [True, False])
def test_other_dtypes(choice: bool):
    program = branch("%0 = relax.exp %x", "%0 = relax.negative %y", "%z = relax.add %r, %r")
    x, y = arange(2, 3), arange(3, dtype="int64")
    result = run_everywhere(program, "main", [np.array(choice), x, y])
    np.testing.assert_allclose(result, 2 * (np.exp(x) if choice else -y), rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_other_kinds(mode: str):
    after = "%f = relax.match_cast %r : !relax.tensor<*, _>\n%z = relax.add %f, %f"
    run = runner(parse_module(branch("%0 = relax.exp %x", "%0 = relax.tuple(%x, %y)", after)), "main", mode)
    x, y = arange(2, 3), arange(3, dtype="int64")
    np.testing.assert_allclose(run(np.array(True), x, y), 2 * np.exp(x), rtol=1e-6)
    with pytest.raises(TypeError, match=r"main: match_cast at .*: expected a tensor, got tuple"):
        run(np.array(False), x, y)


@pytest.mark.parametrize("choice", [True, False])
def test_branches_inside_of_branches_and_loops(choice: bool):
    program = """
      relax.func @main(%c: !relax.prim<i1>, %x: !relax.tensor<[_], f32>) -> !relax.object {
        %zero = relax.prim 0
        %three = relax.prim 3
        %l = relax.for %i = %zero to %three (%v: !relax.tensor<[_], f32> = %x) {
          %r, %k = relax.if %c {
            %0, %m = relax.match_cast %v : !relax.tensor<[m], f32> binds [m]
            relax.yield %0, %m
          } else {
            %q, %j = relax.if %c {
              %0, %m = relax.match_cast %v : !relax.tensor<[m], f32> binds [m]
              relax.yield %0, %m
            } else {
              %1, %h = relax.match_cast %v : !relax.tensor<[h], f32> binds [h]
              %0 = relax.concat %1, %1 axis = 0
              %m = relax.prim 2 * h
              relax.yield %0, %m
            } : !relax.tensor<[m], f32>, !relax.prim<i64, m>
            relax.yield %q, %j
          }
          %s = relax.shape [m]
          %z = relax.zeros %s dtype = f32
          %w = relax.subtract %z, %r
          relax.yield %w
        }
        relax.return %l
      }
    """
    x = arange(3)
    expected = -x if choice else -np.tile(x, 8)
    np.testing.assert_array_equal(run_everywhere(program, "main", [choice, x]), expected)
