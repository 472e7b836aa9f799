"""Products of sums and of columns that are taken: the same values."""

import numpy as np
import pytest
from xdsl.ir import BlockArgument

from relax_dialect.ops.linear_algebra import MatmulOp
from tests.support.programs import Tolerance, check_pass

ROUNDED = Tolerance(1e-5, 1e-6)


@pytest.mark.parametrize("shape", ["n", "2, n"])
def test_sum_of_three(shape: str):
    text = f"""
    relax.func @main[%n](%x: !relax.tensor<[{shape}, 3], f32>, %a: !relax.tensor<[3, 4], f32>,
        %b: !relax.tensor<[3, 4], f32>, %c: !relax.tensor<[3, 4], f32>) -> !relax.tensor<[{shape}, 4], f32> {{
      %0 = relax.add %a, %b
      %1 = relax.add %0, %c
      %2 = relax.matmul %x, %1
      relax.return %2
    }}
    """
    rng = np.random.default_rng(0)
    parts = list(rng.random((3, 3, 4), np.float32))
    inputs = [[rng.random((n, 3) if shape == "n" else (2, n, 3), np.float32), *parts] for n in (0, 1, 5)]
    module = check_pass(text, "expand-matmul-of-sum", inputs, tolerance=ROUNDED)
    assert len([op for op in module.walk() if isinstance(op, MatmulOp)]) == 3


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("axis", [1, -1])
def test_columns(axis: int, mode: str):
    text = f"""
    relax.func @main[%n, %m](%x: !relax.tensor<[n, 3], f32>, %w: !relax.tensor<[3, 4], f32>,
        %i: !relax.tensor<[m], i64>) -> !relax.tensor<[n, m], f32> {{
      %0 = relax.take %w, %i axis = {axis} mode = "{mode}"
      %1 = relax.matmul %x, %0
      relax.return %1
    }}
    """
    rng = np.random.default_rng(0)
    places = rng.integers(-9, 9, 7)
    inputs = [[rng.random((n, 3), np.float32), rng.random((3, 4), np.float32), places] for n in (0, 1, 5)]
    module = check_pass(text, "reorder-take-after-matmul", inputs, tolerance=ROUNDED)
    (product,) = [op for op in module.walk() if isinstance(op, MatmulOp)]
    assert isinstance(product.y, BlockArgument), "the matrix itself"
