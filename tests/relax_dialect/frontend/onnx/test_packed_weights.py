"""Weights in blocks stay packed in the executable, and mean what ONNX says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine

K, N, SIZE = 256, 512, 64
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, K)).astype(np.float32)
SCALE = RNG.uniform(0.01, 0.1, (N, K // SIZE)).astype(np.float32)


def _model(nodes: list[Any], constants: dict[str, np.ndarray]) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", K])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "graph", [x], [y], initializers)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _check(model: ModelProto, weights: np.ndarray, most_bytes: float, path: Path) -> None:
    """The product of `X` with the weights; besides its code the executable has at most so many bytes for each."""
    module = import_model(model)
    assert "relax.dequantize_blocks" in str(module)
    executable = build(module)
    executable.save(path)
    assert path.stat().st_size < most_bytes * K * N + 100_000
    found = np.from_dlpack(VirtualMachine(executable)["main"](X))
    expected = X @ weights.T
    # Rows may have 16 bits.
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("bits", "has_zero"), [(4, False), (4, True), (8, True)])
def test_products_with_few_bits(bits: int, has_zero: bool, tmp_path: Path):
    integers = RNG.integers(0, 1 << bits, (N, K // SIZE, SIZE), np.uint8)
    packed = integers if bits == 8 else integers[..., ::2] | integers[..., 1::2] << 4
    zero = RNG.integers(0, 1 << bits, (N, K // SIZE), np.uint8)
    constants = {"w": packed, "s": SCALE.reshape(-1)}
    if has_zero:
        constants["z"] = (zero if bits == 8 else zero[:, ::2] | zero[:, 1::2] << 4).reshape(-1)
    attributes = {"K": K, "N": N, "bits": bits, "block_size": SIZE}
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **attributes)
    origin = zero[..., None].astype(np.float32) if has_zero else np.float32(1 << (bits - 1))
    weights = ((integers - origin) * SCALE[..., None]).reshape(N, K)
    _check(_model([node], constants), weights, 0.75 if bits == 4 else 1.25, tmp_path / "model.rvm")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "axis"), [("int4", 0), ("uint4", 1), ("int8", 0), ("uint8", 1)])
def test_blocked_dequantisation(dtype: str, axis: int, tmp_path: Path):
    bits, low = (int(dtype[-1]), -(1 << (int(dtype[-1]) - 1)) if dtype.startswith("int") else 0)
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    integers, zero = (RNG.integers(low, low + (1 << bits), shape) for shape in ((N, K), SCALE.shape))
    weights = (integers - np.repeat(zero, SIZE, 1)) * np.repeat(SCALE, SIZE, 1)
    arrays = [integers.astype(kind), SCALE, zero.astype(kind)]
    if axis == 0:
        arrays = [np.ascontiguousarray(array.T) for array in arrays]
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=axis, block_size=SIZE)]
    nodes += [] if axis == 0 else [helper.make_node("Transpose", ["f"], ["t"])]
    nodes.append(helper.make_node("MatMul", ["x", "f" if axis == 0 else "t"], ["y"]))
    model = _model(nodes, dict(zip("wsz", arrays, strict=True)))
    _check(model, weights, 0.75 if bits == 4 else 1.25, tmp_path / "model.rvm")
