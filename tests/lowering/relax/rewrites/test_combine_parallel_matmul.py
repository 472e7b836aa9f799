"""Combined products give the values of the single ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import Expr, tensor
from relax_dialect.builder import op as R
from tests.support.programs import Tolerance, check_pass, run_in_turn
from tests.support.sweeps import examples

NAME = "combine-parallel-matmul"
DEPTH = 4


@st.composite
def siblings(draw: st.DrawFn) -> str:
    """Products of one value, each with some of a bias and functions."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    bb = BlockBuilder()
    results: list[Expr] = []
    with bb.function("main", {"x": tensor(["n", DEPTH], "float32")}) as function:
        for _ in range(draw(st.integers(2, 4))):
            columns = draw(st.integers(1, 3))
            value = bb.emit(R.matmul(function.params[0], rng.random((DEPTH, columns), np.float32)))
            for step in draw(st.lists(st.sampled_from(["bias", "relu", "tanh", "number"]), max_size=2)):
                if step == "bias":
                    value = bb.emit(R.add(value, rng.random(columns, np.float32)))
                elif step == "number":
                    value = bb.emit(R.add(np.full(1, 2, np.float32), value))
                else:
                    value = bb.emit(R.nn.relu(value) if step == "relu" else R.tanh(value))
            results.append(value)
        bb.emit_func_output(results)
    return str(bb.finalize())


@given(text=siblings())
@examples(15)
def test_values_stay(text: str):
    rng = np.random.default_rng(0)
    inputs = [[rng.random((n, DEPTH), np.float32)] for n in (0, 3)]
    module = check_pass(text, NAME, inputs, tolerance=Tolerance(1e-6, 1e-6))
    assert str(module).count("relax.matmul") == 1


@pytest.mark.parametrize("rows", [1, 5])
def test_compiled(rows: int):
    text = """
    relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
      %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %v = relax.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
      %0 = relax.matmul %x, %w
      %1 = relax.nn.silu %0
      %2 = relax.matmul %x, %v
      %3 = relax.multiply %1, %2
      relax.return %3
    }
    """
    x = np.random.default_rng(0).random((rows, 2), np.float32)
    module = check_pass(text, NAME, [[x]], tolerance=Tolerance(1e-6, 1e-6))
    run_in_turn(module, "main", [x])
