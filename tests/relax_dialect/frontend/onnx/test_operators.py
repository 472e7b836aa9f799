"""Operators against the onnx package: operands known while importing, and at run time; constant and symbolic shapes.

The package's own backend tests go further, see `tests/onnx_backend`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.interpreter import run as interpret
from tests.relax_dialect.frontend.onnx.models import assert_same, info, model, reference, results, run, unknown
from tests.support.sweeps import in_turn
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
COLUMN = np.ascontiguousarray(X[:, :1])
IMAGE = RNG.standard_normal((1, 4, 6, 5)).astype(np.float32)
ROWS = RNG.standard_normal((5, 4)).astype(np.float32)


def i(*elements: Any) -> Any:
    return np.array(elements, np.int64)


def f(*elements: float) -> Any:
    return np.array(elements, np.float32)


CASES: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {
    "reshape": ("Reshape", [X, i(0, -1)], {}, 1),
    "reshape rank": ("Reshape", [X, i(4, 3, 2)], {}, 1),
    "expand": ("Expand", [COLUMN, i(2, 3, 4)], {}, 1),
    "expand smaller": ("Expand", [X, i(3, 1)], {}, 1),
    "squeeze": ("Squeeze", [COLUMN, i(1)], {}, 1),
    "unsqueeze": ("Unsqueeze", [X, i(0, -1)], {}, 1),
    "slice": ("Slice", [X, i(-1, 0), i(-9, 2), i(2, 1), i(-2, 1)], {}, 1),
    "tile": ("Tile", [X, i(1, 2, 3)], {}, 1),
    "split": ("Split", [X, i(1, 2)], {"axis": 1}, 2),
    "reduce sum": ("ReduceSum", [X, i(1)], {"keepdims": 1}, 1),
    "reduce mean": ("ReduceMean", [X, i(0, -1)], {"keepdims": 0}, 1),
    "reduce max": ("ReduceMax", [X, i(2)], {"keepdims": 0}, 1),
    "reduce l2": ("ReduceL2", [X, i(1)], {"keepdims": 0}, 1),
    "pad": ("Pad", [X, i(1, 0, 2, 0, 1, 0), f(0.5).reshape(())], {}, 1),
    "pad reflect": ("Pad", [X, i(0, 1, 2, 0, 1, 2)], {"mode": "reflect"}, 1),
    "pad edge": ("Pad", [X, i(1, 1), None, i(1)], {"mode": "edge"}, 1),
    "gemm with a matrix of NaN that counts 0 times": ("Gemm", [ROWS, X[0].T.copy(), f(np.nan)], {"beta": 0.0}, 1),
    "topk": ("TopK", [X, i(2)], {"axis": 1}, 2),
    "cumsum": ("CumSum", [X, np.array(1, np.int64)], {"reverse": 1, "exclusive": 1}, 1),
    "mean and variance, of one element": (
        "MeanVarianceNormalization",
        [np.full((1, 7), 0.3, np.float32)],
        {"axes": [0]},
        1,
    ),
    "one hot": ("OneHot", [i(0, -1, 2), np.array(3, np.int64), f(0, 1)], {"axis": 0}, 1),
    "range": ("Range", [np.array(2.0, np.float32), np.array(9.0, np.float32), np.array(3.0, np.float32)], {}, 1),
    "range that f32 would end early": (
        "Range",
        [np.array(each, np.float32) for each in (1, -3.2, -0.7)],
        {},
        1,
    ),
    "constant of shape": ("ConstantOfShape", [i(2, 3)], {}, 1),
    "trilu": ("Trilu", [X, np.array(1, np.int64)], {"upper": 0}, 1),
    "resize scales": ("Resize", [IMAGE, None, f(1, 1, 0.6, 1.7)], {"mode": "linear"}, 1),
    "resize sizes": ("Resize", [IMAGE, None, None, i(1, 4, 3, 9)], {"mode": "cubic"}, 1),
    "resize nearest": ("Resize", [IMAGE, None, f(1, 1, 2, 2)], {"mode": "nearest"}, 1),
}
"""Operator, operands of which all but the first are structure, attributes, number of outputs."""


def _model(name: str, constant: bool) -> tuple[Any, list[Any]]:
    operator, operands, attributes, count = CASES[name]
    names = ["" if each is None else f"x{at}" for at, each in enumerate(operands)]
    outputs = [f"y{at}" for at in range(count)]
    node = helper.make_node(operator, names, outputs, **attributes)
    first = 0 if operator in ("Range", "ConstantOfShape") else 1
    given = {each: array for each, array in zip(names, operands, strict=True) if each}
    known = {each: array for each, array in given.items() if names.index(each) >= first} if constant else {}
    inputs = {each: array for each, array in given.items() if each not in known}
    described = [info(each, array) for each, array in inputs.items()]
    ranks = [each.ndim for each in reference(model([node], described, unknown(outputs, *[0] * count), known), inputs)]
    return model([node], described, unknown(outputs, *ranks), known), list(inputs.values())


WAYS = ["constant static", "constant dynamic", "run-time dynamic", "run-time static"]
"""What is known: the structure, the sizes."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "way"), in_turn(CASES, WAYS, every=2))
def test_structure(name: str, way: str):
    dynamic = way.endswith("dynamic")
    proto, arrays = _model(name, way.startswith("constant"))
    names = [each.name for each in proto.graph.input]
    expected = reference(proto, dict(zip(names, arrays, strict=True)))
    assert_same(run(proto, *arrays, dynamic=dynamic), expected)


