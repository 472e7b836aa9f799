"""Operators of TVM's that are several of ours: regions, volumes, statistics, losses, open lengths."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

RNG = np.random.default_rng(5)


def result_of(head: str, body: str, *arguments: np.ndarray) -> Any:
    text = f"@R.function\ndef f({head}):\n    return {dedent(body).strip()}\n"
    return run_in_turn(parse(text), "f", arguments)


def test_regions():
    x = RNG.normal(size=(2, 1, 4, 6)).astype(np.float32)
    rois = np.array([[1, 0, 0, 5, 3], [0, 2, 0, 5, 3]], np.float32)
    head = 'x: R.Tensor((2, 1, 4, 6), "float32"), r: R.Tensor(("n", 5), "float32")'
    body = """(R.vision.roi_pool(x, r, pooled_size=(2, 2), spatial_scale=1.0),
        R.vision.roi_align(R.permute_dims(x, [0, 2, 3, 1]), r, 1, 1.0, 1, True, layout="NHWC", mode="avg"))"""
    pooled, aligned = result_of(head, body, x, rois)
    expected = [
        [[x[i, 0, a : a + 2, c : c + w].max() for c in columns] for a in (0, 2)]
        for i, columns, w in ((1, (0, 3), 3), (0, (2, 4), 2))
    ]
    np.testing.assert_array_equal(np.asarray(pooled)[:, 0], expected)
    middle = [x[i, 0, 1:3, c : c + 2].mean() for i, c in ((1, 2), (0, 3))]
    np.testing.assert_allclose(np.asarray(aligned)[:, 0, 0, 0], middle, rtol=1e-5)


def test_volumes():
    x = RNG.normal(size=(1, 2, 3, 2, 1)).astype(np.float32)
    body = """R.image.resize3d(x, (2, 4, 1), layout="NDHWC", method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric")"""
    result = result_of('x: R.Tensor((1, 2, 3, 2, 1), "float32")', body, x)
    np.testing.assert_array_equal(result, x[:, :, [0, 0, 1, 2]][:, :, :, [0]])


def test_statistics_of_a_batch():
    x = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    v = np.array([1, 2, 0.5], np.float32)
    head = 'x: R.Tensor(("n", 3, 2), "float32"), v: R.Tensor((3,), "float32")'
    normal, mean, variance = result_of(head, "R.nn.batch_norm(x, v, v, v, v, axis=1, momentum=0.25)", x, v)
    means, variances = x.mean((0, 2)), x.var((0, 2))
    expected = (x - means[:, None]) / np.sqrt(variances[:, None] + 1e-5) * v[:, None] + v[:, None]
    np.testing.assert_allclose(normal, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose([mean, variance], [0.75 * v + 0.25 * means, 0.75 * v + 0.25 * variances], rtol=1e-5)


def test_normalisation_without_factors():
    x, v = RNG.normal(size=(2, 4, 3)).astype(np.float32), np.array([1, 2, 0.5, 3], np.float32)
    head = 'x: R.Tensor(("n", 4, 3), "float32"), v: R.Tensor((4,), "float32")'
    body = """(R.nn.group_norm(x, v, v, num_groups=2, channel_axis=1, axes=[2], center=False),
        R.nn.instance_norm(x, v, v, channel_axis=1, axes=[2], scale=False))"""
    scaled, shifted = result_of(head, body, x, v)
    groups = x.reshape(2, 2, 6)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(scaled, normal.reshape(x.shape) * v[:, None], rtol=1e-4, atol=1e-5)
    normal = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(shifted, normal + v[:, None], rtol=1e-4, atol=1e-5)


def test_median():
    x = RNG.integers(0, 9, size=(4, 3)).astype(np.int64)
    head, body = 'x: R.Tensor(("n", 3), "int64")', "(R.median(x, axis=0), R.median(x), R.median(x, 1, True))"
    (along, places), alone, (kept, _) = result_of(head, body, x)
    np.testing.assert_array_equal(along, np.sort(x, 0)[1])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places)[None], 0)[0], along)
    np.testing.assert_array_equal(alone, np.sort(x.ravel())[5])
    np.testing.assert_array_equal(kept, np.median(x, 1, keepdims=True))


def test_likelihood():
    p = RNG.normal(size=(3, 4, 2)).astype(np.float32)
    t, w = np.array([[0, 3], [-1, 2], [1, 1]]), np.array([1, 2, 0.5, 4], np.float32)
    head = 'p: R.Tensor(("n", 4, 2), "float32"), t: R.Tensor(("n", 2), "int64"), w: R.Tensor((4,), "float32")'
    body = """(R.nn.nll_loss(p, t, w, ignore_index=-1), R.nn.nll_loss(p, t, w, reduction="sum", ignore_index=-1),
        R.nn.nll_loss(p, t, reduction="none", ignore_index=-1))"""
    weight = np.where(t == -1, 0, w[t])
    picked = -np.take_along_axis(p, np.maximum(t, 0)[:, None], 1)[:, 0]
    mean, total, each = result_of(head, body, p, t, w)
    np.testing.assert_allclose([mean, total], (picked * weight).sum() / np.array([weight.sum(), 1]), rtol=1e-5)
    np.testing.assert_allclose(each, np.where(t == -1, 0, picked), rtol=1e-6)


