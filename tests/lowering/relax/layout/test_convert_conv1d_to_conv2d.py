"""Convolutions of lines mean the same as those of pictures with one row."""

import numpy as np
import pytest

from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp
from tests.support.programs import Tolerance, check_pass, run_pipeline

NEAR = Tolerance(1e-4, 1e-4)


def network():
    """Two convolutions, a normalisation that folds into the first, and what is elementwise between them."""
    rng = np.random.default_rng(0)
    builder = BlockBuilder()

    def given(*shape: int):
        return builder.const(rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    with builder.function("main", {"x": tensor(("n", 16, "l"))}) as (x,):
        y = op.nn.conv1d(x, given(32, 16, 3), padding=[1, 1])
        y = op.nn.batch_norm(y, given(32), given(32), given(32), op.abs(given(32)), axis=1)
        y = op.nn.relu(op.add(y, given(32, 1)))
        builder.emit_func_output(op.nn.conv1d(y, given(48, 32, 4), strides=[2], padding=[3, 0], dilation=[2]))
    return builder.get()


@pytest.mark.parametrize("shape", [(0, 16, 9), (1, 16, 4), (3, 16, 40)])
def test_the_values_are_the_same(shape: tuple[int, int, int]):
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    check_pass(network(), "convert-conv1d-to-conv2d", [[x]], tolerance=NEAR)


def test_a_normalisation_is_part_of_the_weights_before():
    module = network()
    run_pipeline(module, "optimize-graph")
    assert not any(isinstance(each, Conv1dOp) for each in module.walk())
    blocked = [each for each in module.walk() if isinstance(each, Conv2dOp) and each.data_layout is not None]
    assert len(blocked) == 2
    assert "batch_norm" not in str(module)
    assert "rsqrt" not in str(module)
