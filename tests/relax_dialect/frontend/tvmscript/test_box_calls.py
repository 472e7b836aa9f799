"""Operators of TVM's that choose among boxes: what they return with which options."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

RNG = np.random.default_rng(6)
ROWS = np.array([[[0, 0.5, 0, 0, 2, 2], [-1, 0.9, 0, 0, 1, 1], [0, 0.75, 0, 0, 2, 1.75], [1, 0.25, 5, 5, 6, 6]]])


def result_of(head: str, body: str, *arguments: np.ndarray, returns: str = "") -> Any:
    text = f"@R.function\ndef f({head}){returns}:\n    gv{returns.replace(' ->', ':')} = {dedent(body).strip()}\n"
    return run_in_turn(parse(text + "    return gv\n"), "f", arguments)


def test_rows_of_boxes():
    head = 'x: R.Tensor(("b", "n", 6), "float32"), at: R.Tensor(("b", "n"), "int32")'
    body = """(R.vision.get_valid_counts(x, 0.3),
        R.vision.non_max_suppression(x, R.const([3], "int32"), at, id_index=-1),
        R.vision.non_max_suppression(x, R.const([4], "int32"), at, soft_nms_sigma=0.5, iou_threshold=1),
        R.vision.non_max_suppression(x, R.const([4], "int32"), at, return_indices=False, invalid_to_bottom=True))"""
    x, at = ROWS.astype(np.float32), np.array([[7, 8, 9, 10]], np.int32)
    (count, rows, places), hard, soft, top = result_of(head, body, x, at)
    np.testing.assert_array_equal(count, [2])
    np.testing.assert_array_equal(rows, [[x[0, 0], x[0, 2], [-1] * 6, [-1] * 6]])
    np.testing.assert_array_equal(places, [[0, 2, -1, -1]])
    np.testing.assert_array_equal(hard[0], [[8, 9, -1, -1]])
    np.testing.assert_array_equal(hard[1], [[2]])
    decayed = 0.5 * np.exp(-(0.875**2))
    np.testing.assert_array_equal(soft[1], [[8, 9, 10, 7]] if decayed < 0.25 else [[8, 9, 7, 10]])
    np.testing.assert_allclose(np.sort(np.asarray(soft[0])[0, :, 1]), sorted([0.9, 0.75, 0.25, decayed]), rtol=1e-6)
    np.testing.assert_array_equal(soft[2], [[4]])
    np.testing.assert_array_equal(top, [[x[0, 1], x[0, 2], x[0, 3], [-1] * 6]])


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]] * 2, np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7], [0.1, 0.95, 0.2]], [[0, 0, 0.5], [0, 0, 0]]], np.float32)
HEAD = 'b: R.Tensor((2, "n", 4), "float32"), s: R.Tensor((2, 2, "n"), "float32")'
ALL_CLASSES = """R.vision.all_class_non_max_suppression(
    b, s, R.const(2, "int64"), R.const([0.5], "float32"), R.const(0.3, "float32"), "{}")"""
TAKEN = np.array([[0, 0, 0], [0, 0, 2], [0, 1, 1], [1, 0, 2]])


def test_boxes_of_all_classes():
    taken, count = result_of(HEAD, ALL_CLASSES.format("onnx"), BOXES, SCORES)
    np.testing.assert_array_equal(count, [4])
    np.testing.assert_array_equal(taken, TAKEN)


def test_as_many_rows_as_are_declared():
    head, returns = HEAD.replace('"n"', "3"), ' -> R.Tuple(R.Tensor((12, 3), "int64"), R.Tensor((1,), "int64"))'
    taken, _ = result_of(head, ALL_CLASSES.format("onnx"), BOXES, SCORES, returns=returns)
    np.testing.assert_array_equal(taken, np.concatenate([TAKEN, np.zeros((8, 3))]))


def test_boxes_batch_by_batch():
    places, scores, count = result_of(HEAD, ALL_CLASSES.format("tensorflow"), BOXES, SCORES)
    np.testing.assert_array_equal(count, [3, 1])
    np.testing.assert_array_equal(places, [[[0, 0], [0, 2], [1, 1], *[[0, 0]] * 3], [[0, 2], *[[0, 0]] * 5]])
    np.testing.assert_allclose(scores, [[0.9, 0.7, 0.95, 0, 0, 0], [0.5, 0, 0, 0, 0, 0]])


def test_boxes_from_priors():
    scores, places = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 2), (2, 8)))
    priors = RNG.uniform(0, 1, (1, 2, 4)).astype(np.float32)
    head = 'c: R.Tensor(("b", 3, 2), "float32"), l: R.Tensor(("b", 8), "float32"), a: R.Tensor((1, 2, 4), "float32")'
    body = """R.vision.multibox_transform_loc(c, l, a, clip=True, threshold=0.3, variances=(0.1, 0.1, 0.2, 0.2),
        keep_background=False)"""
    boxes, masked = result_of(head, body, scores, places, priors)
    likely = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    likely[:, 0] = 0
    np.testing.assert_allclose(masked, np.where(likely >= 0.3, likely, 0), rtol=1e-5)
    x, y, w, h = np.moveaxis(places.reshape(2, 2, 4) * [0.1, 0.1, 0.2, 0.2], 2, 0)
    left, top, right, bottom = np.moveaxis(priors, 2, 0)
    x, y = x * (right - left) + (left + right) / 2, y * (bottom - top) + (top + bottom) / 2
    w, h = np.exp(w) * (right - left) / 2, np.exp(h) * (bottom - top) / 2
    expected = np.clip(np.stack([y - h, x - w, y + h, x + w], 2), 0, 1)
    np.testing.assert_allclose(boxes, expected, rtol=1e-5, atol=1e-6)


ERRORS = {
    "R.vision.non_max_suppression(x, x, x, top=3)": "has no argument top; did you mean top_k",
    "R.vision.get_valid_counts(x)": "op operand #0 expected rank 3",
    'R.vision.all_class_non_max_suppression(x, x, x, x, x, "caffe")': "output format onnx or tensorflow, got caffe",
    'R.vision.all_class_non_max_suppression(x, x, x, x, x, "onnx")': "scores of known shape and rank 3",
    "R.vision.multibox_transform_loc(x, x, x, variances=(1, 2))": "expected four variances that are numbers",
}


@pytest.mark.parametrize("call", ERRORS)
def test_wrong_arguments(call: str):
    with pytest.raises(TVMScriptError, match=ERRORS[call]):
        parse(f'@R.function\ndef f(x: R.Tensor(("n", 4), "float32")):\n    return {call}\n')
