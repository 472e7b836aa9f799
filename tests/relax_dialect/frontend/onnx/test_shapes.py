"""Shapes of inputs: given by whoever imports a model, and ranks that follow from what its nodes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, assert_same, info, model, reference, results, run, unknown
from tests.support.programs import run_in_turn
from vm_dialect import VirtualMachine

KERNEL = {"w": np.ones((2, 3, 1, 1), np.float32)}


def unranked(nodes: list[NodeProto], constants: dict[str, Array] | None = None, inputs: tuple[str, ...] = ("x",)):
    """A model of whose inputs and output `y` no rank is said."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*inputs, "y")]
    return model(nodes, infos[:-1], infos[-1:], constants)


def node(kind: str, *operands: str, to: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(kind, operands, [to], name=f"{kind}_of_{operands[0]}", **attributes)


SUM = unranked([node("Add", "x", "x")])


def test_a_rank_that_nothing_says():
    with pytest.raises(OnnxImportError, match=r"rank of the input x is not known.*shapes={'x': \['n', 4\]}.*--shape"):
        import_model(SUM)
    with pytest.raises(OnnxImportError, match="the inputs x, z are not known"):
        import_model(unranked([node("Add", "x", "z")], inputs=("x", "z")))


@pytest.mark.parametrize("shapes", [{"x": [None, None]}, {"x": ["n", 4]}, {"x": [3, 4]}, [[None, 4]], [("n", "m")]])
def test_a_shape_that_is_given(shapes: object):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (y,) = run(SUM, x, shapes=shapes)
    assert np.array_equal(y, 2 * x)


def test_what_is_given_says_more_than_the_model():
    """Numbers and names replace what the model says of a dimension; one name is one symbol, also of another input."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in ("x", "z", "y")]
    proto = model([node("Add", "x", "z")], infos[:2], infos[2:])
    assert "(%x: !relax.tensor<[batch, 4], f32>, %z: !relax.tensor<[8, 4], f32>)" in str(
        import_model(proto, shapes={"z": [8, None]})
    )
    assert "%x: !relax.tensor<[batch, n], f32>, %z: !relax.tensor<[batch, n], f32>" in str(
        import_model(proto, shapes={"z": ["batch", "n"], "x": [None, "n"]})
    )


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": [3]}, "a shape is given for z, but the inputs are x"),
        ({"x": [-3]}, "dimension 0 of the input x is -3"),
        ({"x": [2.5]}, "'float' object cannot be interpreted as an integer"),
        ({"x": 3}, "the model cannot be imported"),
    ],
)
def test_a_shape_that_cannot_be(shapes: object, message: str):
    with pytest.raises(OnnxImportError, match=message):
        import_model(SUM, shapes=shapes)  # pyright: ignore[reportArgumentType]


def test_a_rank_that_the_model_contradicts():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])
    with pytest.raises(OnnxImportError, match="the input x has rank 2, but a shape of rank 1 is given"):
        import_model(model([node("Relu", "x")], [info], [info]), shapes=[[None]])


RANKS: dict[str, tuple[Callable[[], object], int]] = {
    "a kernel": (lambda: unranked([node("Conv", "x", "w")], KERNEL), 4),
    "behind others": (
        lambda: unranked([node("Relu", "x", to="r"), node("Neg", "r", to="c"), node("Conv", "c", "w")], KERNEL),
        4,
    ),
    "a window": (lambda: unranked([node("MaxPool", "x", kernel_shape=[2])]), 3),
    "an order": (lambda: unranked([node("Transpose", "x", perm=[2, 0, 1])]), 3),
    "a matrix": (lambda: unranked([node("Gemm", "x", "m")], {"m": np.ones((4, 2), np.float32)}), 2),
    "a result of it": (
        lambda: unranked(
            [node("Sigmoid", "x", to="s"), node("Transpose", "s", to="t", perm=[1, 0]), node("Relu", "t")]
        ),
        2,
    ),
}


@pytest.mark.parametrize("name", RANKS)
def test_a_rank_that_a_node_asks_for(name: str):
    made, rank = RANKS[name]
    dims = ", ".join(f"x_{axis}" for axis in range(rank))
    assert f": !relax.tensor<[{dims}], f32>)" in str(import_model(made()))


def test_a_model_of_unknown_rank_runs():
    proto = unranked([node("Relu", "x", to="r"), node("Conv", "r", "w")], KERNEL)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 3, 2, 4)
    (y,) = run(proto, x)
    np.testing.assert_allclose(y, np.maximum(x, 0).sum(1, keepdims=True).repeat(2, 1), 1e-6)


@pytest.mark.parametrize(
    ("dims", "said", "at"),
    [
        (["n", 1], ["n"], {1: (1,), 3: (3,)}),
        ([1, "n", 1], ["n"], {1: (1,), 2: (2,)}),
        (["n", 1], [], {1: ()}),
        (["n", "m", 4], [4], {1: (4,)}),
        (["n", "m", 1], ["n", "m"], {1: (1, 1), 2: (2, 2)}),
        (["n", 1], None, {2: (2,)}),
    ],
)
def test_squeeze_without_axes_has_the_rank_that_the_model_says(dims: Any, said: Any, at: dict[int, tuple[int, ...]]):
    node = helper.make_node("Squeeze", ["x"], ["y"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    module = import_model(model([node], inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, said)]))
    for mode in ("bytecode", "native"):
        main = VirtualMachine(build(module, mode=mode))["main"]
        for size, shape in at.items():
            x = np.ones([size if isinstance(dim, str) else dim for dim in dims], np.float32)
            assert results(main, x)[0].shape == shape
        if said is None or said == []:
            with pytest.raises(ValueError, match="dimension 0: expected"):
                main(np.ones((1 if said is None else 3, 1), np.float32))


def test_what_is_asked_of_a_squeezed_tensor_and_a_state_tell_sizes():
    """A slice of the result says its rank, and the state of a layer the batch."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(1, 12, 3)).astype(np.float32),
        "r": rng.normal(size=(1, 12, 4)).astype(np.float32),
        "first": np.array([2]),
        "last": np.array([4]),
        "axis": np.array([0]),
    }
    nodes = [
        helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["", "states"], hidden_size=4),
        helper.make_node("Squeeze", ["states"], ["flat"]),
        helper.make_node("Slice", ["flat", "first", "last", "axis"], ["y"]),
    ]
    h = np.zeros((1, 1, 4), np.float32)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["frames", "batch", 3]), info("h", h)]
    proto = model(nodes, inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k"])], constants)
    x = rng.normal(size=(5, 1, 3)).astype(np.float32)
    assert_same(run(proto, x, h), reference(proto, {"x": x, "h": h}))
    with pytest.raises(ValueError, match="dimension 1: expected 1, got 2"):
        run(proto, np.ones((5, 2, 3), np.float32), h)


@pytest.mark.parametrize("far", [2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("opset", [9, 13])
def test_a_slice_to_the_greatest_integer_goes_to_the_end(far: int, opset: int):
    """The standard recommends it where a size is not known; the result has the size of the operand."""
    places = {"starts": [0, 0], "ends": [far, far]}
    nodes = [
        helper.make_node("Slice", ["x"], ["part"], **places)
        if opset == 9
        else helper.make_node("Slice", ["x", "starts", "ends"], ["part"]),
        helper.make_node("Add", ["x", "part"], ["y"]),
        helper.make_node("Slice", ["x", "far", "least", "axis", "back"], ["z"])
        if opset > 9
        else helper.make_node("Neg", ["x"], ["z"]),
    ]
    constants = {name: np.array(each, np.int64) for name, each in places.items()}
    constants |= {"far": np.int64([far]), "least": np.int64([-far - 1]), "axis": np.int64([1]), "back": np.int64([-1])}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto = model(nodes, [info("x", x, ["n", "m"])], unknown(["y", "z"], 2, 2), constants, opset)
    module = import_model(proto)
    assert "!relax.tuple<!relax.tensor<[n, m], f32>" in str(module)
    y, z = run_in_turn(module, "main", [x])
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(z, x[:, ::-1] if opset > 9 else -x)


@pytest.mark.parametrize("axis", [0, -1])
def test_a_scalar_is_reduced_along_no_axis(axis: int):
    """As PyTorch's exporter writes `x.max(dim=0)` of a scalar."""
    kinds = ["L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
    nodes = [
        helper.make_node(f"Reduce{kind}", ["x", "axes"], [f"{kind}{keep}"], keepdims=keep)
        for kind in kinds
        for keep in (0, 1)
    ]
    outputs = unknown([f"{kind}{keep}" for kind in kinds for keep in (0, 1)], *[0] * 18)
    proto = model(nodes, [info("x", np.float32(0))], outputs, {"axes": np.int64([axis])})
    found = run_in_turn(import_model(proto), "main", [np.float32(-1.5).reshape(())])
    expected = [np.abs, np.abs, *[np.positive] * 6, np.square]
    for kind, made, value in zip(kinds, found[::2], expected, strict=True):
        np.testing.assert_allclose(made, value(np.float32(-1.5)), rtol=1e-6, err_msg=kind)
    assert all(each.shape == () for each in found)
