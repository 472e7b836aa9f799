"""Recurrent layers of bytes: against the layer in float64 whose data and states are quantised before each product."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import import_model
from tests.relax_dialect.frontend.onnx.models import Array, results
from vm_dialect import VirtualMachine

FEATURES, UNITS = 5, 18
WIDTH = 4 * UNITS


def _operands(dtype: str, zero: int, by_unit: bool, directions: int) -> dict[str, Array]:
    """Weights, bias and peephole weights, so small that no function of a gate is saturated."""
    rng = np.random.default_rng(zero + directions)
    low, high = (-128, 128) if dtype == "i1" else (0, 256)
    found: dict[str, Array] = {}
    for name, size in (("w", FEATURES), ("r", UNITS)):
        shape = (directions, WIDTH) if by_unit else (directions,)
        found[name] = rng.integers(low, high, (directions, size, WIDTH)).astype(dtype)
        found[f"{name}_scale"] = rng.uniform(0.001, 0.002, shape).astype("f4")
        found[f"{name}_zero"] = np.full(shape, zero, dtype)
    found["b"] = rng.normal(0, 0.2, (directions, 2 * WIDTH)).astype("f4")
    return found


def _model(operands: dict[str, Array], direction: str, stored: bool = True) -> ModelProto:
    names = ["x", "w", "r", "b", "lengths", "h0", "c0", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        names,
        ["y", "h", "c"],
        domain="com.microsoft",
        direction=direction,
        hidden_size=UNITS,
    )
    state = [len(operands["w"]), "b", UNITS]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", "b", FEATURES])]
    inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["b"]))
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in ("h0", "c0")]
    given = [] if stored else ["w", "r"]
    inputs += [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in operands.items()
        if name in given
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "h", "c")]
    constants = [numpy_helper.from_array(each, name) for name, each in operands.items() if name not in given]
    graph = helper.make_graph([node], "graph", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _quantized(x: Array) -> Array:
    """The numbers for which integers stand by `DynamicQuantizeLinear`."""
    low, high = np.float32(min(x.min(initial=0), 0)), np.float32(max(x.max(initial=0), 0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    point = np.rint(np.clip(-low / scale, 0, 255))
    return (np.clip(np.rint(x.astype(np.float32) / scale) + point, 0, 255) - point) * np.float64(scale)


def _weights(operands: dict[str, Array], name: str, d: int) -> Array:
    scale, zero = operands[f"{name}_scale"][d], operands[f"{name}_zero"][d]
    return (operands[name][d].astype(np.float64) - zero) * scale


def _expected(
    operands: dict[str, Array], reverse: list[bool], x: Array, lengths: Array, h0: Array, c0: Array
) -> tuple[Array, ...]:
    y, last = np.zeros((x.shape[0], len(reverse), x.shape[1], UNITS)), (h0.astype(np.float64), c0.astype(np.float64))
    for d, is_reverse in enumerate(reverse):
        gates = _quantized(x) @ _weights(operands, "w", d) + operands["b"][d, :WIDTH] + operands["b"][d, WIDTH:]
        for step in reversed(range(len(x))) if is_reverse else range(len(x)):
            h, c = last[0][d], last[1][d]
            i, o, f, g = np.split(gates[step] + _quantized(h) @ _weights(operands, "r", d), 4, axis=1)
            i, o, f = (1 / (1 + np.exp(-each)) for each in (i, o, f))
            c = f * c + i * np.tanh(g)
            h, alive = o * np.tanh(c), (step < lengths)[:, None]
            y[step, d] = np.where(alive, h, 0)
            for state, new in zip(last, (h, c), strict=True):
                state[d] = np.where(alive, new, state[d])
    return (y, *last)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dtype", "zero", "by_unit", "direction"),
    [
        ("i1", 0, False, "forward"),
        ("i1", 0, True, "bidirectional"),
        ("u1", 128, False, "reverse"),
        ("u1", 99, True, "forward"),
    ],
)
def test_dynamic_quantize_lstm(dtype: str, zero: int, by_unit: bool, direction: str):
    reverse = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    operands = _operands(dtype, zero, by_unit, len(reverse))
    function = VirtualMachine(build(import_model(_model(operands, direction))))["main"]
    for length, batch in ((1, 1), (7, 3), (0, 2), (3, 0)):
        rng = np.random.default_rng(length)
        x = rng.normal(0, 1, (length, batch, FEATURES)).astype("f4")
        lengths = rng.integers(0, length + 1, batch).astype("i4")
        h0, c0 = (rng.normal(0, 0.3, (len(reverse), batch, UNITS)).astype("f4") for _ in range(2))
        found = results(function, x, lengths, h0, c0)
        for ours, theirs in zip(found, _expected(operands, reverse, x, lengths, h0, c0), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_weights_that_are_inputs_become_numbers():
    operands = _operands("i1", 0, False, 1)
    proto = _model(operands, "forward", stored=False)
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (4, 2, FEATURES)).astype("f4")
    lengths, state = np.array([4, 2], "i4"), np.zeros((1, 2, UNITS), "f4")
    function = VirtualMachine(build(import_model(proto)))["main"]
    y, *_ = results(function, x, lengths, state, state, operands["w"], operands["r"])
    exact = _expected(operands, [False], x, lengths, state, state)[0]
    np.testing.assert_allclose(y, exact, atol=0.02)  # nothing is quantised
