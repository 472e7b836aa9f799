"""Loops in every mode: symbols bound anew in each iteration, constant stack, checks of what is carried."""

from typing import Any

import numpy as np
import pytest

from lowering.parsing import parse_module
from tests.support.programs import MODES, run_everywhere, runner

COUNT = """
relax.func @main[%n](%at: !relax.prim<i64, n>, %step: !relax.prim<i64>) -> !relax.prim<i64> {
  %zero = relax.prim 0
  %r = relax.for %i as i = %zero to %at step %step (%last: !relax.prim<i64> = %zero) {
    %next = relax.prim 2 * i + 1
    relax.yield %next
  }
  relax.return %r
}
"""

WHILE = """
relax.func @main(%x: !relax.tensor<[], i64>, %n: !relax.tensor<[], i64>) -> !relax.object {
  %one = relax.constant dense<1> : tensor<i64>
  %i, %sum = relax.while (%a: !relax.tensor<[], i64> = %x, %b: !relax.tensor<[], i64> = %one) {
    %c = relax.less %a, %n
    relax.yield %c
  } do (%p, %q) {
    %0 = relax.add %p, %one
    %1 = relax.add %q, %p
    relax.yield %0, %1
  }
  %r = relax.tuple(%i, %sum)
  relax.return %r
}
"""

GROWING = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %limit: !relax.tensor<[], i64>) -> !relax.tensor<[_], f32> {
  %r = relax.while [%m](%a: !relax.tensor<[m], f32> = %x) {
    %size = relax.shape [m]
    %sizes = relax.shape_to_tensor %size
    %flat = relax.squeeze %sizes axes = [0]
    %c = relax.less %flat, %limit
    relax.yield %c
  } do [%m_1 as m](%b) {
    %0 = relax.concat %b, %b
    %1 = relax.exp %0
    relax.yield %1
  }
  relax.return %r
}
"""

NESTED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %at: !relax.prim<i64>) -> !relax.tensor<[n], f32> {
  %zero = relax.prim 0
  %r = relax.for %i = %zero to %at (%a: !relax.tensor<[n], f32> = %x) {
    %s = relax.for %j = %i to %at (%b: !relax.tensor<[n], f32> = %a) {
      %0 = relax.add %b, %x
      relax.yield %0
    }
    relax.yield %s
  }
  relax.return %r
}
"""

PROMISED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %at: !relax.prim<i64>) -> !relax.tensor<[n], f32> {
  %zero = relax.prim 0
  %r = relax.for %i = %zero to %at (%a: !relax.tensor<[n], f32> = %x) {
    %0 = relax.unique %a
    relax.yield %0
  }
  relax.return %r
}
"""


@pytest.mark.parametrize(
    ("count", "step", "expected"), [(0, 1, 0), (1, 1, 1), (5, 1, 9), (5, 2, 9), (6, 4, 9), (3, 9, 1)]
)
def test_counter(count: int, step: int, expected: int):
    assert run_everywhere(COUNT, "main", [count, step]) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_million_iterations(mode: str):
    assert runner(parse_module(COUNT), "main", mode)(1_000_000, 1) == 1_999_999


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_leads_nowhere(mode: str, step: int):
    with pytest.raises(ValueError, match=r"expected step in the range at least 1, got (0|-1)"):
        runner(parse_module(COUNT), "main", mode)(5, step)


@pytest.mark.parametrize("count", [-3, 0, 1, 100])
def test_while(count: int):
    result = run_everywhere(WHILE, "main", [np.asarray(0), np.asarray(count)])
    expected = (np.asarray(max(count, 0)), np.asarray(1 + sum(range(max(count, 0)))))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("size", "limit", "expected"), [(1, 1, 1), (1, 9, 16), (3, 12, 12), (5, 3, 5)])
def test_shapes_that_change(size: int, limit: int, expected: int):
    result: Any = run_everywhere(GROWING, "main", [np.full(size, -30, np.float32), np.asarray(limit)])
    assert result.shape == (expected,)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_in_loops(count: int):
    x = np.arange(3, dtype=np.float32)
    result: Any = run_everywhere(NESTED, "main", [x, count])
    np.testing.assert_array_equal(result, x * (1 + count * (count + 1) // 2))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_carried_is_checked_in_every_iteration(mode: str):
    run = runner(parse_module(PROMISED), "main", mode)
    np.testing.assert_array_equal(run(np.array([2, 1], np.float32), 3), [1, 2])
    for count in (1, 2):
        with pytest.raises(ValueError, match=r"carried value #0.*: expected n = 3.*, got 2"):
            run(np.array([2, 1, 2], np.float32), count)
