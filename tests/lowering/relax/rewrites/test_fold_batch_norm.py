"""Folded normalisation computes the same, up to rounding, with any layout."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from relax_dialect import BlockBuilder
from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.ops.values import ConstantOp
from tests.support.programs import Tolerance, check_pass
from tir_dialect.weights import WeightAttr


def _network(kind: str) -> tuple[ModuleOp, np.ndarray]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.random(shape, dtype=np.float32) + 0.5

    builder = BlockBuilder()
    channels = 4 if kind != "matmul" else 6
    shapes = {"nhwc": (5, 5, 2), "matmul": (3,), "alone": (4, 5, 5), "bias": (2, 5, 5), "nchw": (2, 5, 5)}
    with builder.function("main", {"x": ("n", *shapes[kind])}) as (x,):
        axis = 1
        match kind:
            case "nhwc":
                w = builder.const(floats(3, 3, 2, 4))
                y, axis = op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"), 3
            case "matmul":
                y = x @ builder.const(floats(3, 6)) + builder.const(floats(6))
            case "alone":
                y = x
            case _:
                y = op.nn.conv2d(x, builder.const(floats(4, 2, 3, 3)))
                y = y + builder.const(floats(1, 4, 1, 1)) if kind == "bias" else y
        statistics = [builder.const(floats(channels)) for _ in range(4)]
        y = op.nn.batch_norm(y, *statistics, axis=axis, epsilon=1e-3)
        builder.emit_func_output(op.nn.relu(y))
    return builder.get(), floats(2, *shapes[kind])


@pytest.mark.parametrize("kind", ["nchw", "nhwc", "bias", "matmul", "alone"])
def test_values_stay(kind: str):
    module, x = _network(kind)
    folded = check_pass(module, "fold-batch-norm", [[x]], tolerance=Tolerance(1e-5, 1e-5))
    names = [each.name for each in folded.walk()]
    assert "relax.nn.batch_norm" not in names
    assert ("relax.multiply" in names) == (kind == "alone")
    assert names.count("relax.add") == 1


@pytest.mark.parametrize("shift", [True, False])
def test_scales_behind_a_convolution(shift: bool):
    """As exporters write what other frameworks had as a layer of its own."""
    rng = np.random.default_rng(0)
    builder = BlockBuilder()

    def floats(*shape: int) -> Expr:
        return builder.const(rng.random(shape, dtype=np.float32) + 0.5)

    with builder.function("main", {"x": ("n", 2, 5, 5)}) as (x,):
        y = op.nn.conv2d(x, floats(4, 2, 3, 3))
        y = (y + floats(4, 1, 1)) * floats(1, 4, 1, 1) + floats(4, 1, 1) if shift else floats(4, 1, 1) * y
        builder.emit_func_output(op.nn.relu(y))
    picture = rng.random((2, 2, 5, 5), dtype=np.float32)
    folded = check_pass(builder.get(), "fold-batch-norm", [[picture]], tolerance=Tolerance(1e-5, 1e-5))
    names = [each.name for each in folded.walk()]
    assert "relax.multiply" not in names
    assert names.count("relax.add") == int(shift)


def test_a_value_that_is_used_elsewhere_keeps_its_scale():
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", 2, 5, 5)}) as (x,):
        y = op.nn.conv2d(x, builder.const(np.ones((4, 2, 3, 3), np.float32)))
        z = y * builder.const(np.full((4, 1, 1), 2, np.float32))
        builder.emit_func_output([y, z])
    folded = check_pass(builder.get(), "fold-batch-norm", [[np.ones((1, 2, 5, 5), np.float32)]])
    assert "relax.multiply" in [each.name for each in folded.walk()]


def test_scaled_weights_are_named_after_their_scale():
    rng = np.random.default_rng(0)
    weights, statistics = rng.random((4, 2, 3, 3), dtype=np.float32), rng.random((2, 4, 4), dtype=np.float32) + 0.5
    builder = BlockBuilder()
    with builder.function("main", {"x": ("n", 2, 5, 5)}) as (data,):
        made = [
            op.nn.batch_norm(
                op.nn.conv2d(data, builder.const(weights, name="w")), *map(builder.const, statistics[which])
            )
            for which in (0, 1, 1)
        ]
        builder.emit_func_output(made)
    x = rng.random((2, 2, 5, 5), dtype=np.float32)
    folded = check_pass(builder.get(), "fold-batch-norm", [[x]], tolerance=Tolerance(1e-5, 1e-5))
    constants = [each.value for each in folded.walk() if isinstance(each, ConstantOp)]
    first, second, third = [each.weight_name for each in constants if isinstance(each, WeightAttr)]
    assert first != second == third
    assert first.startswith("w.")
