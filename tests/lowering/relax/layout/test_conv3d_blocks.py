"""Convolutions over three dimensions mean the same on channels in blocks."""

import numpy as np
import pytest

from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from tests.support.programs import Tolerance, check_pass, run_in_turn

NEAR = Tolerance(1e-4, 1e-4)
SHAPES = [(0, 16, 3, 4, 9), (1, 16, 1, 1, 4), (2, 16, 3, 5, 17)]


def network():
    """Two convolutions with what is elementwise between them."""
    rng = np.random.default_rng(0)
    builder = BlockBuilder()

    def given(*shape: int):
        return builder.const(rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    with builder.function("main", {"x": tensor(("n", 16, "d", "h", "w"))}) as (x,):
        y = op.nn.conv3d(x, given(32, 16, 3, 2, 1), padding=[1, 1, 0, 1, 0, 0])
        y = op.nn.relu(op.add(y, given(32, 1, 1, 1)))
        y = op.nn.conv3d(y, given(16, 32, 1, 1, 3), strides=[1, 2, 2], padding=[0, 0, 2, 0, 0, 2], dilation=[1, 1, 2])
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_values_are_the_same(shape: tuple[int, ...]):
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    check_pass(network(), "convert-layout{block=16}", [[x]], tolerance=NEAR)


def test_compiled():
    """Of the machine's blocks, at the edges of volumes."""
    x = np.random.default_rng(1).uniform(-1, 1, SHAPES[-1]).astype(np.float32)
    run_in_turn(network(), "main", [x], NEAR)