@pytest.mark.parametrize("constant", [True, False])
def test_negative_padding_takes_away(constant: bool):
    pads = i(0, 0, -1, 0, 1, -1)
    node = helper.make_node("Pad", ["x", "pads"], ["y"])
    inputs, constants = [info("x", X)], {"pads": pads}
    proto = model([node], inputs, unknown(["y"], 3), constants) if constant else None
    if proto is None:
        proto = model([node], [*inputs, info("pads", pads)], unknown(["y"], 3))
    assert_same(run(proto, *([X] if constant else [X, pads])), [np.pad(X[:, :, 1:3], [(0, 0), (0, 1), (0, 0)])])


NOTHING = {"LogSum": -np.inf, "LogSumExp": -np.inf, "Max": -np.inf, "Min": np.inf, "Prod": 1.0, "Sum": 0.0, "L2": 0.0}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constant", [True, False])
def test_reductions_of_nothing(constant: bool):
    nodes = [helper.make_node(f"Reduce{kind}", ["x", "axes"], [kind], keepdims=0) for kind in NOTHING]
    inputs = [info("x", X, ["n", "k", 4])] + ([] if constant else [info("axes", i(1))])
    proto = model(nodes, inputs, unknown(list(NOTHING), *[2] * len(NOTHING)), {"axes": i(1)} if constant else {})
    function = VirtualMachine(build(import_model(proto)))["main"]
    axes = () if constant else (i(1),)
    assert_same(
        results(function, X[:, :0].copy(), *axes), [np.full((2, 4), each, np.float32) for each in NOTHING.values()]
    )
    assert_same(results(function, X, *axes)[2:4], [X.max(1), X.min(1)])


@pytest.mark.parametrize(("dtype", "least"), [(np.int8, -128), (np.uint8, 0), (np.bool_, False), (np.float16, -np.inf)])
def test_the_greatest_of_nothing(dtype: Any, least: Any):
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    proto = model(
        [node], [info("x", np.zeros(0, dtype), ["n"])], [helper.make_tensor_value_info("y", kind, [])], opset=20
    )
    assert_same(run(proto, np.zeros(0, dtype)), [np.array(least, dtype)])


def test_axes_that_are_data_are_read_at_run_time():
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    proto = model([node], [info("x", X), info("axes", i(1))], unknown(["y"], 2))
    function = VirtualMachine(build(import_model(proto)))["main"]
    for axis in (0, 1, 2, -1):
        assert_same(results(function, X, i(axis)), [X.sum(axis)])


def test_a_shape_that_does_not_fit_is_an_error_at_run_time():
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    proto = model([node], [info("x", X), info("shape", i(2, 12))], [info("y", X.reshape(2, 12))])
    function = VirtualMachine(build(import_model(proto)))["main"]
    assert_same(results(function, X, i(2, 12)), [X.reshape(2, 12)])
    with pytest.raises(ValueError, match="expected 2"):
        function(X, i(4, 6))


