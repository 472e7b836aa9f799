"""Numbers at the ends of int64, and indices, axes and lengths out of range, which are errors as in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.helper import np_dtype_to_tensor_dtype

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.support.programs import MODES, as_plain, runner

MOST, LEAST = 2**63 - 1, -(2**63)
X = np.arange(3, dtype=np.float32)
XX = np.arange(6, dtype=np.float32).reshape(2, 3)
ZERO = np.float32(0)


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def model(
    operator: str, arrays: Sequence[Any], attributes: Mapping[str, Any], opset: int, constants: Sequence[int] = ()
) -> ModelProto:
    arrays = [np.asarray(array) for array in arrays]
    types = [np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    names = [f"x{at}" for at in range(len(arrays))]
    infos = [helper.make_tensor_value_info(*each) for each in zip(names, types, [a.shape for a in arrays], strict=True)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        "graph",
        [info for at, info in enumerate(infos) if at not in constants],
        [helper.make_tensor_value_info("y", types[0], None)],
        [numpy_helper.from_array(arrays[at], names[at]) for at in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(mode: str, operator: str, arrays: Sequence[Any], constants: Sequence[int] = (), opset: int = 18, **attributes):
    given = [np.asarray(array) for at, array in enumerate(arrays) if at not in constants]
    module = import_model(model(operator, arrays, attributes, opset, constants))
    return as_plain(runner(module, "main", mode)(*given))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("start", "limit", "step", "expected"),
    [
        (-3, 0, MOST, [-3]),
        (3, 0, LEAST, [3]),
        (MOST - 3, MOST, 2, [MOST - 3, MOST - 1]),
        (LEAST, LEAST + 3, 1, [LEAST, LEAST + 1, LEAST + 2]),
        (LEAST, MOST, MOST, [LEAST, -1, MOST - 1]),
        (MOST, LEAST, LEAST, [MOST, -1]),
        (0, 5, -2, []),
    ],
)
def test_ranges(mode: str, start: int, limit: int, step: int, expected: list[int]):
    for constants in ((), (0, 1, 2)):
        if len(constants) < 3 or abs(step) < MOST:
            np.testing.assert_array_equal(
                run(mode, "Range", [np.int64(each) for each in (start, limit, step)], constants), np.array(expected)
            )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (0, 3, MOST, [0]),
        (2, LEAST, LEAST, [2]),
        (-10, LEAST, -1, [0]),  # clamped to the first element, where Python's slice is empty
        (1, MOST, MOST, [1]),
        (MOST, LEAST, -1, [2, 1, 0]),
        (LEAST, MOST, 1, [0, 1, 2]),
        (LEAST, LEAST, -1, [0]),
        (-1, -10, -2, [2, 0]),
        (MOST, 0, LEAST, [2]),
        (LEAST, 2, MOST, [0]),
        (10, MOST, MOST, []),
        # As ONNX says, which clamps the end to the last element; for ONNX Runtime it is the beginning.
        (-10, MOST, -1, []),
    ],
)
def test_slices(mode: str, start: int, end: int, step: int, expected: list[int]):
    for constants in ((), (1, 2, 3, 4)):
        found = run(mode, "Slice", [X, i64(start), i64(end), i64(0), i64(step)], constants)
        np.testing.assert_array_equal(found, np.array(expected, np.float32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_steps_of_0(mode: str):
    message = "main: '{}' steps: expected none of 0, got as many.*: zeros = 1, 0"
    with pytest.raises(ValueError, match=message.format("Slice")):
        run(mode, "Slice", [XX, i64(0, 0), i64(2, 2), i64(0, 1), i64(1, 0)])
    for number in (np.float32, np.int64):
        with pytest.raises(ValueError, match=message.format("Range")):
            run(mode, "Range", [number(0), number(4), number(0)])


@pytest.mark.parametrize("mode", MODES)
def test_a_condition_may_be_longer_than_its_axis(mode: str):
    condition = np.array([True, False, True, True, True])
    np.testing.assert_array_equal(run(mode, "Compress", [XX, condition], axis=1), XX[:, [0, 2]])
    np.testing.assert_array_equal(run(mode, "Compress", [XX, condition]), [0, 2, 3, 4])


def place(index: int, axis: int) -> str:
    """What an error says of an index."""
    return f"{index + 1 if index >= 0 else -index}, {axis}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", [3, -4])
def test_indices_out_of_range(mode: str, index: int):
    message = r"main: '{}' indices{}: expected each within its axis, .*: place(_1)? = " + place(index, 3)
    near = -3 if index < 0 else 2
    pair, fine = np.array([[0, index], [1, 0]]), np.array([[0, near], [1, 0]])
    for operator, inputs in {
        "Gather": [X, i64(0, index)],
        "GatherElements": [X, i64(0, index)],
        "ScatterElements": [X, i64(0, index), X[:2]],
    }.items():
        with pytest.raises(ValueError, match=message.format(operator, "")):
            run(mode, operator, inputs)
    for operator, inputs in {"GatherND": [XX, pair], "ScatterND": [XX, pair, X[:2]]}.items():
        with pytest.raises(ValueError, match=message.format(operator, ", coordinate 1")):
            run(mode, operator, inputs)
    image, places = np.ones((1, 1, 1, 2), np.float32), i64(0, index * 2).reshape(1, 1, 1, 2)
    with pytest.raises(ValueError, match="main: 'MaxUnpool' indices: expected each within the result"):
        run(mode, "MaxUnpool", [image, places], kernel_shape=[1, 2], strides=[1, 2])
    np.testing.assert_array_equal(run(mode, "Gather", [X, i64(0, near)]), X[[0, near]])
    np.testing.assert_array_equal(run(mode, "GatherND", [XX, fine]), XX[[0, 1], [near, 0]])
    assert run(mode, "Gather", [X, i64()]).shape == (0,)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_axes_out_of_range(mode: str):
    message = "main: '{}' axe?i?s: expected each within the rank, .*: place = {}, {}"
    for operator, inputs, got, rank in [
        ("Slice", [XX, i64(0), i64(1), i64(2), i64(1)], 3, 2),
        ("Unsqueeze", [XX, i64(-5)], 5, 3),
        ("ReduceSum", [XX, i64(3)], 4, 2),
        ("CumSum", [XX, np.int64(-3)], 3, 2),
        ("Pad", [XX, i64(1, 1), ZERO, i64(2)], 3, 2),
    ]:
        with pytest.raises(ValueError, match=message.format(operator, got, rank)):
            run(mode, operator, inputs)
    for operator, inputs in {
        "Slice": [XX, i64(0, 0), i64(1, 1), i64(1, -1), i64(1, 1)],
        "Unsqueeze": [XX, i64(0, -4)],
    }.items():
        with pytest.raises(
            ValueError, match=f"main: '{operator}' axes: expected each of them once, .*: repeated = 1, 0"
        ):
            run(mode, operator, inputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_places_in_a_cache(mode: str):
    cache, update = np.zeros((2, 4, 1), np.float32), np.ones((2, 2, 1), np.float32)
    for wrong in (-1, 3, MOST, LEAST):
        with pytest.raises(ValueError, match="'TensorScatter' write indices: expected each"):
            run(mode, "TensorScatter", [cache, update, i64(0, wrong)], opset=24)
    found = run(mode, "TensorScatter", [cache, update, i64(0, 2)], opset=24)
    np.testing.assert_array_equal(np.asarray(found)[..., 0], [[1, 1, 0, 0], [0, 0, 1, 1]])
    around = import_model(model("TensorScatter", [cache, update, i64(0, 0)], {"mode": "circular"}, 24))
    found = runner(around, "main", mode)(cache, update, i64(7, -1))
    np.testing.assert_array_equal(np.asarray(found)[..., 0], [[1, 0, 0, 1], [1, 0, 0, 1]])


@pytest.mark.parametrize("mode", MODES)
def test_lengths_of_sequences(mode: str):
    with pytest.raises(ValueError, match=r"ReverseSequence' lengths: expected each at least 0, .*: below = 2, 0"):
        run(mode, "ReverseSequence", [XX, i64(1, -2, 1)], time_axis=0, batch_axis=1)
    with pytest.raises(ValueError, match=r"lengths: expected each at most that of the axis, got.*: number = 3, 2"):
        run(mode, "ReverseSequence", [XX, i64(1, 3, 1)], time_axis=0, batch_axis=1)


def test_an_index_that_is_known_is_refused_while_importing():
    with pytest.raises(Exception, match="the index 3 is not within a dimension of 3"):
        run("interpret", "GatherElements", [X, i64(0, 3)], constants=[1])


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_functions_may_have_the_names_of_tables(mode: str):
    """Run-time slices have a kernel that is called `places`, as the table of the lines of backtraces."""
    np.testing.assert_array_equal(run(mode, "Slice", [X, i64(1), i64(3), i64(0), i64(1)]), X[1:])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([3, 4], "cannot reshape [3, 4], 12 elements, to [5, 2], 10 elements; that shape is a constant of the model"),
        (
            ["n", 4],
            "cannot reshape [n, 4], 4 * n elements, to [5, 2], 10 elements; that shape is a constant of the model",
        ),
    ],
)
def test_a_shape_that_does_not_fit_says_who_fixed_it(shape: list[int | str], message: str):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    target = numpy_helper.from_array(np.array([5, 2]), "target")
    node = helper.make_node("Reshape", ["x", "target"], ["y"], name="flat")
    graph = helper.make_graph([node], "g", inputs, outputs, [target])
    with pytest.raises(OnnxImportError) as refused:
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert str(refused.value) == f"the model has a node that cannot be imported:\n  Reshape (flat): {message}"


@pytest.mark.parametrize(
    ("operator", "weight", "message"),
    [
        (
            "MatMul",
            np.ones((4, 2), np.float32),
            "'relax.matmul' op expected equal contracted dimensions, got 3 and 4; "
            "its inputs are x: f32[2, 3] and w: f32[4, 2]",
        ),
        (
            "Add",
            np.ones((2, 4), np.float32),
            "'relax.add' op dimensions 3 and 4 do not broadcast; its inputs are x: f32[2, 3] and w: f32[2, 4]",
        ),
    ],
)
def test_operands_that_do_not_fit_are_named(operator: str, weight: np.ndarray, message: str):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    node = helper.make_node(operator, ["x", "w"], ["y"], name="layer")
    graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    with pytest.raises(OnnxImportError) as refused:
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert str(refused.value) == f"the model has a node that cannot be imported:\n  {operator} (layer): {message}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "it is a pointer of Git LFS instead of the file: run `git lfs pull`",
        ),
        (b"no model", "it is not an ONNX file, or was cut off"),
    ],
)
def test_files_that_are_no_model(data: bytes, reason: str):
    with pytest.raises(OnnxImportError) as refused:
        import_model(data)
    assert str(refused.value) == f"the model is malformed: {reason}"
