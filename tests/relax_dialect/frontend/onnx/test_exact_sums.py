"""Sums of integers are exact: products are of bytes, convolutions in single precision where the weights allow it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from relax_dialect.frontend.onnx import import_model
from tests.relax_dialect.frontend.onnx.models import assert_same, info, model, reference, run


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 0), (np.int8, -5), (np.uint8, 128), (np.uint8, 3)])
def test_products(dtype: type[np.generic], zero: int):
    a, b = np.full((2, 600), 255, np.uint8), np.full((600, 3), np.iinfo(dtype).min, dtype)
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.INT32, [None, None])
    constants = {"b": b, "za": np.array(7, np.uint8), "zb": np.array(zero, dtype)}
    proto = model([node], [info("a", a, ["rows", 600])], [output], constants)
    assert "relax.matmul %a" in str(import_model(proto))
    expected = (a.astype(np.int32) - 7) @ (b.astype(np.int32) - zero)
    assert_same(run(proto, a), [expected])


def test_convolutions_with_zero_points_by_filter():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (1, 3, 5, 5)).astype(np.uint8)
    constants = {
        "w": rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
        "zx": np.array(120, np.uint8),
        "zw": np.array([0, 3, -7, 127], np.int8),
    }
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    output = helper.make_tensor_value_info("y", TensorProto.INT32, [None] * 4)
    proto = model([node], [info("x", x)], [output], constants)
    assert "relax.astype %x dtype = f32" in str(import_model(proto))
    by_filter = np.concatenate([_conv(proto, x, at) for at in range(4)], 1)
    assert_same(run(proto, x), [by_filter])


def _conv(proto: ModelProto, x: np.ndarray, at: int) -> np.ndarray:
    """One filter, as the onnx package computes it, which takes one zero point only."""
    one = ModelProto()
    one.CopyFrom(proto)
    del one.graph.initializer[:]
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        one.graph.initializer.append(
            numpy_helper.from_array(array if tensor.name == "zx" else array[at : at + 1], tensor.name)
        )
    return reference(one, {"x": x})[0]