def test_shapes_that_are_computed_are_symbolic():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["list"]),
        helper.make_node("Concat", ["list", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {"zero": np.array(0, np.int64), "axis": i(0), "rest": i(2, -1)}
    proto = model(nodes, [info("x", ROWS, ["batch", 4])], unknown(["y"], 3), constants)
    module = import_model(proto)
    assert "-> !relax.tensor<[batch, 2, 2], f32>" in str(module)
    assert_same(results(VirtualMachine(build(module))["main"], ROWS), [ROWS.reshape(5, 2, 2)])


def test_softmax_of_old_versions_flattens():
    old = model([helper.make_node("Softmax", ["x"], ["y"])], [info("x", X)], unknown(["y"], 3), opset=11)
    new = model([helper.make_node("Softmax", ["x"], ["y"])], [info("x", X)], unknown(["y"], 3), opset=13)
    flat = np.exp(X.reshape(2, 12))
    assert_same(run(old, X), [(flat / flat.sum(1, keepdims=True)).reshape(X.shape)])
    assert_same(run(new, X), [np.exp(X) / np.exp(X).sum(-1, keepdims=True)])


def test_attributes_have_the_defaults_of_their_version():
    x = f(-7, 7)
    for opset, expected in ((6, "is_test"), (7, None)):
        attributes = {} if expected is None else {expected: 1}
        proto = model(
            [helper.make_node("Dropout", ["x"], ["y"], **attributes)], [info("x", x)], unknown(["y"], 3), None, opset
        )
        assert_same(run(proto, x), [x])


def test_old_broadcasting():
    b = f(1, 2, 3)
    node = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)
    proto = model([node], [info("x", X), info("b", b)], unknown(["y"], 3), opset=6)
    assert_same(run(proto, X, b), [X + b[:, None]])


def test_old_training_is_refused():
    node = helper.make_node("Dropout", ["x"], ["y"], is_test=0)
    with pytest.raises(OnnxImportError, match="version 6 of the operator trains"):
        import_model(model([node], [info("x", X)], unknown(["y"], 3), opset=6))


def test_layers_of_a_transformer():
    weights = {
        "scale": RNG.standard_normal(4).astype(np.float32),
        "shift": RNG.standard_normal(4).astype(np.float32),
        "w": RNG.standard_normal((4, 4)).astype(np.float32),
    }
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["a"], axis=-1),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Gelu", ["b"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]
    proto = model(nodes, [info("x", X, ["batch", "tokens", 4])], unknown(["y"], 3), weights)
    assert_same(run(proto, X), reference(proto, {"x": X}))


def test_quantised_product():
    a = RNG.integers(0, 255, (2, 4)).astype(np.uint8)
    b = RNG.integers(-128, 127, (4, 3)).astype(np.int8)
    constants = {"b": b, "za": np.array(120, np.uint8), "zb": np.array(3, np.int8)}
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    proto = model([node], [info("a", a, ["rows", 4])], unknown(["y"], 2), constants)
    assert_same(run(proto, a), [(a.astype(np.int32) - 120) @ (b.astype(np.int32) - 3)])


def test_normalisation_in_training_moves_the_statistics():
    x, *channels = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4, 5), 3, 3, 3, 3))
    scale, shift, mean, variance = map(np.abs, channels)
    node = helper.make_node(
        "BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "new_m", "new_v"], training_mode=1, momentum=0.7
    )
    inputs = [info(name, each) for name, each in zip("xsbmv", (x, scale, shift, mean, variance), strict=True)]
    proto = model([node], inputs, unknown(["y", "new_m", "new_v"], 4, 1, 1), opset=15)
    now = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    y = (x - now[0]) / np.sqrt(now[1] + 1e-5) * scale[:, None, None] + shift[:, None, None]
    share = np.float32(0.7)
    moved = [old * share + new.reshape(-1) * (1 - share) for old, new in zip((mean, variance), now, strict=True)]
    assert_same(run(proto, x, scale, shift, mean, variance), [y, *moved])


