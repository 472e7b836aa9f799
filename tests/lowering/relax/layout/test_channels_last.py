"""Convolutions of integers mean the same with the channels last."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32

from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from tests.support.programs import check_pass, run_in_turn

RNG = np.random.default_rng(0)


def _weights(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def _program() -> str:
    """Convolutions of bytes, of each channel for itself, and of groups, whose results are used twice."""
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(("n", 4, "h", 6), "ui8")}) as (x,):
        whole = op.nn.conv2d(
            op.nn.pad(x, [0, 0, 0, 0, 1, 1, 2, 0], pad_value=9), bb.const(_weights(6, 4, 3, 3)), out_dtype=i32
        )
        numbers = op.clip(op.multiply(op.astype(whole, f32), bb.const(np.float32(0.001))), -100, 100)
        data = op.subtract(op.astype(op.astype(op.round(numbers), i8), f32), bb.const(np.float32(3)))
        alone = op.nn.conv2d(data, bb.const(_weights(6, 1, 3, 3).astype(np.float32)), padding=[1], groups=6)
        groups = op.nn.conv2d(data, bb.const(_weights(6, 3, 1, 1).astype(np.float32)), groups=2)
        bb.emit_func_output(op.tuple(op.add(alone, groups), whole))
    return str(bb.get())


def test_values():
    """Sums of small integers are exact in `f32`, so that nothing differs in any order."""
    text = _program()
    inputs = [[RNG.integers(0, 256, (n, 4, h, 6)).astype(np.uint8)] for n, h in ((2, 5), (1, 3), (0, 4))]
    check_pass(text, "channels-last,simplify-permute-dims", inputs)
    for each in inputs:
        run_in_turn(text, "main", each)
