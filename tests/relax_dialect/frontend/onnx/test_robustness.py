"""Models that somebody damaged: an error or a program, never anything else."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model, node
from tests.relax_dialect.frontend.onnx.models import info, model, run, unknown

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
    monkeypatch.setattr(node, "MAX_NODES", 1000)
    opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 21)]
    proto = model([helper.make_node("F30", ["x"], ["y"], domain="own")], [info("x", X)], unknown(["y"], 4))
    proto.opset_import.append(opsets[0])
    for at in range(31):
        name, domain = (f"F{at - 1}", "own") if at else ("Neg", "")
        nodes = [helper.make_node(name, [a], [b], domain=domain) for a, b in (("a", "c"), ("c", "b"))]
        proto.functions.append(helper.make_function("own", f"F{at}", ["a"], ["b"], nodes, opsets))
    with pytest.raises(OnnxImportError, match="more than 1000 nodes"):
        import_model(proto)


def _refused(node: NodeProto, constants: dict[str, Any], dims: list[int | str] | None = None) -> str:
    """Why a model of one node is refused, whose first operand is `X` where no other shape is said."""
    proto = model([node], [info("x", X, dims)], [_any(each) for each in node.output])
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items())
    with pytest.raises(OnnxImportError) as caught:
        import_model(proto)
    assert [each.name for each in caught.value.nodes] == [node.name]
    return caught.value.nodes[0].reason


def test_what_a_node_says_twice_has_to_agree():
    w, r = np.ones((1, 16, 3), np.float32), np.ones((1, 16, 4), np.float32)
    conv = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[5])
    assert "kernel_shape says [5]" in _refused(conv, {"w": np.ones((4, 2, 3, 3), np.float32)})
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=7)
    assert "hidden_size says 7" in _refused(lstm, {"w": w, "r": r}, [5, 1, 3])
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=4, direction="sideways")
    assert "'sideways' is none of forward" in _refused(lstm, {"w": w, "r": r}, [5, 1, 3])


def test_parts_have_to_make_up_the_whole():
    split = helper.make_node("Split", ["x", "sizes"], ["y", "z"], name="split", axis=3)
    assert "5 is cut into parts of 3, 9" in _refused(split, {"sizes": np.int64([3, 9])})
    assert "5 is cut into parts of 9, -4" in _refused(split, {"sizes": np.int64([9, -4])})
    outputs = [helper.make_tensor_value_info(each, 1, None) for each in ("y", "z")]
    proto = model([split], [info("x", X, [1, 2, 5, "n"])], outputs, {"sizes": np.int64([2, 3])})
    assert [each.shape for each in run(proto, X)] == [(1, 2, 5, 2), (1, 2, 5, 3)]
    with pytest.raises(ValueError, match="got 2"):
        run(proto, X[..., :4].copy())


def test_places_that_are_known_lie_within_the_dimension():
    gather = helper.make_node("Gather", ["x", "places"], ["y"], name="gather", axis=3)
    assert _refused(gather, {"places": np.int64([4, 77])}) == "the index 77 is not within a dimension of 5"
    assert _refused(gather, {"places": np.int64([-6])}) == "the index -6 is not within a dimension of 5"


def test_results_that_no_memory_holds_are_refused():
    resize = helper.make_node("Resize", ["x", "", "scales"], ["y"], name="resize")
    assert "the result would have the type" in _refused(resize, {"scales": np.float32([1, 1, 1e30, 1e30])})


def test_nodes_in_functions_are_named_with_what_calls_them():
    node = helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], name="norm", num_groups=0)
    ones = numpy_helper.from_array(np.ones(2, np.float32), "s")
    proto = model([node], [info("x", X)], unknown(["y"], 4))
    proto.graph.initializer.append(ones)
    with pytest.raises(OnnxImportError) as caught:
        import_model(proto)
    assert [each.name.split("/")[0] for each in caught.value.nodes] == ["norm"]


def test_operators_nobody_knows_are_reported_with_all_others():
    """Also those that the onnx package does not know, in functions, and in inner graphs."""
    inner = helper.make_graph([helper.make_node("Inner", [], ["i"], name="c")], "g", [], [_any("i")])
    body = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("Bar", ["a"], ["b"], name="b")], [helper.make_opsetid("", 21)]
    )
    nodes = [
        helper.make_node("Foo", ["x"], ["f"], name="a"),
        *(helper.make_node("F", [name], [made], domain="own") for name, made in (("f", "g"), ("g", "h"))),
        helper.make_node("If", ["h"], ["y"], name="if", then_branch=inner, else_branch=inner),
    ]
    proto = model(nodes, [info("x", X)], [_any("y")])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(body)
    with pytest.raises(OnnxImportError) as caught:
        import_model(proto)
    assert [each.name for each in caught.value.nodes] == ["a", "b", "c", "c"]


def _any(name: str) -> Any:
    return helper.make_tensor_value_info(name, 1, None)


FOUR = numpy_helper.from_array(np.zeros(4, np.float32))
NOT_ALLOWED = {
    "shape to have rank 1, got rank 2": helper.make_node("Reshape", ["x", "matrix"], ["y"], name="bad"),
    "shape to have rank 1, got rank 0": helper.make_node("Expand", ["x", "zero"], ["y"], name="bad"),
    "value of one element, got 4": helper.make_node("ConstantOfShape", ["list"], ["y"], name="bad", value=FOUR),
    "the step is 0": helper.make_node("Range", ["zero", "one", "zero"], ["y"], name="bad"),
}


@pytest.mark.parametrize("reason", NOT_ALLOWED)
def test_what_the_standard_does_not_allow_is_refused(reason: str):
    constants = {"matrix": [[2, 2]], "list": [2, 2], "zero": 0, "one": 1}
    given = {name: np.array(value, np.int64) for name, value in constants.items()}
    with pytest.raises(OnnxImportError, match=rf"\(bad\): .*{reason}"):
        import_model(model([NOT_ALLOWED[reason]], [info("x", np.ones((2, 2), np.float32))], unknown(["y"], 2), given))
