"""`Pad` with widths of either sign: elements are taken away before others are repeated, in every mode of both kinds."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relax_dialect.frontend.onnx import import_model
from tests.support.programs import IDENTICAL, run_in_turn

pytestmark = pytest.mark.sampled(2)

WIDTHS = [(-1, 0, 2, 0), (2, -1, -1, 3), (-1, -2, 3, 1), (1, 3, -2, -1), (0, -2, 0, 6), (-1, -1, -1, -1), (0, 4, 0, -2)]
SOURCES = ("constants", "data", "symbols")
"""Where widths come from; with symbols, the sizes of the data are not known either."""


def _padded(x: np.ndarray, widths: tuple[int, ...], mode: str) -> np.ndarray:
    before, after = widths[:2], widths[2:]
    kept = tuple(
        slice(max(-low, 0), length - max(-high, 0)) for low, high, length in zip(before, after, x.shape, strict=True)
    )
    return np.pad(x[kept], [(max(low, 0), max(high, 0)) for low, high in zip(before, after, strict=True)], mode)


def _model(x: np.ndarray, mode: str, widths: tuple[int, ...], source: str) -> onnx.ModelProto:
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", dtype, ["a", "b"] if source == "symbols" else x.shape)]
    constants = [numpy_helper.from_array(np.array(widths), "p")] if source == "constants" else []
    if not constants:
        inputs.append(helper.make_tensor_value_info("p", TensorProto.INT64, [4]))
    outputs = [helper.make_tensor_value_info("y", dtype, ["c", "d"])]
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)], "main", inputs, outputs, constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_both_signs(mode: str, source: str):
    for index, widths in enumerate(WIDTHS if source == "constants" else WIDTHS[:1]):
        x = np.arange(1, 21).reshape(4, 5).astype((np.float32, np.int8, np.bool_, np.uint64)[index % 4])
        module = import_model(_model(x, mode, widths, source))
        for each in [widths] if source == "constants" else WIDTHS:
            args = [x] if source == "constants" else [x, np.array(each)]
            np.testing.assert_array_equal(run_in_turn(module, "main", args, IDENTICAL), _padded(x, each, mode))
