"""Constants that a thread computes: shapes are known at once, elements when they are asked for."""

import multiprocessing
import threading

import numpy as np
import pytest

from lowering.relax.layout.pack_weights import PanelLayout, pack
from relax_dialect.interpreter.manipulation import relaid, relaid_shape
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.values import ConstantOp
from tir_dialect import weights as weights_module
from tir_dialect.weights import LazyArray, WeightAttr, array_of, computed, tensor_attr

LARGE = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)


def test_a_constant_has_its_type_before_its_elements() -> None:
    begin = threading.Event()

    def scaled(array: np.ndarray) -> np.ndarray:
        assert begin.wait(60)
        return 2 * array

    twice = computed(scaled, LARGE, LARGE.shape, LARGE.dtype)
    turned = computed(lambda array: array.T[:128].copy(), twice, (128, 256), LARGE.dtype)
    constant = ConstantOp(tensor_attr(turned, "w.turned"))
    constant.verify()
    assert str(constant.result.type) == "!relax.tensor<[128, 256], f32>"
    assert constant.sources is turned
    assert isinstance(turned, LazyArray)
    assert (turned.ndim, turned.size, turned.nbytes) == (2, 128 * 256, 4 * 128 * 256)
    assert not begin.is_set()
    begin.set()
    np.testing.assert_array_equal(constant.array, 2 * LARGE.T[:128])


def test_weights_are_equal_if_they_are_the_same_computation() -> None:
    first, second = (computed(np.copy, LARGE, LARGE.shape, LARGE.dtype) for _ in range(2))
    assert WeightAttr("w", first) == WeightAttr("w", first)
    assert WeightAttr("w", first) != WeightAttr("w", second)
    assert WeightAttr("w", first) != WeightAttr("v", first)


def test_small_arrays_and_one_processor_have_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    small = LARGE[:2]
    assert isinstance(computed(np.copy, small, small.shape, small.dtype), np.ndarray)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    assert isinstance(computed(np.copy, LARGE, LARGE.shape, LARGE.dtype), np.ndarray)


def test_errors_come_when_elements_are_asked_for() -> None:
    def fails(array: np.ndarray) -> np.ndarray:
        raise MemoryError("no room")

    made = computed(fails, LARGE, LARGE.shape, LARGE.dtype)
    with pytest.raises(MemoryError, match="no room"):
        array_of(made)


def test_content_names_wait_for_the_elements() -> None:
    made = computed(np.copy, LARGE, LARGE.shape, LARGE.dtype)
    assert tensor_attr(made) == tensor_attr(array_of(made))
    assert tensor_attr(made).data.name == tensor_attr(LARGE).data.name


def _compute() -> None:
    made = computed(lambda array: array + 1, LARGE, LARGE.shape, LARGE.dtype)
    assert isinstance(made, LazyArray)
    np.testing.assert_array_equal(made.get(), LARGE + 1)


def test_a_fork_has_a_thread_of_its_own() -> None:
    _compute()
    before = dict(weights_module._executors)
    child = multiprocessing.get_context("fork").Process(target=_compute)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert weights_module._executors == before


def test_a_fork_computes_what_its_parent_has_begun() -> None:
    """The parent's thread, which is not in the fork, has not come to it yet."""
    wait = threading.Event()
    first = computed(lambda array: array * wait.wait(60), LARGE, LARGE.shape, LARGE.dtype)
    made = computed(lambda array: array + 1, LARGE, LARGE.shape, LARGE.dtype)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: np.testing.assert_array_equal(array_of(made), LARGE + 1)
    )
    child.start()
    child.join(30)
    wait.set()
    assert child.exitcode == 0
    np.testing.assert_array_equal(array_of(first), LARGE)


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("OIHW", "OIHW8i16o", (40, 24, 3, 5)),
        ("OIHW", "OIHW16o", (33, 1, 3, 3)),
        ("NCHW", "NCHW16c", (2, 20, 3, 4)),
        ("NCHW", "NHWC", (2, 20, 3, 4)),
        ("NCHW4c", "NCHW", (2, 5, 3, 4, 4)),
        ("CHW", "CHW8c", (8, 2, 2)),
    ],
)
def test_the_shape_of_another_layout(source: str, target: str, shape: tuple[int, ...]) -> None:
    dims = Layout(source).dims, Layout(target).dims
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    made = relaid(x, *dims)
    assert made.shape == relaid_shape(shape, *dims)
    back = relaid(made, *reversed(dims))
    np.testing.assert_array_equal(back[tuple(map(slice, shape))], x)
    assert back.sum() == x.sum()  # what blocks have beyond the end is 0


@pytest.mark.parametrize("shape", [(64, 100), (3, 64, 32), (64, 1, 96)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("parts", [1, 4])
def test_the_shape_of_panels(shape: tuple[int, ...], transposed: bool, parts: int) -> None:
    layout = PanelLayout(32, transposed, parts)
    assert pack(np.ones(shape, np.int8), layout).shape == layout.packed_shape(shape)
