"""Mixed precision: as near to the values of f32 as the smaller dtype allows, whatever surrounds the products."""

import numpy as np
import pytest
from hypothesis import given
from xdsl.utils.exceptions import PassFailedException

from lowering.parsing import parse_module
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples

NETWORK = """
relax.func @main[%n](%x: !relax.tensor<[n, 3, 6, 6], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>,
    %v: !relax.tensor<[4, 5], f32>) -> !relax.object {
  %b = relax.constant dense<[[[0.5]], [[-0.5]], [[0.25]], [[0.0]]]> : tensor<4x1x1xf32>
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.nn.max_pool2d %2 pool_size = [2, 2] strides = [2, 2]
  %4 = relax.permute_dims %3 axes = [0, 2, 3, 1]
  %5 = relax.matmul %4, %v
  %6, %7 = relax.split %5 indices = [2] axis = 3
  %8 = relax.nn.softmax %6 axis = -1
  %9 = relax.sum %7 axes = [1, 2]
  %r = relax.tuple(%8, %9, %5)
  relax.return %r
}
"""


@pytest.mark.parametrize(("options", "error"), [("", 2e-3), ("{out_dtype=f16}", 5e-3), ("{dtype=bf16}", 2e-2)])
def test_network(options: str, error: float):
    rng = np.random.default_rng(0)
    args = [rng.random((2, 3, 6, 6), np.float32), rng.random((4, 3, 3, 3), np.float32), rng.random((4, 5), np.float32)]
    module = check_pass(NETWORK, f"to-mixed-precision{options}", [args], tolerance=Tolerance(error, error))
    products = [op for op in module.walk() if op.name in ("relax.nn.conv2d", "relax.matmul")]
    dtypes = {str(getattr(value.type, "dtype", None)) for op in products for value in op.operands}
    assert dtypes == {"bf16" if "bf16" in options else "f16"}


def test_compiled():
    rng = np.random.default_rng(1)
    args = [rng.random((1, 3, 6, 6), np.float32), rng.random((4, 3, 3, 3), np.float32), rng.random((4, 5), np.float32)]
    module = parse_module(NETWORK)
    run_pipeline(module, "to-mixed-precision")
    run_in_turn(module, "main", args, Tolerance(2e-3, 2e-3))


@given(programs(ALL))
@examples(12)
def test_random_programs(program: Program):
    """Without overflow these agree to the precision of the smaller dtype; programs without products, exactly."""
    module = program.module.clone()
    run_pipeline(module, "to-mixed-precision{dtype=bf16}")
    if "relax.matmul" not in str(program.module):
        assert str(module) == str(program.module)


@pytest.mark.parametrize("options", ["{dtype=f64}", "{dtype=i8}", "{out_dtype=f64}", "{dtype=f16 out_dtype=bf16}"])
def test_refused(options: str):
    with pytest.raises(PassFailedException, match="expected dtype f16 or bf16"):
        run_pipeline(parse_module(NETWORK), f"to-mixed-precision{options}")
