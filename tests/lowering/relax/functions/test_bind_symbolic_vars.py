"""A function for fixed sizes does what the general one does, and refuses other sizes."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.relax.functions.bind_params import BindSymbolicVarsPass
from lowering.verify import verify_module
from tests.support.programs import EXACT, assert_same, runner

MIXED = """
relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k], f32>)
    -> !relax.tuple<!relax.tensor<[n, k], f32>, !relax.tensor<[n * k], f32>, !relax.prim<i64, n>> {
  %0 = relax.dataflow {
    %1 = relax.add %x, %y
    relax.output %1
  }
  %2 = relax.flatten %0
  %3 = relax.tuple(%0, %2, %n)
  relax.return %3
}
"""

# Inference chooses `k` among the equal `k` and `n`, but the number as soon as there is one.
EQUAL = """
relax.func @main[%n, %k](%x: !relax.tensor<[k], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[2, k], f32> {
  %0 = relax.stack %x, %y
  relax.return %0
}
"""

NESTED = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %times: !relax.prim<i64>) -> !relax.tensor<[_, 4], f32> {
  %lower = relax.prim 0
  %f = relax.closure [%m](%y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[m + n, 4], f32> {
    %0 = relax.concat %y, %x axis = 0
    relax.return %0
  }
  %r = relax.for %i = %lower to %times [%m](%a: !relax.tensor<[m, 4], f32> = %x) {
    %1 = relax.call_closure %f(%a)
    relax.yield %1
  }
  relax.return %r
}
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 2


def bind(program: str, **values: int) -> ModuleOp:
    module = parse_module(program)
    BindSymbolicVarsPass("main", values).apply(Context(), module)
    verify_module(module)
    return module


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("k", [0, 1, 5])
@pytest.mark.parametrize("names", ["n", "k", "nk"])
def test_results_stay(n: int, k: int, names: str) -> None:
    args = (floats(n, k), floats(k))
    bound = bind(MIXED, **{name: {"n": n, "k": k}[name] for name in names})
    expected = runner(parse_module(MIXED), "main", "interpret")(*args)
    assert_same(runner(bound, "main", "interpret")(*args), expected, EXACT, names)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_equal_dimensions_stay_equal(n: int) -> None:
    args = (floats(n), floats(n))
    expected = runner(parse_module(EQUAL), "main", "interpret")(*args)
    for name in ("n", "k"):
        assert_same(runner(bind(EQUAL, **{name: n}), "main", "interpret")(*args), expected, EXACT, name)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_closures_and_loops(n: int, times: int) -> None:
    args = (floats(n, 4), times)
    expected = runner(parse_module(NESTED), "main", "interpret")(*args)
    assert_same(runner(bind(NESTED, n=n), "main", "interpret")(*args), expected, EXACT, f"n = {n}")


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3"):
        runner(bind(MIXED, n=4), "main", "interpret")(floats(3, 1), floats(1))


def test_a_symbol_that_no_parameter_gives_any_more() -> None:
    program = """
    relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n * m], f32>) -> !relax.prim<i64, m> {
      relax.return %m
    }
    """
    with pytest.raises(InvalidModule, match="cannot be entered"):
        bind(program, n=0)
    assert runner(bind(program, n=2), "main", "interpret")(floats(2), floats(6)) == 3


def test_options() -> None:
    written = BindSymbolicVarsPass("main", {"n": 4, "k": 2})
    assert str(written.spec()) == 'bind-symbolic-vars{func="main" n=4 k=2}'
    assert BindSymbolicVarsPass.from_spec(written.spec()) == written
    with pytest.raises(ValueError, match="one integer for n"):
        BindSymbolicVarsPass.from_spec(ArgSpec("bind-symbolic-vars", {"n": (1, 2)}))
