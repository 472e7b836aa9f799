"""Convolutions with one window mean the same as matrix products."""

import numpy as np
import pytest

from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.linear_algebra import MatmulOp
from tests.support.programs import Tolerance, check_pass, run_pipeline

NEAR = Tolerance(1e-4, 1e-4)


def excitation():
    """A squeeze-and-excitation block between convolutions, and a window that is the whole image."""
    rng = np.random.default_rng(0)
    builder = BlockBuilder()

    def given(*shape: int):
        return builder.const(rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    with builder.function("main", {"x": tensor(("n", 16, 5, 5))}) as (x,):
        y = op.nn.conv2d(x, given(32, 16, 3, 3), padding=[1, 1])
        scale = op.mean(y, [2, 3], keepdims=True)
        scale = op.nn.relu(op.add(op.nn.conv2d(scale, given(8, 32, 1, 1)), given(1, 8, 1, 1)))
        scale = op.sigmoid(op.add(op.nn.conv2d(scale, given(32, 8, 1, 1)), given(32, 1, 1)))
        y = op.nn.conv2d(op.multiply(y, scale), given(16, 32, 1, 1))
        builder.emit_func_output(op.add(op.nn.conv2d(y, given(7, 16, 5, 5)), given(1, 7, 1, 1)))
    return builder.get()


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("passes", ["convert-conv-to-matmul", "optimize-graph"])
def test_the_values_are_the_same(batch: int, passes: str):
    x = np.random.default_rng(1).uniform(-1, 1, (batch, 16, 5, 5)).astype(np.float32)
    check_pass(excitation(), passes, [[x]], tolerance=NEAR)


def test_what_is_elementwise_joins_the_products():
    module = excitation()
    run_pipeline(module, "optimize-graph")
    products = [each for each in module.walk() if isinstance(each, MatmulOp)]
    sums = [each.x.owner for each in module.walk() if isinstance(each, AddOp)]
    assert len(products) == 3
    assert sums == products
