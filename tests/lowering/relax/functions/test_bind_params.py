"""A function with constants does what the function with these arguments does."""

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.relax.functions.bind_params import BindParamsPass
from lowering.verify import verify_module
from tests.support.programs import EXACT, assert_same, runner

LINEAR = """
relax.func @main[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %w: !relax.tensor<[k, m], f32>, %b: !relax.tensor<*, f32>)
    -> !relax.tuple<!relax.tensor<[n, m], f32>, !relax.tensor<*, f32>, !relax.prim<i64, k * m>> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.prim k * m
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}
"""

DERIVED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[2 * n], f32>) -> !relax.tensor<[3 * n], f32> {
  %0 = relax.concat %x, %w axis = 0
  relax.return %0
}
"""

PRODUCT = """
relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %w: !relax.tensor<[n * m], f32>)
    -> !relax.tensor<[n * m], f32> {
  relax.return %w
}
"""

HIDDEN = """
relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[n * m], f32>) -> !relax.prim<i64, m> {
  relax.return %m
}
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 2


def bind(program: str, params: dict[int | str, Any]) -> ModuleOp:
    module = parse_module(program)
    BindParamsPass("main", params).apply(Context(), module)
    verify_module(module)
    return module


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("keys", [("w",), (2,), (1, "b"), ("x", "w", "b"), (0,)])
def test_results_stay(n: int, k: int, m: int, keys: tuple[int | str, ...]) -> None:
    args = (floats(n, k), floats(k, m), floats(m))
    position = {"x": 0, "w": 1, "b": 2, 0: 0, 1: 1, 2: 2}
    bound = {position[key] for key in keys}
    module = bind(LINEAR, {key: args[position[key]] for key in keys})
    left = [arg for index, arg in enumerate(args) if index not in bound]
    expected = runner(parse_module(LINEAR), "main", "interpret")(*args)
    assert_same(runner(module, "main", "interpret")(*left), expected, EXACT, str(keys))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_size_that_is_solved_for(n: int) -> None:
    function = runner(bind(DERIVED, {"w": floats(2 * n)}), "main", "interpret")
    expected = runner(parse_module(DERIVED), "main", "interpret")(floats(n), floats(2 * n))
    assert_same(function(floats(n)), expected, EXACT, f"n = {n}")
    with pytest.raises(ValueError, match=f"got {n + 1}"):
        function(floats(n + 1))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_size_that_other_parameters_give_is_checked(n: int) -> None:
    function = runner(bind(PRODUCT, {"w": floats(6)}), "main", "interpret")
    args = (floats(n), floats(6 // n), floats(6))
    assert_same(function(*args[:2]), runner(parse_module(PRODUCT), "main", "interpret")(*args), EXACT, f"n = {n}")
    with pytest.raises(ValueError, match="expected"):
        function(floats(n), floats(7))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"w": np.zeros((2, 3), np.float64)}, "parameter #1: expected"),
        ({"w": floats(2)}, "parameter #1"),
        ({"x": floats(1, 2), "w": floats(3, 4)}, "parameter #1 dimension 0"),
        ({"y": floats(2)}, "has the parameters x, w, b, got a value for y"),
        ({1: floats(2, 3), "w": floats(2, 3)}, "two values for parameter #1"),
    ],
)
def test_wrong_arrays_are_refused(params: dict[int | str, Any], message: str) -> None:
    with pytest.raises(InvalidModule, match=message):
        bind(LINEAR, params)


def test_a_symbol_that_no_parameter_gives_any_more() -> None:
    with pytest.raises(InvalidModule, match="cannot be entered"):
        bind(HIDDEN, {"w": floats(6)})


def test_options() -> None:
    written = BindParamsPass("main", {"w": "fc.weight"})
    assert str(written.spec()) == 'bind-params{func="main" w="fc.weight"}'
    assert BindParamsPass.from_spec(written.spec()) == written
    with pytest.raises(ValueError, match="one name for w"):
        BindParamsPass.from_spec(ArgSpec("bind-params", {"w": (1,)}))
    with pytest.raises(ValueError, match="array for w"):
        BindParamsPass("main", {"w": floats(2)}).spec()
