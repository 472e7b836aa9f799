"""Loops in every mode: symbols bound anew in each iteration, constant stack, checks of what is carried."""

from typing import Any

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from tests.support.programs import MODES, run_everywhere, runner
from vm_dialect.errors import StepLimitError

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

DIRECTIONS = """
relax.func @counters(%lower: !relax.prim<i64>, %upper: !relax.prim<i64>, %step: !relax.prim<i64>) -> !relax.object {
  %none = relax.tuple()
  %r = relax.for %i = %lower to %upper step %step (%a: !relax.object = %none) {
    %0 = relax.tuple(%a, %i)
    relax.yield %0
  }
  relax.return %r
}
relax.func @reversed[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_], f32> {
  %last = relax.prim n - 1
  %before = relax.prim -1
  %zero = relax.shape [0]
  %none = relax.zeros %zero dtype = f32
  %r = relax.for %i as i = %last to %before step %before [%m](%a: !relax.tensor<[m], f32> = %none) {
    %0 = relax.strided_slice %x axes = [0] begin = [i] end = [i + 1]
    %1 = relax.concat %a, %0 axis = 0
    relax.yield %1
  }
  relax.return %r
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_many_iterations(mode: str):
    """Many more than a stack holds; a million where that is quick."""
    count, many = runner(parse_module(COUNT), "main", mode), 1_000_000 if mode == "native" else 20_000
    assert count(many, 1) == 2 * many - 1
    assert [count(*each) for each in ((0, 1), (1, 1), (5, 1), (5, 2), (6, 4), (3, 9))] == [0, 1, 9, 9, 9, 1]


@pytest.mark.parametrize("mode", MODES)
def test_both_directions(mode: str):
    function = runner(parse_module(DIRECTIONS), "counters", mode)
    for bounds in ((0, 5, 2), (5, 0, -2), (5, -1, -3), (0, 5, -1), (5, 0, 1), (3, 3, -1), (-9, -3, 5), (-3, -9, -5)):
        found: Any = ()
        for counter in range(*bounds):
            found = (found, counter)
        assert function(*bounds) == found, bounds
    with pytest.raises(ValueError, match=r"counters: step at <text>:4:3: expected a number other than 0, got 0"):
        function(0, 5, 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_counter_that_would_pass_64_bits(mode: str):
    """The bounds are the least and the greatest numbers that a prim may have."""
    function = runner(parse_module(DIRECTIONS), "counters", mode)
    least, greatest = -(2**63), 2**63 - 1
    for bounds in ((greatest - 1, greatest, 5), (least + 1, least, -5), (least, greatest, greatest), (0, least, least)):
        found: Any = ()
        for counter in range(*bounds):
            found = (found, counter)
        assert function(*bounds) == found, bounds


@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_symbol_that_counts_down(size: int):
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(run_everywhere(DIRECTIONS, "reversed", [x]), x[::-1])


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


TAIL = """
relax.func @main(%at: !relax.prim<i64>, %step: !relax.prim<i64>) -> !relax.object {
  %0 = relax.call @main(%at, %step) : !relax.object
  relax.return %0
}
"""


@pytest.mark.parametrize(("text", "arguments"), [(COUNT, [4, 1]), (WHILE, [np.array(1), np.array(5)]), (TAIL, [1, 1])])
def test_steps_are_limited(text: str, arguments: list[Any]):
    """Of loops and of calls in tail position: with the call of the function itself, four iterations are five."""
    module = parse_module(text)
    with pytest.raises(StepLimitError, match="main: has not ended after 4 calls and iterations of loops"):
        run(module, "main", arguments, max_steps=4)
    if text != TAIL:
        run(module, "main", arguments, max_steps=5)
