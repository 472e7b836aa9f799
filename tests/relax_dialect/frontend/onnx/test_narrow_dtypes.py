"""Floats of 8 and 4 bits and integers of 4 and 2 in ONNX: conversions, quantised numbers, packed initializers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.support.narrow import NARROW, Array, every_value, same_bits
from tests.support.programs import EXACT, run_in_turn
from tir_dialect.dtypes import numpy_dtype, parse_dtype

NAMES = {
    TensorProto.FLOAT8E4M3FN: "f8E4M3FN",
    TensorProto.FLOAT8E4M3FNUZ: "f8E4M3FNUZ",
    TensorProto.FLOAT8E5M2: "f8E5M2",
    TensorProto.FLOAT8E5M2FNUZ: "f8E5M2FNUZ",
    TensorProto.FLOAT8E8M0: "f8E8M0FNU",
    TensorProto.FLOAT4E2M1: "f4E2M1FN",
    TensorProto.INT4: "i4",
    TensorProto.UINT4: "ui4",
    TensorProto.INT2: "i2",
    TensorProto.UINT2: "ui2",
}
KINDS = {name: kind for kind, name in NAMES.items()}


def run(nodes: list[Any], inputs: dict[str, Array], output: int, initializers: Sequence[Any] = ()) -> Any:
    """The output `y` of a graph, the same in every mode."""
    kinds = [(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*kind) for kind in kinds],
        [helper.make_tensor_value_info("y", output, None)],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    return run_in_turn(import_model(model), "main", list(inputs.values()), EXACT)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES.values())
def test_initializers_are_unpacked(name: str):
    values = every_value(name)
    values = values[np.isfinite(values.astype(np.float32))]
    kind = KINDS[name]
    constant = helper.make_tensor("c", kind, [len(values)], values.astype(np.float32))
    nodes = [
        helper.make_node("Gather", ["c", "x"], ["g"]),
        helper.make_node("Cast", ["g"], ["y"], to=TensorProto.FLOAT),
    ]
    places = np.array([len(values) - 1, 1, 2], np.int64)
    result = run(nodes, {"x": places}, TensorProto.FLOAT, [constant])
    np.testing.assert_array_equal(result, values[places].astype(np.float32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in NAMES.values() if name.startswith("f8E") and "E8" not in name])
def test_casts_saturate_unless_they_are_told_not_to(name: str):
    dtype = numpy_dtype(parse_dtype(name))
    x = np.array([0.3, -1e9, 1e9, np.inf, -np.inf, np.nan, -0.0], np.float32)
    limit = float(ml_dtypes.finfo(dtype).max)
    for saturate in (0, 1):
        nodes = [helper.make_node("Cast", ["x"], ["y"], to=KINDS[name], saturate=saturate)]
        with np.errstate(all="ignore"):
            wanted = (np.clip(x, -limit, limit) if saturate else x).astype(dtype)
        assert same_bits(run(nodes, {"x": x}, KINDS[name]), wanted)


@pytest.mark.parametrize(("mode", "wanted"), [("up", [4, 2, 0.5]), ("down", [2, 2, 0.25]), ("nearest", [4, 2, 0.25])])
def test_powers_of_two_are_rounded_as_the_node_says(mode: str, wanted: list[float]):
    x = np.array([3.0, 2.0, 0.3], np.float32)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode=mode)]
    assert run(nodes, {"x": x}, TensorProto.FLOAT8E8M0).astype(float).tolist() == wanted


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in NAMES.values() if "E8M0" not in name])
def test_numbers_are_quantised_and_read_back(name: str):
    dtype, x = numpy_dtype(parse_dtype(name)), np.array([-40.0, -1.0, 0.0, 0.7, 3.0, 1000.0], np.float32)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    zero = helper.make_tensor("z", KINDS[name], [], [0.0])
    result = run(nodes, {"x": x}, TensorProto.FLOAT, [helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]), zero])
    limits = ml_dtypes.iinfo(dtype) if "i" in name else ml_dtypes.finfo(dtype)
    scaled = np.clip(np.round(x / 0.5) if "i" in name else x / 0.5, float(limits.min), float(limits.max))
    np.testing.assert_array_equal(result, scaled.astype(dtype).astype(np.float32) * 0.5)


def test_quantised_numbers_of_other_floats_are_refused():
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=TensorProto.FLOAT16)]
    scale = helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])
    with pytest.raises(OnnxImportError):
        run(nodes, {"x": np.zeros(2, np.float32)}, TensorProto.FLOAT16, [scale])


def test_every_narrow_dtype_of_onnx_is_here():
    assert set(NAMES.values()) <= set(NARROW)
