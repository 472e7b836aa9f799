"""`lift-transform-params`: both parts together are the function that they come from."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from tests.support.programs import MODES, Tolerance, assert_same, run_pipeline, runner

PROGRAM = """
relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>, %w: !relax.tensor<[8, k], f32>, %b: !relax.tensor<[8], f32>)
    -> !relax.tensor<[n, 8], f32> {
  %0 = relax.permute_dims %w
  %1 = relax.exp %0
  %2 = relax.matmul %x, %1
  %3 = relax.tanh %b
  %4 = relax.add %2, %3
  %5 = relax.add %4, %b
  relax.return %5
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_parts_make_the_whole(mode: str):
    rng = np.random.default_rng(0)
    x, w, b = [rng.standard_normal(shape, np.float32) for shape in ((3, 5), (8, 5), (8,))]
    module = parse_module(PROGRAM)
    expected = runner(module, "main", mode)(x, w, b)
    run_pipeline(module, "lift-transform-params")
    weights = runner(module, "main_transform_params", mode)(w, b)
    assert isinstance(weights, tuple)
    assert_same(runner(module, "main", mode)(x, *weights), expected, Tolerance(), mode)
