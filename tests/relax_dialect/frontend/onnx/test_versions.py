"""Old versions of operators: what is an input today was an attribute, and defaults and rules were others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import assert_same, info, model, unknown
from tests.support.programs import run_in_turn

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((1, 2, 2, 3)).astype(np.float32)

Case = tuple[str, list[Array], dict[str, Any], list[Array]]
"""An operator, its operands (constants behind the first), attributes and results."""

OF_VERSION_1: list[Case] = [
    ("Abs", [X], {"consumed_inputs": [0]}, [np.abs(X)]),
    ("Cast", [X], {"to": "INT32"}, [X.astype(np.int32)]),
    ("Clip", [X], {"min": -0.5, "max": 0.5}, [np.clip(X, -0.5, 0.5)]),
    ("Concat", [X, X], {}, [np.concatenate([X, X], 1)]),
    ("Concat", [X, X], {"axis": 0}, [np.concatenate([X, X], 0)]),
    ("Max", [X, X.T.reshape(X.shape)], {"consumed_inputs": [0, 0]}, [np.maximum(X, X.T.reshape(X.shape))]),
    ("Pad", [X[0]], {"paddings": [1, 0, 0, 2], "value": 1.5}, [np.pad(X[0], [(1, 0), (0, 2)], constant_values=1.5)]),
    ("Reshape", [X], {"shape": [0, -1]}, [X.reshape(2, 12)]),
    ("Split", [X, np.float32([1, 3])], {"axis": 2}, [X[..., :1], X[..., 1:]]),
    ("Split", [X], {"axis": 2, "split": [3, 1]}, [X[..., :3], X[..., 3:]]),
    ("Tile", [X, np.float32([3]), np.float32([1])], {}, [np.tile(X, (1, 3, 1))]),
    ("Upsample", [IMAGE], {"height_scale": 2.0, "width_scale": 3.0}, [IMAGE.repeat(2, 2).repeat(3, 3)]),
    ("Dropout", [X], {"is_test": 1, "consumed_inputs": [0]}, [X]),
]

OF_VERSION_8: list[Case] = [
    (
        "BatchNormalization",
        [X, *(RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(3)), np.full((3, 4), 2, np.float32)],
        {"spatial": 0},
        [],
    ),
    ("Upsample", [IMAGE], {"scales": [1.0, 1.0, 2.0, 1.0]}, [IMAGE.repeat(2, 2)]),
]
OF_VERSION_8[0][3].append(
    (X - OF_VERSION_8[0][1][3]) / np.sqrt(np.float32(2 + 1e-5)) * OF_VERSION_8[0][1][1] + OF_VERSION_8[0][1][2]
)


def _checked(cases: Sequence[Case], opset: int) -> None:
    """All cases as one model, in every mode."""
    nodes: list[Any] = []
    constants: dict[str, Array] = {}
    inputs: list[Any] = []
    outputs: list[Any] = []
    for at, (kind, operands, attributes, results) in enumerate(cases):
        names = [f"x{at}", *(f"c{at}_{index}" for index in range(1, len(operands)))]
        constants |= dict(zip(names[1:], operands[1:], strict=True))
        inputs.append(info(names[0], operands[0]))
        made = [f"y{at}_{index}" for index in range(len(results))]
        outputs += unknown(made, *(each.ndim for each in results))
        nodes.append(helper.make_node(kind, names, made, **attributes))
    module = import_model(model(nodes, inputs, outputs, constants, opset))
    found: Any = run_in_turn(module, "main", [operands[0] for _, operands, _, _ in cases])
    assert_same(found, [each for *_, results in cases for each in results])


def test_operators_of_version_1():
    _checked(OF_VERSION_1, 1)


def test_operators_of_version_8():
    _checked(OF_VERSION_8, 8)


OF_VERSION_11: list[Case] = [
    (
        "Resize",
        [IMAGE, np.float32([]), np.float32([1, 1, 3, 1])],
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "ceil"},
        [IMAGE[:, :, [1, 1, 1, 1, 1, 1]]],
    ),
    (
        "Resize",
        [IMAGE, np.float32([]), np.float32([1, 1, 1, 2])],
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"},
        [IMAGE[..., [0, 0, 1, 1, 2, 2]]],
    ),
]


def test_operators_of_version_11():
    _checked(OF_VERSION_11, 11)


def test_an_axis_that_stays_at_run_time():
    how = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "ceil"}
    node = helper.make_node("Resize", ["x", "none", "none", "sizes"], ["y"], **how)
    sizes = np.array([1, 2, 6, 3])
    inputs = [info("x", IMAGE), info("sizes", sizes)]
    module = import_model(model([node], inputs, unknown(["y"], 4), {"none": np.float32([])}, 11))
    found: Any = run_in_turn(module, "main", [IMAGE, sizes])
    assert_same([found], [IMAGE[:, :, [1] * 6]])


def test_an_element_type_that_does_not_exist_is_refused():
    node = helper.make_node("Cast", ["x"], ["y"], to="INT33")
    with pytest.raises(OnnxImportError, match="INT33"):
        import_model(model([node], [info("x", X)], unknown(["y"], 3), opset=1))


def _scan(lengths: bool, **attributes: Any) -> Any:
    """A sum over a sequence that starts at a state; gives each sum twice as large, too. The batch is symbolic."""
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names]
        for names in (("state", "element"), ("sum", "twice"))
    ]
    steps = [
        helper.make_node("Add", ["state", "element"], ["sum"]),
        helper.make_node("Add", ["sum", "sum"], ["twice"]),
    ]
    body = helper.make_graph(steps, "body", *ports)
    names = ["lengths" if lengths else "", "begin", "x"]
    node = helper.make_node("Scan", names, ["end", "sums"], body=body, num_scan_inputs=1, **attributes)
    inputs = [
        *([helper.make_tensor_value_info("lengths", TensorProto.INT64, ["n"])] if lengths else []),
        helper.make_tensor_value_info("begin", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "t", 2]),
    ]
    return import_model(model([node], inputs, unknown(["end", "sums"], 2, 3), opset=8))


@pytest.mark.parametrize("direction", [0, 1])
def test_a_batch_of_sequences_of_different_lengths(direction: int):
    begin = RNG.standard_normal((3, 2)).astype(np.float32)
    x = RNG.standard_normal((3, 4, 2)).astype(np.float32)
    lengths = np.array([4, 0, 2])
    sums, end = np.zeros_like(x), begin.copy()
    for item, length in enumerate(lengths):
        for at in range(length):
            end[item] += x[item, length - 1 - at if direction else at]
            sums[item, at] = 2 * end[item]
    found: Any = run_in_turn(_scan(True, directions=[direction]), "main", [lengths, begin, x])
    assert_same(found, [end, sums])
    full: Any = run_in_turn(_scan(False, directions=[direction]), "main", [begin, x])
    ordered = x[:, ::-1] if direction else x
    assert_same(full, [begin + x.sum(1), 2 * (begin[:, None] + np.cumsum(ordered, 1))])


def test_a_scan_of_no_iterations():
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "element"], ["sum"]), helper.make_node("Identity", ["sum"], ["again"])],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("state", "element")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("sum", "again")],
    )
    node = helper.make_node("Scan", ["begin", "x"], ["end", "sums"], body=body, num_scan_inputs=1)
    begin, x = np.float32([1, 2]), np.zeros((0, 2), np.float32)
    module = import_model(model([node], [info("begin", begin), info("x", x)], unknown(["end", "sums"], 1, 2), opset=11))
    found: Any = run_in_turn(module, "main", [begin, x])
    assert_same(found, [begin, x])


def test_counts_whose_number_the_operator_says():
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=2),
        helper.make_node("Tile", ["x", "repeats"], ["tiled"]),
        helper.make_node("Split", ["x", "lengths"], ["first", "second"], axis=1),
    ]
    lists = {"k": np.array([2]), "repeats": np.array([1, 2, 1]), "lengths": np.array([1, 2])}
    inputs = [info("x", X), *(info(name, each, [f"{name}_length"]) for name, each in lists.items())]
    names = ["values", "places", "tiled", "first", "second"]
    module = import_model(model(nodes, inputs, unknown(names, *[3] * 5), opset=13))
    found: Any = run_in_turn(module, "main", [X, *lists.values()])
    places = np.argsort(-X, -1)[..., :2]
    values = np.take_along_axis(X, places, -1)
    assert_same(found, [values, places, np.tile(X, (1, 2, 1)), X[:, :1], X[:, 1:]])
    with pytest.raises(ValueError, match="3"):
        run_in_turn(module, "main", [X, np.array([2]), np.array([1, 2]), np.array([1, 2])])
