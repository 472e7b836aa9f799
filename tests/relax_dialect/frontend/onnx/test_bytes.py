"""Quantised products and convolutions multiply bytes, also where the model multiplies what these stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from relax_dialect.frontend.onnx import import_model
from tests.relax_dialect.frontend.onnx.models import assert_same, info, model, reference, run

RNG = np.random.default_rng(0)
DATA = {"xs": np.float32(0.02), "xz": np.uint8(12)}
RESULT = {"ys": np.float32(0.5), "yz": np.uint8(100)}


def weights(*shape: int) -> dict[str, np.ndarray]:
    count = shape[0]
    return {
        "w": RNG.integers(-128, 128, shape).astype(np.int8),
        "ws": (RNG.random(count) + 0.1).astype(np.float32) / 100,
        "wz": np.zeros(count, np.int8),
        "b": RNG.integers(-999, 999, count).astype(np.int32),
    }


def output(rank: int, dtype: int) -> object:
    return helper.make_tensor_value_info("y", dtype, [None] * rank)


def test_quantised_convolution() -> None:
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1], strides=[2, 1])
    x = RNG.integers(0, 256, (2, 3, 6, 7)).astype(np.uint8)
    constants = {key: np.asarray(value) for key, value in {**DATA, **weights(5, 3, 3, 3), **RESULT}.items()}
    proto = model([node], [info("x", x, ["n", 3, "h", "w2"])], [output(4, TensorProto.UINT8)], constants)
    assert "out_dtype = i32" in str(import_model(proto))
    assert_same(run(proto, x), [by_hand(x, constants)])


def by_hand(x: np.ndarray, given: dict[str, np.ndarray]) -> np.ndarray:
    """The convolution as its definition says."""
    padded = np.pad(x.astype(np.int64) - 12, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2]
    total = np.einsum("ncyxij,ocij->noyx", windows, given["w"].astype(np.int64)) + given["b"].reshape(-1, 1, 1)
    factor = (given["xs"] * given["ws"] / given["ys"]).reshape(-1, 1, 1)
    return np.clip(np.round(total.astype(np.float32) * factor) + 100, 0, 255).astype(np.uint8)


def dequantised(op: str, shape: tuple[int, ...], x: np.ndarray, axis: int, **attributes: int) -> ModelProto:
    constants = {key: np.asarray(value) for key, value in {**DATA, **weights(*shape)}.items()}
    if axis:
        constants["w"] = np.ascontiguousarray(constants["w"].T)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["c"], axis=axis),
        helper.make_node(op, ["a", "c"], ["y"], **attributes),
    ]
    dims = ["n", *x.shape[1:]]
    return model(nodes, [info("x", x, dims)], [output(x.ndim, TensorProto.FLOAT)], constants)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("op", "shape", "data", "axis", "attributes"),
    [
        ("Conv", (5, 3, 1, 1), (2, 3, 4, 5), 0, {}),
        ("Conv", (6, 1, 3, 3), (2, 6, 4, 5), 0, {"group": 6, "pads": [1, 1, 2, 0]}),
        ("Conv", (6, 2, 1, 1), (2, 6, 4, 5), 0, {"group": 3}),
        ("MatMul", (6, 9), (3, 9), 1, {}),
        ("Gemm", (6, 9), (3, 9), 0, {"transB": 1}),
    ],
)
def test_numbers_for_which_bytes_stand(
    op: str, shape: tuple[int, ...], data: tuple[int, ...], axis: int, attributes: dict[str, Any]
) -> None:
    x = RNG.integers(0, 256, data).astype(np.uint8)
    proto = dequantised(op, shape, x, axis, **attributes)
    # Sums of a few channels are of integers too, but in `f32`; the scales come afterwards.
    few = attributes.get("group", 1) == 3
    assert ("groups = 3" if few else "out_dtype = i32") in str(import_model(proto))
    (got,), (expected,) = run(proto, x), reference(proto, {"x": x})
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-4)
