"""Inputs that say shapes, that are sequences, optional or strings; sizes of which only the program knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from lowering import build
from relax_dialect.frontend.onnx import import_model
from relax_dialect.interpreter import run as interpret
from tests.relax_dialect.frontend.onnx.models import Array, assert_same, info, model, reference, results, unknown
from tests.support.programs import run_in_turn
from vm_dialect import VirtualMachine

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def i(*elements: int) -> Array:
    return np.array(elements, np.int64)


def everywhere(proto: ModelProto, *calls: list[Any], expected: list[Any] | None = None, **options: Any) -> None:
    """Runs a model in every mode, and compares it with the onnx package, or with what is expected of each call."""
    module = import_model(proto, **options)
    names = [each.name for each in proto.graph.input]
    functions = [VirtualMachine(build(module, mode=mode))["main"] for mode in ("bytecode", "native")]
    for at, call in enumerate(calls):
        wanted = reference(proto, dict(zip(names, call, strict=True))) if expected is None else [expected[at]]
        found = interpret(module, "main", call)
        assert_same([np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))], wanted)
        for function in functions:
            assert_same(results(function, *call), wanted)


LISTS: dict[str, list[Any]] = {
    "concat": [helper.make_node("Concat", ["a", "b"], ["s"], axis=0)],
    "arithmetic": [
        helper.make_node("Concat", ["a", "b"], ["t"], axis=0),
        helper.make_node("Mul", ["t", "one"], ["u"]),
        helper.make_node("Cast", ["u"], ["s"], to=TensorProto.INT64),
    ],
    "parts": [
        helper.make_node("Slice", ["a", "zero", "one"], ["t"]),
        helper.make_node("Concat", ["t", "b"], ["s"], axis=0),
    ],
}


@pytest.mark.parametrize("nodes", LISTS.values(), ids=LISTS)
def test_inputs_that_are_parts_of_a_shape(nodes: list[Any]):
    """Their elements are data, but how many there are is the rank: no symbol."""
    inputs = [info("x", X), info("a", i(2)), info("b", i(3, 4))]
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    proto = model([*nodes, reshape], inputs, unknown(["y"], 3), {"zero": i(0), "one": i(1)})
    everywhere(proto, [X, i(4), i(3, 2)], [X.reshape(4, 3, 2), i(1), i(24, 1)], dynamic=True)


CONVOLUTIONS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "upper": ({"output_shape": [10], "strides": [3], "auto_pad": "SAME_UPPER"}, [4, 5]),
    "lower": ({"output_shape": [9], "strides": [2], "auto_pad": "SAME_LOWER"}, [4, 5, 6]),
    "as long as its stride": ({"strides": [2], "auto_pad": "SAME_UPPER"}, [1, 4, 5]),
    "lower, longer stride": ({"strides": [4], "auto_pad": "SAME_LOWER"}, [1, 4]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("attributes", "lengths"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_transposed_convolutions_of_any_length(attributes: dict[str, Any], lengths: list[int]):
    w = np.random.default_rng(0).normal(size=(3, 2, 3)).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "l"])]
    proto = model([node], inputs, unknown(["y"], 3), {"w": w})
    everywhere(proto, *([X.reshape(-1)[: 3 * length].reshape(1, 3, length)] for length in lengths))


def test_a_transposed_convolution_that_is_too_short():
    """Zeros are behind what there is, as output padding would give."""
    w = np.ones((3, 2, 3), np.float32)

    def proto(**attributes: Any) -> Any:
        node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3], **attributes)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "l"])]
        return model([node], inputs, unknown(["y"], 3), {"w": w})

    x = X.reshape(-1)[:6].reshape(1, 3, 2)
    (whole,) = reference(proto(), {"x": x})
    found = run_in_turn(import_model(proto(output_shape=[10], auto_pad="SAME_UPPER")), "main", [x])
    np.testing.assert_allclose(found, np.pad(whole, ((0, 0), (0, 0), (0, 4))), rtol=1e-5)


WINDOWS: dict[str, dict[str, Any]] = {
    "Conv": {},
    "ConvInteger": {},
    "MaxPool": {},
    "AveragePool": {},
    "AveragePool, padding counts": {"count_include_pad": 1},
    "LpPool": {},
}


@pytest.mark.sampled(28)
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (5, 2)], ids=lambda sizes: f"{sizes[0]} by {sizes[1]}")
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("name", WINDOWS)
def test_padding_that_depends_on_symbols(name: str, auto_pad: str, sizes: tuple[int, int]):
    """`auto_pad` with a stride gives each image what it gives images of constant sizes."""
    (kind, *_), (size, stride), rng = name.split(","), sizes, np.random.default_rng(0)
    attributes = {"kernel_shape": [size, size], "strides": [stride, 1], "auto_pad": auto_pad, **WINDOWS[name]}
    dtype = np.uint8 if kind == "ConvInteger" else np.float32
    constants: dict[str, Array] = {
        "Conv": {"w": rng.normal(size=(3, 2, size, size)).astype(np.float32)},
        "ConvInteger": {"w": rng.integers(-9, 9, (3, 2, size, size)).astype(np.int8), "z": np.array(7, np.uint8)},
    }.get(kind, {})
    outputs = ["y", "i"] if kind == "MaxPool" else ["y"]
    nodes = [helper.make_node(kind, ["x", *constants], outputs, **attributes)]

    def of(height: int | str, width: int | str) -> ModelProto:
        shape = [
            helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1, 2, height, width])
        ]
        return model(nodes, shape, unknown(outputs, *(4 for _ in outputs)), constants)

    module = import_model(of("h", "w"))
    functions = [VirtualMachine(build(module, mode=mode))["main"] for mode in ("bytecode", "native")]
    for height, width in ((1, 1), (4, 5), (5, 4), (7, 2)):
        x = (rng.normal(size=(1, 2, height, width)) * 20 + 30).astype(dtype)
        wanted = interpret(import_model(of(height, width)), "main", [x])
        wanted = [np.asarray(each) for each in (wanted if isinstance(wanted, tuple) else (wanted,))]
        found = interpret(module, "main", [x])
        assert_same([np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))], wanted)
        for function in functions:
            assert_same(results(function, x), wanted)


def test_kernels_whose_sizes_only_an_attribute_says():
    w = np.random.default_rng(0).normal(size=(3, 2, 3)).astype(np.float32)
    inputs = [info("x", X.reshape(2, 2, 6)), helper.make_tensor_value_info("w", TensorProto.FLOAT, ["o", "i", "k"])]
    for kind in ("Conv", "ConvTranspose"):
        filters = w if kind == "Conv" else w.transpose(1, 0, 2).copy()
        proto = model([helper.make_node(kind, ["x", "w"], ["y"], kernel_shape=[3])], inputs, unknown(["y"], 3))
        everywhere(proto, [X.reshape(2, 2, 6), filters])
        with pytest.raises(ValueError, match=r"expected 3, got 2"):
            VirtualMachine(build(import_model(proto)))["main"](X.reshape(2, 2, 6), filters[..., :2].copy())


def max_roi_pool(x: Array, regions: Array, parts: tuple[int, int], scale: float) -> Array:
    """As Fast R-CNN has it, element by element."""
    made = np.zeros((len(regions), x.shape[1], *parts), x.dtype)
    for r, (n, *corners) in enumerate(regions):
        x1, y1, x2, y2 = (int(np.floor(abs(each * scale) + 0.5) * np.sign(each)) for each in corners)
        steps = max(y2 - y1 + 1, 1) / parts[0], max(x2 - x1 + 1, 1) / parts[1]
        for i, j in np.ndindex(*parts):
            place = [
                slice(
                    *(min(max(int(each) + first, 0), size) for each in (np.floor(at * step), np.ceil((at + 1) * step)))
                )
                for at, step, first, size in zip((i, j), steps, (y1, x1), x.shape[2:], strict=True)
            ]
            part = x[int(n), :, place[0], place[1]]
            if part.size:
                made[r, :, i, j] = part.max((1, 2))
    return made


@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_max_roi_pool(scale: float):
    image = np.random.default_rng(0).normal(size=(2, 2, 8, 7)).astype(np.float32)
    boxes = [[0, 0, 0, 7, 7], [1, 1, 2, 5, 5], [0, -4, -4, 2, 9], [1, 6, 6, 20, 20], [0, 9, 9, 12, 12], [0, 5, 5, 1, 1]]
    regions = np.array(boxes, np.float32)
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3], spatial_scale=scale)
    inputs = [info("x", image, ["n", 2, "h", "w"]), info("r", regions, ["k", 5])]
    proto = model([node], inputs, unknown(["y"], 4))
    calls = [[image, regions], [image[:, :, :3], regions[:1]]]
    everywhere(proto, *calls, expected=[max_roi_pool(*call, (2, 3), scale) for call in calls])


def test_hardmax_of_nothing():
    node = helper.make_node("Hardmax", ["x"], ["y"], axis=1)
    data = np.array([[[1, 3, 3], [3, 1, np.nan]]], np.float32)
    proto = model([node], [info("x", data, ["a", "b", "c"])], unknown(["y"], 3))
    empty = [[np.zeros(shape, np.float32)] for shape in ((2, 0, 3), (0, 2, 3), (2, 3, 0))]
    everywhere(proto, [data], *empty)
    fixed = model([node], [info("x", empty[0][0])], unknown(["y"], 3))
    everywhere(fixed, empty[0])


def wrapped(kind: str, *dims: Any) -> Any:
    """An input that is a sequence of tensors, or an optional one."""
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, dims)
    make = {"sequence": helper.make_sequence_type_proto, "optional": helper.make_optional_type_proto}[kind]
    return helper.make_value_info("x", make(tensor))


def test_sequences_as_inputs():
    """Their items have one shape: a list of them is given, or a tensor that has them along its first axis."""
    nodes = [
        helper.make_node("SequenceLength", ["x"], ["n"]),
        helper.make_node("SequenceAt", ["x", "last"], ["item"]),
        helper.make_node("SequenceInsert", ["x", "item"], ["more"]),
        helper.make_node("ConcatFromSequence", ["more"], ["all"], axis=0),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)
               for name, rank in (("n", 0), ("item", 2), ("all", 2))]  # fmt: skip
    proto = model(nodes, [wrapped("sequence", "k", 4)], outputs, {"last": np.array(-1)})
    for items in ([X[0], X[1]], [X[0, :1]]):
        everywhere(proto, [items])
    main = VirtualMachine(build(import_model(proto)))["main"]
    assert_same(results(main, X), results(main, [X[0], X[1]]))


def test_optional_inputs_are_there():
    nodes = [
        helper.make_node("OptionalHasElement", ["x"], ["there"]),
        helper.make_node("OptionalGetElement", ["x"], ["value"]),
        helper.make_node("Neg", ["value"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("there", TensorProto.BOOL, []), *unknown(["y"], 1)]
    proto = model(nodes, [wrapped("optional", "k")], outputs)
    everywhere(proto, [X[0, 0]])


def test_strings_pass_through():
    node = helper.make_node("Identity", ["x"], ["y"])
    words = helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])
    module = import_model(model([node], [words], [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])]))
    for mode in ("bytecode", "native"):
        assert list(VirtualMachine(build(module, mode=mode))["main"](["a", "b"])) == ["a", "b"]