def test_groups_of_channels_before_their_meaning_changed():
    x, scale, shift = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 3, 5), 2, 2))
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2, epsilon=1e-2)
    proto = model([node], [info("x", x), info("s", scale), info("b", shift)], unknown(["y"], 4), opset=18)
    parts = x.reshape(2, 2, -1)
    around = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-2)
    assert_same(run(proto, x, scale, shift), [(around * scale[:, None] + shift[:, None]).reshape(x.shape)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_widths_of_padding_that_are_data(mode: str):
    """Whatever is known of the sizes; an axis with nothing to repeat is refused."""
    pads = i(1, 0, 2, 0, 2, 1)
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
    proto = model([node], [info("x", X, ["n", 3, "m"]), info("pads", pads)], unknown(["y"], 3), opset=19)
    for x in (X, X[:1, :, :1].copy(), np.ones((1, 3, 70), np.float32)):
        assert_same(run(proto, x, pads), [np.pad(x, [(1, 0), (0, 2), (2, 1)], mode)])
    function, empty = VirtualMachine(build(import_model(proto)))["main"], X[:, :, :0].copy()
    assert results(function, empty, i(0, 0, 0, 0, 0, 0))[0].shape == empty.shape
    if mode == "constant":
        assert_same(results(function, empty, pads), [np.zeros((3, 5, 3), np.float32)])
    else:
        with pytest.raises(ValueError, match="pad"):
            function(empty, pads)


@pytest.mark.slow
def test_resizes_at_run_time_share_their_kernels():
    """Of equal sizes, but for the names of their symbols."""
    nodes = [
        helper.make_node("Resize", ["x" if not k else f"y{k - 1}", "", f"s{k}"], [f"y{k}"], mode="cubic")
        for k in range(3)
    ]
    scales = [f(1, 1, 1.5, 0.6), f(1, 1, 0.5, 2), f(1, 1, 1.2, 1.2)]
    inputs = [info("x", IMAGE, ["n", 4, "h", "w"]), *(info(f"s{k}", each) for k, each in enumerate(scales))]
    proto = model(nodes, inputs, unknown(["y2"], 4))
    module = import_model(proto)
    kernels = [each for each in module.ops if each.name == "tir.prim_func" and "resize_axis" in str(each.sym_name)]
    assert len(kernels) == 6  # of twelve: those of the second and the third are the same
    feeds = {"x": IMAGE, **{f"s{k}": each for k, each in enumerate(scales)}}
    for mode in ("bytecode", "native"):
        found = results(VirtualMachine(build(module, mode=mode))["main"], *feeds.values())
        assert_same(found, reference(proto, feeds))


def test_forms_that_the_tests_of_the_package_lack():
    """Parameters of other shapes and dtypes, 16 bits, powers that round to integers."""
    byte = np.abs(IMAGE * 60).astype(np.uint8)
    half, whole = IMAGE.astype(np.float16), np.abs(X * 9).astype(np.int64)
    statistics = np.abs(IMAGE[0, :, 0, 0]).astype(np.float16)
    mask = RNG.standard_normal((6, 6)).astype(np.float64)
    constants = {
        **{"scale": X[0, :, :1].copy(), "rows": X, "far": X[0], "threes": f(3, 2, 0.5, 0), "twice": f(1, 1, 2, 2)},
        **{"ones": np.ones(4, np.float32), "stats": statistics, "mask": mask},
    }
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale"], ["n0"]),
        helper.make_node("LayerNormalization", ["x", "rows", "far"], ["n1", "mean", "inverse"], axis=1),
        helper.make_node("LayerNormalization", ["half", "half"], ["n2"]),
        helper.make_node("LRN", ["half"], ["around"], size=3),
        helper.make_node("Pow", ["whole", "threes"], ["powers"]),
        helper.make_node(
            *("BatchNormalization", ["image", "ones", "ones", "stats", "stats"], ["b", "m", "v"]), training_mode=1
        ),
        helper.make_node("Resize", ["byte", "", "twice"], ["resized"], mode="linear"),
        helper.make_node("Resize", ["byte", "", "", "sizes"], ["resized at run time"], mode="linear"),
        helper.make_node("Shrink", ["byte"], ["shrunk"], lambd=9.5, bias=1.0),
        helper.make_node("Unsqueeze", ["x", "no axes"], ["same"]),
        helper.make_node("Attention", ["image", "image", "image", "mask"], ["attended"]),
    ]
    made = [name for node in nodes for name in node.output]
    arrays = {
        "x": X,
        "half": half,
        "whole": whole,
        "image": IMAGE,
        "byte": byte,
        "sizes": i(1, 4, 12, 10),
        "no axes": i(),
    }
    described = [info(name, array) for name, array in arrays.items()]
    proto = model(nodes, described, [helper.make_tensor_value_info(name, 0, None) for name in made], constants, 23)
    expected = dict(zip(made, reference(proto, arrays), strict=True))
    np.testing.assert_array_equal(expected["powers"], np.trunc(whole ** np.float64(constants["threes"])))
    exact = model([nodes[6]], [info("byte", IMAGE)], unknown(["resized"], 4), constants)
    (resized,) = reference(exact, {"byte": byte.astype(np.float32)})
    expected |= {name: resized.astype(np.uint8) for name in made if name.startswith("resized")}  # as ONNX Runtime
    expected |= {name: expected[name].astype(np.float16) for name in ("m", "v")}  # as the standard says
    interpreted = interpret(import_model(proto), "main", list(arrays.values()))
    for found in (run(proto, *arrays.values()), interpreted):
        for name, ours, theirs in zip(made, found, expected.values(), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
            tolerance = 1e-2 if theirs.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=name)