def test_gradients():
    """Of losses and lookups; marks for checkpoints say nothing here."""
    p = RNG.normal(size=(3, 4, 2)).astype(np.float32)
    t, w = np.array([[0, 3], [-1, 2], [1, 1]]), np.array([1, 2, 0.5, 4], np.float32)
    g, places = RNG.normal(size=(3, 2)).astype(np.float32), np.array([[2, 0], [2, 3]])
    head = """p: R.Tensor(("n", 4, 2), "float32"), t: R.Tensor(("n", 2), "int64"), w: R.Tensor((4,), "float32"),
        g: R.Tensor(("n", 2), "float32"), i: R.Tensor((2, 2), "int64")"""
    body = """(R.grad.nll_loss_backward(R.const(2.0, "float32"), p, t, w, "mean", -1),
        R.grad.nll_loss_backward(R.grad.start_checkpoint(g), p, t, reduction="none", ignore_index=-1),
        R.grad.take_backward(R.take(R.grad.no_grad(p), i, axis=1), p, i, axis=1),
        R.grad.take_backward(R.grad.end_checkpoint(input=R.take(w, i)), w, i), R.multiply(t > 0, t < 3))"""
    mean, each, taken, of_vector, both = result_of(head, body, p, t, w, g, places)
    hot = np.eye(4, dtype=np.float32)[np.maximum(t, 0)].swapaxes(1, 2) * (t != -1)[:, None]
    weight = np.where(t == -1, 0, w[t])
    np.testing.assert_allclose(mean, -2 * hot * weight[:, None] / weight.sum(), rtol=1e-5)
    np.testing.assert_allclose(each, -hot * g[:, None], rtol=1e-6)
    often = np.array([1, 0, 2, 1], np.float32)
    np.testing.assert_allclose(taken, p * often[:, None], rtol=1e-6)
    np.testing.assert_allclose(of_vector, w * often, rtol=1e-6)
    np.testing.assert_array_equal(both, (t > 0) & (t < 3))


def test_gradients_of_pooling():
    """With TVM's order of arguments: the gradient comes first."""
    x, g = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), RNG.normal(size=(1, 1, 2, 2)).astype(np.float32)
    head = 'g: R.Tensor((1, 1, 2, 2), "float32"), x: R.Tensor((1, 1, "n", "n"), "float32")'
    body = """(R.grad.max_pool2d_backward(g, x, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, False, "NCHW"),
        R.grad.avg_pool2d_backward(output_grad=g, data=x, pool_size=(2, 2), strides=(2, 2), layout="NCHW"))"""
    greatest, mean = result_of(head, body, g, x)
    expected = np.zeros_like(x)
    expected[:, :, 1::2, 1::2] = g
    np.testing.assert_array_equal(greatest, expected)
    np.testing.assert_array_equal(mean, g.repeat(2, 2).repeat(2, 3) / 4)


def test_what_the_head_of_a_tensor_says():
    """Its type, or the tensor where that leaves a size open."""
    x, y = np.zeros((3, 4), np.uint8), np.zeros(5, np.float32)
    head = 'x: R.Tensor(("n", 4), "uint8"), y: R.Tensor'
    facts = "ndim(x) dtype_code(x) dtype_bits(x) dtype_lanes(x) stride_i(x,0) shape_i(x,0) shape_i(x,1) shape_i(y,0)"
    names = [f"R.inspect.tensor_{each}" for each in (facts + " byte_offset(x) elem_offset(x)").split()]
    assert [int(each) for each in result_of(head, f"({', '.join(names)})", x, y)] == [2, 1, 8, 1, 4, 3, 4, 5, 0, 0]


def test_cross_entropy_and_open_lengths():
    x, y = (RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
    head = 'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")'
    body = """(R.nn.cross_entropy_with_logits(x, y), R.nn.cross_entropy_with_logits(R.flatten(x), R.flatten(y)),
        R.reshape(x, (2, -1)), R.reshape(y, (0, 2, -1)))"""
    mean, total, flat, split = result_of(head, body, x, y)
    np.testing.assert_allclose([mean * 3, total], [-(x * y).sum()] * 2, rtol=1e-5)
    np.testing.assert_array_equal(flat, x.reshape(2, 6))
    np.testing.assert_array_equal(split, y.reshape(3, 2, 2))


ERRORS = {
    "R.inspect.tensor_shape_i(x, 7)": ("axis 7 is out of range", 40),
    "R.nn.nll_loss(x, x, reduction='all')": ("expected mean, sum or none, got all", 42),
    "R.vision.roi_pool(x, x, (1, 2, 3), 1.0)": ("expected 2 lengths", 36),
    "R.vision.roi_pool(x, x, 2, 1.0, 'CHW')": ("expected the layout NCHW or NHWC", 44),
    "R.image.resize3d(x, 2, layout='NDH')": ("expected a layout of N, C, D, H and W", 42),
}


@pytest.mark.parametrize("call", ERRORS)
def test_wrong_arguments(call: str):
    message, column = ERRORS[call]
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(f'@R.function\ndef f(x: R.Tensor(("n", 4), "float32")):\n    return {call}\n')
    assert (caught.value.line, caught.value.column) == (3, column)
