"""Sequences: lists that are known while importing, and those that loops gather, as the onnx package computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import FLOAT, INT64, assert_same, info, model, reference, results, run
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
NUMBERS = {
    "zero": np.array(0, np.int64),
    "last": np.array(-1, np.int64),
    "three": np.array(3, np.int64),
    "yes": np.array(True),
}


def _value(name: str, kind: int = FLOAT, rank: int = 2) -> Any:
    return helper.make_tensor_value_info(name, kind, [None] * rank)


def _list(name: str) -> Any:
    return helper.make_tensor_sequence_value_info(name, FLOAT, [None])


def test_lists_that_are_known():
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["two"]),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("SequenceInsert", ["two", "n", "zero"], ["more"]),
        helper.make_node("SequenceErase", ["more", "last"], ["fewer"]),
        helper.make_node("SequenceAt", ["fewer", "zero"], ["first"]),
        helper.make_node("SequenceLength", ["fewer"], ["count"]),
        helper.make_node("ConcatFromSequence", ["fewer"], ["joined"], axis=1),
        helper.make_node("ConcatFromSequence", ["fewer"], ["stacked"], axis=-1, new_axis=1),
        helper.make_node("SplitToSequence", ["x", "three"], ["parts"], axis=1),
        helper.make_node("SequenceAt", ["parts", "last"], ["rest"]),
        helper.make_node("SplitToSequence", ["x"], ["rows"], keepdims=0),
        helper.make_node("SequenceAt", ["rows", "last"], ["row"]),
    ]
    outputs = [_value(name) for name in ("first", "joined", "rest")]
    outputs += [_value("count", INT64, 0), _value("stacked", rank=3), _value("row", rank=1)]
    proto = model(nodes, [info("x", X)], outputs, NUMBERS)
    assert_same(run(proto, X), reference(proto, {"x": X}))


def test_outputs_are_tuples():
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("SplitToSequence", ["n", "three"], ["parts"], axis=1),
        helper.make_node("SequenceEmpty", [], ["none"]),
    ]
    proto = model(nodes, [info("x", X)], [_list("parts"), _list("none"), _value("n")], NUMBERS)
    parts, none, n = VirtualMachine(build(import_model(proto)))["main"](X)
    assert_same([to_numpy(part) for part in parts], [-X[:, :3], -X[:, 3:]])
    assert_same([to_numpy(n)], [-X])
    assert len(none) == 0


def test_parts_whose_sizes_are_data():
    sizes = np.array([1, 3], np.int64)
    nodes = [helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=1)]
    proto = model(nodes, [info("x", X), info("sizes", sizes)], [_list("parts")], NUMBERS)
    main = VirtualMachine(build(import_model(proto)))["main"]
    for each in (sizes, sizes[::-1].copy()):
        assert_same([to_numpy(part) for part in main(X, each)], np.split(X, [each[0]], 1))


def test_a_graph_for_each_item():
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])], "body", [_value("a"), _value("b")], [_value("c")]
    )
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["two"]),
        helper.make_node("SequenceMap", ["two", "x"], ["sums"], body=body),
        helper.make_node("ConcatFromSequence", ["sums"], ["joined"], axis=0),
    ]
    proto = model(nodes, [info("x", X)], [_value("joined")], NUMBERS)
    assert_same(run(proto, X), [np.concatenate([2 * X, 2 * X])])


def test_an_optional_value_that_is_not_there():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [3, 4]))
    neg = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "then", [], [_value("y")])
    item = helper.make_node("OptionalGetElement", ["nothing"], ["z"])
    then = helper.make_graph([item], "else", [], [_value("z")])
    nodes = [
        helper.make_node("Optional", [], ["nothing"], type=kind),
        helper.make_node("OptionalHasElement", ["nothing"], ["there"]),
        helper.make_node("If", ["there"], ["found"], then_branch=then, else_branch=neg),
    ]
    assert_same(run(model(nodes, [info("x", X)], [_value("found")], NUMBERS), X), [-X])
    used = [*nodes[:1], helper.make_node("Neg", ["nothing"], ["found"])]
    with pytest.raises(OnnxImportError, match="an optional value that is not there is used"):
        import_model(model(used, [info("x", X)], [_value("found")], NUMBERS))


def _gathering(start: list[Any], name: str) -> Any:
    """Rows gathered in a loop, and then read again, one after the other and all at once."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "trip"], ["row"]),
            helper.make_node("CumSum", ["row", "zero"], ["sums"]),
            helper.make_node("SequenceInsert", ["before", "sums"], ["after"]),
            helper.make_node("Identity", ["more"], ["again"]),
        ],
        "body",
        [_value("trip", INT64, 0), _value("more", TensorProto.BOOL, 0), _list("before")],
        [_value("again", TensorProto.BOOL, 0), _list("after")],
    )
    nodes = [
        *start,
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["trips"]),
        helper.make_node("Loop", ["trips", "yes", name], ["gathered"], body=body),
        helper.make_node("SequenceLength", ["gathered"], ["count"]),
        helper.make_node("SequenceAt", ["gathered", "last"], ["latest"]),
        helper.make_node("ConcatFromSequence", ["gathered"], ["all"], axis=1, new_axis=1),
    ]
    outputs = [_value("count", INT64, 0), _value("latest", rank=1), _value("all")]
    return model(nodes, [info("x", X, ["rows", "columns"])], outputs, NUMBERS)


