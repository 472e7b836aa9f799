"""Branches and loops, known while importing and not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from lowering import build
from relax_dialect.frontend.onnx import import_model
from tests.relax_dialect.frontend.onnx.models import (
    FLOAT,
    INT64,
    assert_same,
    info,
    model,
    reference,
    results,
    run,
    unknown,
)
from tests.support.programs import run_in_turn
from vm_dialect import VirtualMachine

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def tensor(name: str, kind: int, dims: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, dims)


def branch(name: str, operator: str) -> Any:
    node = helper.make_node(operator, ["x"], [name])
    return helper.make_graph([node], name, [], [tensor(name, FLOAT, [2, 3])])


def test_a_branch_is_chosen_at_run_time():
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Neg"), else_branch=branch("b", "Exp"))
    flag = np.array(True)
    proto = model([node], [info("c", flag), info("x", X)], unknown(["y"], 2))
    function = VirtualMachine(build(import_model(proto)))["main"]
    assert_same(results(function, np.array(True), X), [-X])
    assert_same(results(function, np.array(False), X), [np.exp(X)])


def test_a_branch_that_is_known_leaves_no_branch():
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Neg"), else_branch=branch("b", "Exp"))
    proto = model([node], [info("x", X)], unknown(["y"], 2), {"c": np.array(False)})
    assert "relax.if" not in str(import_model(proto))
    assert_same(run(proto, X), [np.exp(X)])


def test_branches_of_other_ranks_have_that_of_the_first():
    """As PyTorch exports a squeeze: `if x.shape[1] == 1: squeeze(x, 1)`."""
    squeezed = helper.make_graph([helper.make_node("Squeeze", ["x", "one"], ["a"])], "a", [], unknown(["a"], 1))
    same = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "b", [], unknown(["b"], 2))
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["d"]),
        helper.make_node("Equal", ["d", "one"], ["c"]),
        helper.make_node("If", ["c"], ["r"], then_branch=squeezed, else_branch=same),
        helper.make_node("Exp", ["r"], ["y"]),
    ]
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    proto = model(nodes, [info("x", x, ["n", "m"])], unknown(["y"], 1), {"one": np.int64([1])})
    function = VirtualMachine(build(import_model(proto)))["main"]
    assert_same(results(function, x), [np.exp(x[:, 0])])
    with pytest.raises(TypeError, match="expected rank 1, got 2"):
        function(X)


RANKS = {
    "returned": "y = Neg(r)",
    "reshaped": "flat = Constant<value_ints=[-1]>() y = Reshape(r, flat)",
    "its shape": "y = Shape(r)",
    "a product": "w = Constant<value = float[3,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}>() y = MatMul(r, w)",
    "chosen again": """y = If(c) <
        then_branch = first () => (float[] p) { p = ReduceSum<keepdims=0>(r) },
        else_branch = second () => (float[] q) { q = Identity(r) }>""",
    "beside others": "e = Exp(x) s = ReduceSum<keepdims=0>(e) t = Add(r, s) y = Mul(t, t)",
}
"""What follows a branch whose graphs give tensors of different ranks."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rest", RANKS.values(), ids=RANKS)
def test_what_follows_branches_of_other_ranks(rest: str):
    """It is imported into both, so that all has the rank that the graph which is run gives."""
    kind = "int64[]" if rest == RANKS["its shape"] else "float[]"
    proto = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
        graph (bool c, float[n, 3] x) => ({kind} y) {{
          r = If(c) <
            then_branch = sums () => (float[m] a) {{
              first = Constant<value_ints=[0]>() a = ReduceSum<keepdims=0>(x, first)
            }},
            else_branch = exps () => (float[n, 3] b) {{ b = Exp(x) }}>
          {rest}
        }}""")
    module = import_model(proto)
    for flag in (np.array(True), np.array(False)):
        (expected,) = reference(proto, {"c": flag, "x": X})
        assert_same([np.asarray(run_in_turn(module, "main", [flag, X]))], [expected])


def loop_body(growing: bool) -> Any:
    """Adds the counter to the carried value, or joins it to it, and gives the sum of the value."""
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Identity", ["more"], ["again"]),
        helper.make_node("ReduceSum", ["v"], ["s"], keepdims=0),
    ]
    if growing:
        nodes += [
            helper.make_node("Unsqueeze", ["f", "first"], ["g"]),
            helper.make_node("Concat", ["v", "g"], ["w"], axis=0),
        ]
    else:
        nodes += [helper.make_node("Add", ["v", "f"], ["w"])]
    return helper.make_graph(
        nodes,
        "body",
        [tensor("i", INT64, []), tensor("more", TensorProto.BOOL, []), tensor("v", FLOAT, [None])],
        [tensor("again", TensorProto.BOOL, []), tensor("w", FLOAT, [None]), tensor("s", FLOAT, [])],
    )


def python_loop(count: int, v: Any, growing: bool) -> list[Any]:
    sums = []
    for i in range(count):
        sums.append(v.sum())
        v = np.append(v, np.float32(i)) if growing else v + np.float32(i)
    return [v, np.array(sums, np.float32)]


@pytest.mark.parametrize("growing", [False, True])
def test_loops_run_as_often_as_they_are_told(growing: bool):
    node = helper.make_node("Loop", ["count", "", "v"], ["w", "s"], body=loop_body(growing))
    v, count = np.float32([1, 2]), np.array(3, np.int64)
    proto = model([node], [info("count", count), info("v", v)], unknown(["w", "s"], 1, 1), {"first": np.int64([0])})
    function = VirtualMachine(build(import_model(proto)))["main"]
    for times in (0, 1, 12):
        assert_same(results(function, np.array(times, np.int64), v), python_loop(times, v, growing))


def test_short_loops_are_written_out():
    node = helper.make_node("Loop", ["count", "", "v"], ["w", "s"], body=loop_body(False))
    v = np.float32([1, 2])
    constants = {"count": np.array(3, np.int64), "first": np.int64([0])}
    proto = model([node], [info("v", v)], unknown(["w", "s"], 1, 1), constants)
    assert "relax.while" not in str(import_model(proto))
    assert_same(run(proto, v), python_loop(3, v, False))


@pytest.mark.parametrize("dims", [[2, 3], ["steps", 3]])
def test_scan(dims: list[Any]):
    nodes = [helper.make_node("Add", ["state", "row"], ["next"]), helper.make_node("Identity", ["next"], ["out"])]
    body = helper.make_graph(
        nodes,
        "body",
        [tensor("state", FLOAT, [3]), tensor("row", FLOAT, [3])],
        [tensor("next", FLOAT, [3]), tensor("out", FLOAT, [3])],
    )
    start = np.zeros(3, np.float32)
    node = helper.make_node("Scan", ["start", "x"], ["last", "sums"], body=body, num_scan_inputs=1)
    proto = model([node], [info("start", start), info("x", X, dims)], unknown(["last", "sums"], 1, 2))
    sums = np.cumsum(X, 0, dtype=np.float32)
    assert_same(run(proto, start, X), [sums[-1], sums])


@pytest.mark.parametrize("rows", [3, 1, 0])
def test_a_loop_gathers_states_whose_size_it_carries(rows: int):
    """Nothing says that the state, of another name, has as many rows as what is added to it."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["h", "x"], ["sum"]),
            helper.make_node("Identity", ["more"], ["again"]),
            helper.make_node("Identity", ["sum"], ["item"]),
        ],
        "body",
        [tensor("i", INT64, []), tensor("more", TensorProto.BOOL, []), tensor("h", FLOAT, ["r", 2])],
        [tensor("again", TensorProto.BOOL, []), tensor("sum", FLOAT, ["r", 2]), tensor("item", FLOAT, ["r", 2])],
    )
    node = helper.make_node("Loop", ["trips", "", "start"], ["last", "all"], body=body)
    x = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
    inputs = [tensor("trips", INT64, []), tensor("x", FLOAT, ["n", 2]), tensor("start", FLOAT, ["m", 2])]
    module = import_model(model([node], inputs, unknown(["last", "all"], 2, 3)))
    last, gathered = run_in_turn(module, "main", [np.array(3), x, x])
    np.testing.assert_array_equal(last, 4 * x)
    np.testing.assert_array_equal(gathered, [2 * x, 3 * x, 4 * x])


def test_a_condition_of_one_element_of_any_rank():
    """As a reduction that keeps its dimensions makes it."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["h", "h"], ["twice"]),
            helper.make_node("ReduceMax", ["twice"], ["top"], keepdims=1),
            helper.make_node("Less", ["top", "limit"], ["again"]),
        ],
        "body",
        [tensor("i", INT64, []), tensor("more", TensorProto.BOOL, []), tensor("h", FLOAT, ["n", 3])],
        [tensor("again", TensorProto.BOOL, [1, 1]), tensor("twice", FLOAT, ["n", 3])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    inputs = [tensor("trips", INT64, []), tensor("x", FLOAT, ["n", 3])]
    module = import_model(model([node], inputs, unknown(["y"], 2), {"limit": np.float32([50])}))
    np.testing.assert_array_equal(run_in_turn(module, "main", [np.array(100), X]), 16 * X)
    np.testing.assert_array_equal(run_in_turn(module, "main", [np.array(2), X]), 4 * X)
