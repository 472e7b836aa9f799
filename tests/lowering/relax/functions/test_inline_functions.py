"""Inlining leaves results and errors as they are, and no calls of private functions."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.ops.calls import CallOp
from tests.support.programs import check_pass, run_pipeline

CHAIN = """
relax.func private @scale[%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
  %0 = relax.shape [m]
  %1 = relax.add %y, %y
  %2 = relax.reshape %1, %0
  relax.return %2
}
relax.func private @both[%n, %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
  %0 = relax.flatten %x
  %1 = relax.call @scale(%0) : !relax.tensor<[n * k], f32>
  %2 = relax.call @scale(%1) : !relax.tensor<[n * k], f32>
  relax.return %2
}
relax.func @main[%k, %n](%x: !relax.tensor<[k, n + 1], f32>) -> !relax.tensor<[k * n + k], f32> {
  %0 = relax.call @both(%x) : !relax.tensor<[k * n + k], f32>
  relax.return %0
}
"""

UNKNOWN = """
relax.func private @join[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[2 * n], f32>) -> !relax.tensor<*, f32> {
  %0 = relax.concat %x, %y axis = 0
  relax.return %0
}
relax.func @main[%n](%x: !relax.tensor<*, f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<*, f32> {
  %0 = relax.call @join(%x, %y) : !relax.tensor<*, f32>
  relax.return %0
}
"""

CONTROL_FLOW = """
relax.func private @grow[%m](%x: !relax.tensor<[m], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[_], f32> {
  %0 = relax.if %c {
    %1 = relax.concat %x, %x axis = 0
    %2 = relax.match_cast %1 : !relax.tensor<[_], f32>
    relax.yield %2
  } else {
    %3 = relax.match_cast %x : !relax.tensor<[_], f32>
    relax.yield %3
  }
  %4, %s = relax.match_cast %0 : !relax.tensor<[s], f32> binds [s]
  relax.return %4
}
relax.func @main[%m](%x: !relax.tensor<[m], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[_], f32> {
  %0 = relax.call @grow(%x, %c) : !relax.tensor<[_], f32>
  %1 = relax.call @grow(%0, %c) : !relax.tensor<[_], f32>
  relax.return %1
}
"""

LESS = """
relax.func private @drop[%n](%x: !relax.tensor<[n + 2], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.strided_slice %x axes = [0] begin = [2] end = [n + 2]
  %1, %r = relax.match_cast %0 : !relax.tensor<[r], f32> binds [r]
  %2 = relax.match_cast %1 : !relax.tensor<[n], f32>
  relax.return %2
}
relax.func @main[%k](%x: !relax.tensor<[k], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.call @drop(%x) : !relax.tensor<[_], f32>
  relax.return %0
}
"""

LOOP = """
relax.func private @double[%n](%x: !relax.tensor<[n, 4], f32>, %times: !relax.prim<i64>) -> !relax.tensor<[_, 4], f32> {
  %lower = relax.prim 0
  %r = relax.for %i = %lower to %times [%m](%a: !relax.tensor<[m, 4], f32> = %x) {
    %0 = relax.concat %a, %a axis = 0
    relax.yield %0
  }
  relax.return %r
}
relax.func @main[%m](%x: !relax.tensor<[m, 4], f32>, %times: !relax.prim<i64>) -> !relax.tensor<[_, 4], f32> {
  %0 = relax.call @double(%x, %times) : !relax.tensor<[_, 4], f32>
  relax.return %0
}
"""

FAILS = """
relax.func private @sum[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
  %0 = relax.match_cast %x : !relax.tensor<[m], f32>
  %1 = relax.add %0, %y
  relax.return %1
}
relax.func @main(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>, %c: !relax.prim<i1>)
    -> !relax.tensor<[3], f32> {
  %0 = relax.if %c {
    %1 = relax.call @sum(%x, %y) : !relax.tensor<[3], f32>
    relax.yield %1
  } else {
    %2 = relax.call @sum(%y, %y) : !relax.tensor<[3], f32>
    relax.yield %2
  }
  relax.return %0
}
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 2


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (CHAIN, [[floats(k, n + 1)] for k in (0, 1, 3) for n in (0, 1, 4)]),
        (UNKNOWN, [[floats(n), floats(2 * n)] for n in (0, 1, 5)]),
        (CONTROL_FLOW, [[floats(m), c] for m in (0, 1, 3) for c in (False, True)]),
        (LESS, [[floats(k)] for k in (2, 3, 7)]),
        (LOOP, [[floats(m, 4), times] for m in (0, 1, 3) for times in (0, 1, 2)]),
    ],
    ids=["chain", "unknown", "control flow", "less", "loop"],
)
def test_results_stay(program: str, inputs: list[list[object]]) -> None:
    module = check_pass(program, "inline-functions", inputs)
    assert not any(isinstance(op, CallOp) for op in module.walk())


@pytest.mark.parametrize(
    ("program", "args", "expected"),
    [
        (UNKNOWN, [floats(2), floats(3)], ValueError),
        (UNKNOWN, [floats(2, 2), floats(3)], TypeError),
        (LESS, [floats(1)], ValueError),
        (LESS, [floats(0)], ValueError),
    ],
)
def test_checks_of_the_call_stay(program: str, args: list[object], expected: type[Exception]) -> None:
    module = parse_module(program)
    with pytest.raises(expected):
        run(module, "main", args)
    run_pipeline(module, "inline-functions")
    with pytest.raises(expected):
        run(module, "main", args)


def test_a_call_that_must_fail_stays() -> None:
    module = check_pass(FAILS, "inline-functions", [[floats(2), floats(3), False]])
    assert sum(isinstance(op, CallOp) for op in module.walk()) == 1
    with pytest.raises(ValueError, match="expected m = 3"):
        run(module, "main", [floats(2), floats(3), True])