def test_lists_that_loops_gather():
    proto = _gathering([helper.make_node("SequenceEmpty", [], ["none"])], "none")
    function = VirtualMachine(build(import_model(proto)))["main"]
    for x in (X, X[:1], np.tile(X, (3, 2))):
        assert_same(results(function, x), reference(proto, {"x": x}))


def test_items_have_one_shape_where_their_number_is_data():
    split = [helper.make_node("Gather", ["x", "zero"], ["r"]), helper.make_node("Concat", ["r", "r"], ["long"], axis=0)]
    proto = _gathering([*split, helper.make_node("SequenceConstruct", ["long"], ["one"])], "one")
    with pytest.raises(ValueError, match="equal dimensions"):
        VirtualMachine(build(import_model(proto)))["main"](X)


def test_tensors_are_no_sequences():
    proto = model([helper.make_node("SequenceAt", ["x", "zero"], ["y"])], [info("x", X)], [_value("y")], NUMBERS)
    with pytest.raises(OnnxImportError):
        import_model(proto)


def _branch(name: str, kind: Any, *nodes: Any) -> Any:
    return helper.make_graph(nodes, name, [], [helper.make_value_info(name, helper.make_optional_type_proto(kind))])


def _perhaps(kind: Any, value: str, *users: Any) -> list[Any]:
    """An optional that is there if `c` holds, whether it is, and what is made of it."""
    then = _branch("a", kind, helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Optional", [value], ["a"]))
    otherwise = _branch("b", kind, helper.make_node("Optional", [], ["b"], type=kind))
    return [
        helper.make_node("SequenceConstruct", ["x", "x"], ["two"]),
        helper.make_node("If", ["c"], ["perhaps"], then_branch=then, else_branch=otherwise),
        helper.make_node("OptionalHasElement", ["perhaps"], ["there"]),
        *users,
    ]


TENSOR = helper.make_tensor_type_proto(FLOAT, [None, 4])
CONDITION = helper.make_tensor_value_info("c", TensorProto.BOOL, [])


def test_optionals_that_one_branch_gives():
    """Used in a branch of their own, where they are there; and an error where they are not."""
    some = helper.make_graph(
        [helper.make_node("OptionalGetElement", ["perhaps"], ["some"])], "some", [], [_value("some")]
    )
    none = helper.make_graph([helper.make_node("Identity", ["x"], ["none"])], "none", [], [_value("none")])
    pick = helper.make_node("If", ["there"], ["y"], then_branch=some, else_branch=none)
    outputs = [helper.make_tensor_value_info("there", TensorProto.BOOL, []), _value("y")]
    proto = model(_perhaps(TENSOR, "n", pick), [info("x", X, ["n", 4]), CONDITION], outputs)
    for condition in (True, False):
        there, y = run(proto, X, np.array(condition))
        assert bool(there) is condition
        np.testing.assert_array_equal(y, -X if condition else X)
    take = helper.make_node("OptionalGetElement", ["perhaps"], ["y"])
    proto = model(_perhaps(TENSOR, "n", take), [info("x", X, ["n", 4]), CONDITION], outputs)
    function = VirtualMachine(build(import_model(proto)))["main"]
    np.testing.assert_array_equal(results(function, X, np.array(True))[1], -X)
    with pytest.raises(ValueError, match="expected a value, got an optional without one"):
        function(X, np.array(False))


@pytest.mark.parametrize(
    ("kind", "value", "user", "reason"),
    [
        (TENSOR, "n", "Neg", "is used otherwise than by OptionalHasElement and OptionalGetElement"),
        (helper.make_tensor_type_proto(FLOAT, None), "n", "OptionalGetElement", "one branch leaves out is not known"),
        (helper.make_sequence_type_proto(TENSOR), "two", "OptionalGetElement", "one branch leaves out is not known"),
    ],
)
def test_optionals_that_cannot_be(kind: Any, value: str, user: str, reason: str):
    nodes = _perhaps(kind, value, helper.make_node(user, ["perhaps"], ["y"]))
    with pytest.raises(OnnxImportError, match=reason):
        import_model(model(nodes, [info("x", X), CONDITION], [_value("y")]))
