"""Models that somebody damaged: an error or a program, never anything else."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, helper

from relax_dialect.frontend.onnx import OnnxImportError, graph, import_model
from tests.relax_dialect.frontend.onnx.models import info, model, unknown

X = np.ones((1, 2, 5, 5), np.float32)
NUMBERS = (0, 1, -1, 3, 7, -5, 100, 1 << 31, 1 << 40, -(1 << 63), (1 << 62))


def _model() -> ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], group=1),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Shape", ["p"], ["s"], start=0, end=1),
        helper.make_node("Concat", ["s", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["p", "t"], ["r"]),
        helper.make_node("Slice", ["r", "begin", "end"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=-1),
    ]
    constants = {
        "w": np.ones((3, 2, 3, 3), np.float32),
        "rest": np.int64([-1]),
        "begin": np.int64([0, 1]),
        "end": np.int64([1, 4]),
    }
    return model(nodes, [info("x", X, ["n", 2, 5, 5])], unknown(["y"], 2), constants)


def _imported(data: bytes | ModelProto) -> bool:
    try:
        import_model(data)
    except OnnxImportError:
        return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_bytes(seed: int):
    rng, data = random.Random(seed), bytearray(_model().SerializeToString())
    for _ in range(rng.choice([1, 2, 5])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    _imported(bytes(data[: rng.randrange(len(data))] if seed % 4 == 0 else data))


@pytest.mark.parametrize("seed", range(60))
def test_fields(seed: int):
    rng, proto = random.Random(seed), _model()
    for _ in range(rng.choice([1, 2, 3])):
        rng.choice([_attribute, _dimension, _operand, _operator, _initializer])(rng, proto)
    _imported(proto)


def _attribute(rng: random.Random, proto: ModelProto) -> None:
    node = rng.choice([node for node in proto.graph.node if node.attribute])
    attribute = rng.choice(list(node.attribute))
    if attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(NUMBERS)
    elif rng.random() < 0.5:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
    else:
        del attribute.ints[0]


def _dimension(rng: random.Random, proto: ModelProto) -> None:
    tensor = proto.graph.input[0].type.tensor_type
    if rng.random() < 0.3:
        tensor.elem_type = rng.randrange(30)
    else:
        rng.choice(list(tensor.shape.dim)).dim_value = rng.choice(NUMBERS)


def _operand(rng: random.Random, proto: ModelProto) -> None:
    node = rng.choice(list(proto.graph.node))
    names = ["", "x", *(name for each in proto.graph.node for name in each.output)]
    node.input[rng.randrange(len(node.input))] = rng.choice(names)


def _operator(rng: random.Random, proto: ModelProto) -> None:
    rng.choice(list(proto.graph.node)).op_type = rng.choice(["Add", "Loop", "Gemm", "Resize", "LSTM", "Nothing"])


def _initializer(rng: random.Random, proto: ModelProto) -> None:
    tensor: Any = rng.choice(list(proto.graph.initializer))
    tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)


def test_lists_that_are_too_long_are_refused():
    node = helper.make_node("Unsqueeze", ["x", "axes"], ["y"])
    axes = helper.make_tensor_value_info("axes", 7, [1 << 30])
    with pytest.raises(OnnxImportError, match="at most 64 dimensions"):
        import_model(model([node], [info("x", X), axes], unknown(["y"], 3)))


def test_functions_without_end_are_refused():
    body = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="own")], [helper.make_opsetid("own", 1)]
    )
    proto = model([helper.make_node("F", ["x"], ["y"], domain="own")], [info("x", X)], unknown(["y"], 3))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(body)
    with pytest.raises(OnnxImportError):
        import_model(proto)


def test_functions_that_double_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graph, "MAX_NODES", 1000)
    opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 21)]
    proto = model([helper.make_node("F30", ["x"], ["y"], domain="own")], [info("x", X)], unknown(["y"], 4))
    proto.opset_import.append(opsets[0])
    for at in range(31):
        name, domain = (f"F{at - 1}", "own") if at else ("Neg", "")
        nodes = [helper.make_node(name, [a], [b], domain=domain) for a, b in (("a", "c"), ("c", "b"))]
        proto.functions.append(helper.make_function("own", f"F{at}", ["a"], ["b"], nodes, opsets))
    with pytest.raises(OnnxImportError, match="more than 1000 nodes"):
        import_model(proto)


def test_an_input_of_unknown_rank():
    proto = _model()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(OnnxImportError, match="the rank of the input x is not known"):
        import_model(proto)
