"""Random numbers of ONNX: how they are distributed, and what they depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import info, model, run

X = np.full((40, 50), 0.25, np.float32)
WEIGHTS = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
with np.errstate(divide="ignore"):
    LOGARITHMS = np.log(WEIGHTS)


def _model(*nodes: Any, constants: Any = None, **outputs: int) -> Any:
    """A model of `x`; the outputs with their element types."""
    infos = [helper.make_tensor_value_info(name, kind, [None] * 2) for name, kind in outputs.items()]
    return model(nodes, [info("x", X, ["n", 50])], infos, constants)


def test_distributions():
    proto = _model(
        helper.make_node("RandomNormal", [], ["normal"], shape=[500, 4], mean=3.0, scale=2.0, dtype=TensorProto.DOUBLE),
        helper.make_node("RandomUniform", [], ["uniform"], shape=[500, 4], low=-1.0, high=3.0),
        helper.make_node("RandomNormalLike", ["x"], ["like"]),
        helper.make_node("Bernoulli", ["x"], ["truth"], dtype=TensorProto.INT32),
        normal=TensorProto.DOUBLE,
        uniform=TensorProto.FLOAT,
        like=TensorProto.FLOAT,
        truth=TensorProto.INT32,
    )
    normal, uniform, like, truth = run(proto, X)
    assert [each.dtype for each in (normal, uniform, like, truth)] == [np.float64, np.float32, np.float32, np.int32]
    assert (normal.mean(), normal.std()) == pytest.approx((3, 2), abs=0.2)
    assert (uniform.mean(), uniform.std()) == pytest.approx((1, 4 / np.sqrt(12)), abs=0.1)
    assert uniform.min() >= -1
    assert uniform.max() <= 3
    assert like.shape == X.shape
    assert (like.mean(), like.std()) == pytest.approx((0, 1), abs=0.1)
    assert set(truth.ravel()) == {0, 1}
    assert truth.mean() == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_samples(rows: int):
    node = helper.make_node("Multinomial", ["p"], ["y"], sample_size=2000, dtype=TensorProto.INT64)
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [None, 2000])
    (found,) = run(model([node], [info("p", LOGARITHMS, ["n", 3])], [result]), LOGARITHMS[:rows])
    assert (found.shape, found.dtype) == ((rows, 2000), np.int64)
    for row, weights in zip(found, WEIGHTS, strict=False):
        assert [(row == place).mean() for place in range(3)] == pytest.approx(weights, abs=0.05)


def test_dropout_in_training():
    proto = _model(
        helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"]),
        constants={"ratio": np.float32(0.2), "training": np.array(True)},
        y=TensorProto.FLOAT,
        mask=TensorProto.BOOL,
    )
    y, mask = run(proto, X)
    assert np.array_equal(y, np.where(mask, X / np.float32(0.8), 0))
    assert mask.mean() == pytest.approx(0.8, abs=0.04)


def _numbers(**options: Any) -> Any:
    nodes = [helper.make_node("RandomUniformLike", ["x"], [name]) for name in "ab"]
    nodes += [helper.make_node("RandomUniformLike", ["x"], [name], seed=4.0) for name in "cd"]
    proto = _model(*nodes, **dict.fromkeys("abcd", TensorProto.FLOAT))
    return lambda *seed: run(proto, X, *seed, **options)


def test_seeds():
    """Each node has numbers of its own, but those that say the same seed; they stay what they are."""
    first, again = _numbers()(), _numbers()()
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    a, b, c, d = first
    assert not np.isin(a, b).any() or abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.1
    assert np.array_equal(c, d)
    assert not np.array_equal(a, c)


def test_seed_as_a_parameter():
    with_seed = _numbers(seed="key")
    (a, _, c, _), (other, _, same, _) = with_seed(7), with_seed(8)
    assert np.array_equal(with_seed(7)[0], a)
    assert not np.array_equal(a, other)
    assert np.array_equal(c, same)


def test_the_name_of_the_seed_is_taken():
    proto = _model(helper.make_node("RandomNormalLike", ["x"], ["y"]), y=TensorProto.FLOAT)
    with pytest.raises(OnnxImportError, match="has an input x; give the seed another name"):
        import_model(proto, seed="x")


def _loop_body(*nodes: Any, carried: str = "w") -> Any:
    """A body that carries a tensor like `x` and gathers the same."""
    return helper.make_graph(
        [*nodes, helper.make_node("Identity", [carried], ["gathered"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            info("v", X),
        ],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), info(carried, X), info("gathered", X)],
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("times", [3, 12])
@pytest.mark.parametrize("attributes", [{}, {"seed": 3.0}], ids=["model", "own"])
def test_each_turn_of_a_loop_has_its_own_numbers(times: int, attributes: dict[str, float]):
    """Written out and as a loop, and so it is in a loop in a loop."""
    noise = helper.make_node("RandomUniformLike", ["v"], ["w"], **attributes)
    inner = _loop_body(helper.make_node("RandomUniformLike", ["u"], ["w"], **attributes))
    inner.input[2].name = "u"
    outer = _loop_body(helper.make_node("Loop", ["times", "", "v"], ["last", "rows"], body=inner), carried="last")
    outer.node[-1].input[0], outer.output[2].type.tensor_type.shape.dim.add().dim_value = "rows", 50
    outer.output[2].type.tensor_type.shape.dim[0].dim_value = times
    outer.output[2].type.tensor_type.shape.dim[1].dim_value = len(X)
    nodes = [
        helper.make_node("Loop", ["times", "", "x"], ["y", "all"], body=_loop_body(noise)),
        helper.make_node("Loop", ["times", "", "x"], ["z", "nested"], body=outer),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("all", "nested")]
    proto = model(nodes, [info("x", X)], outputs, {"times": np.array(times)})
    single, nested = run(proto, X)
    for numbers in (single.reshape(times, -1), nested.reshape(times * times, -1)):
        assert len(np.unique(numbers[:, 0])) == len(numbers)
        assert np.abs(np.corrcoef(numbers) - np.eye(len(numbers))).max() < 0.15
    again, _ = run(proto, X)
    assert np.array_equal(single, again)


def test_each_step_of_a_scan_has_its_own_numbers():
    body = helper.make_graph(
        [helper.make_node("RandomUniformLike", ["row"], ["w"])], "body", [info("row", X[0])], [info("w", X[0])]
    )
    (y,) = run(_model(helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1), y=TensorProto.FLOAT), X)
    assert len(np.unique(y[:, 0])) == len(X)


def test_dropout_that_is_perhaps_in_training():
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"])
    training = np.array(True)
    outputs = [
        helper.make_tensor_value_info(name, kind, [None] * 2)
        for name, kind in (("y", TensorProto.FLOAT), ("mask", TensorProto.BOOL))
    ]
    proto = model([node], [info("x", X), info("training", training)], outputs, {"ratio": np.float32(0.2)})
    y, mask = run(proto, X, training)
    assert np.array_equal(y, np.where(mask, X / np.float32(0.8), 0))
    assert mask.mean() == pytest.approx(0.8, abs=0.04)
    y, mask = run(proto, X, np.array(False))
    assert np.array_equal(y, X)
    assert mask.all()


def test_numbers_that_are_no_floats():
    proto = _model(helper.make_node("RandomNormalLike", ["x"], ["y"], dtype=TensorProto.INT32), y=TensorProto.INT32)
    with pytest.raises(OnnxImportError, match="random numbers are floating-point, not i32"):
        import_model(proto)
