"""Tensors made from a shape or a rule, against NumPy, in every mode."""

from typing import Any

import numpy as np
import pytest
import tvm_ffi

from relax_dialect.ops.creation import philox
from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random

ALL = tuple(DTYPES)
MATRIX = "%x: !relax.tensor<[n, m], f32>"
SHAPE = "%s: !relax.shape<[n, 3]>"
START = "%start: !relax.prim<{0}>, %stop: !relax.prim<{0}>, %step: !relax.prim<{0}>"
ARANGE = "relax.arange %start, %stop, %step"


def _arange(start: str, stop: str, step: str) -> str:
    return f"%start = relax.prim {start}; %stop = relax.prim {stop}; %step = relax.prim {step}; {ARANGE}"


PROGRAMS = Programs(
    {
        **{f"ones_{dtype}": (SHAPE, f"relax.ones %s dtype = {dtype}") for dtype in ALL},
        "zeros": ("%s: !relax.shape<[_, _]>", "relax.zeros %s dtype = f32"),
        "full": (f"{SHAPE}, %v: !relax.prim<f32>", "relax.full %s, %v"),
        "full_cast": (f"{SHAPE}, %v: !relax.prim<f64>", "relax.full %s, %v dtype = i32"),
        "full_tensor": (f"{SHAPE}, %v: !relax.tensor<[], i64>", "relax.full %s, %v"),
        "full_constant": (SHAPE, "%v = relax.prim f32 2.5; relax.full %s, %v"),
        "full_dim": (SHAPE, "%v = relax.prim 2 * n + 1; relax.full %s, %v"),
        "full_like": (f"{MATRIX}, %v: !relax.prim<i64>", "relax.full_like %x, %v"),
        "zeros_like": (MATRIX, "relax.zeros_like %x"),
        "ones_like": (MATRIX, "relax.ones_like %x dtype = i8"),
        "arange_dims": (
            "%x: !relax.tensor<[n], f32>",
            _arange("1", "2 * n", "3"),
        ),
        "arange_down": (
            "%x: !relax.tensor<[n], f32>",
            _arange("n", "-2", "-2") + " dtype = f32",
        ),
        "arange_i64": (START.format("i64"), ARANGE),
        "arange_i32": (START.format("i32"), f"{ARANGE} dtype = f16"),
        "arange_f32": (START.format("f32"), ARANGE),
        "tril": (MATRIX, "relax.tril %x"),
        "triu": ("%x: !relax.tensor<[_, n, m], i32>", "relax.triu %x k = -1"),
        "tril_symbolic": (f"{MATRIX}, %at: !relax.prim<i64, k>", "relax.tril %x k = k - n"),
        "eye": ("%x: !relax.tensor<[n], f32>", "relax.eye rows = n columns = 2 * n + 1 k = -1 dtype = f32"),
        "eye_short": ("%x: !relax.tensor<[n], f32>", "relax.eye rows = 2 columns = n - 1 dtype = f32"),
        "joined": (
            "%x: !relax.tensor<[3], f32>, %count: !relax.prim<i64, k>",
            "%v = relax.prim f32 0.5; %s = relax.shape [k - 1]; %0 = relax.full %s, %v; relax.concat %x, %0 axis = 0",
        ),
        "eye_like": (MATRIX, "relax.eye_like %x k = 1 dtype = i1"),
    }
)


@pytest.mark.parametrize("dtype", ALL)
def test_ones(dtype: str):
    for size in (0, 1, 5):
        PROGRAMS.check(f"ones_{dtype}", [_shape(size, 3)], np.ones((size, 3), DTYPES[dtype]))


def _shape(*dims: int) -> object:
    import tvm_ffi

    return tvm_ffi.Shape(dims)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_full(size: int):
    shape = _shape(size, 3)
    PROGRAMS.check("zeros", [_shape(3, size)], np.zeros((3, size), np.float32))
    PROGRAMS.check("full", [shape, 0.1], np.full((size, 3), 0.1, np.float32))
    PROGRAMS.check("full_cast", [shape, -2.75], np.full((size, 3), -2, np.int32))
    PROGRAMS.check("full_tensor", [shape, np.asarray(7)], np.full((size, 3), 7))
    PROGRAMS.check("full_constant", [shape], np.full((size, 3), 2.5, np.float32))
    PROGRAMS.check("full_dim", [shape], np.full((size, 3), 2 * size + 1))
    x = random("f32", size, 2)
    PROGRAMS.check("full_like", [x, -3], np.full_like(x, -3))
    PROGRAMS.check("zeros_like", [x], np.zeros_like(x))
    PROGRAMS.check("ones_like", [x], np.ones((size, 2), np.int8))


@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_arange_of_dimensions(size: int):
    x = random("f32", size)
    PROGRAMS.check("arange_dims", [x], np.arange(1, 2 * size, 3))
    PROGRAMS.check("arange_down", [x], np.arange(size, -2, -2, np.float32))


@pytest.mark.parametrize("bounds", [(0, 5, 1), (5, 0, 1), (-3, 10, 4), (10, -3, -4), (2, 2, 1), (7, 6, -3)])
def test_arange_of_data(bounds: tuple[int, int, int]):
    PROGRAMS.check("arange_i64", bounds, np.arange(*bounds))
    PROGRAMS.check("arange_i32", bounds, np.arange(*bounds).astype(np.float16))
    start, stop, step = (value / 4 for value in bounds)
    PROGRAMS.check("arange_f32", [start, stop, step], np.arange(start, stop, step).astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["arange_i64", "arange_i32"])
def test_arange_without_a_step(mode: str, name: str):
    with pytest.raises(ValueError, match=r"step that is not 0|dimension 0 is -1"):
        PROGRAMS.runners[mode](name)(0, 1, 0)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 7), (7, 4)])
def test_triangles(shape: tuple[int, int]):
    x = random("f32", *shape, low=1, high=4)
    PROGRAMS.check("tril", [x], np.tril(x))
    for k in (0, 2, 9):
        PROGRAMS.check("tril_symbolic", [x, k], np.tril(x, k - shape[0]))
    batch = random("i32", 2, *shape, low=1)
    PROGRAMS.check("triu", [batch], np.triu(batch, -1))
    PROGRAMS.check("eye_like", [x], np.eye(*shape, 1, np.bool_))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_eye(size: int):
    PROGRAMS.check("eye", [random("f32", size)], np.eye(size, 2 * size + 1, -1, np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_sizes_are_not_negative(mode: str):
    x = random("f32", 3)
    joined, eye = (PROGRAMS.runners[mode](name) for name in ("joined", "eye_short"))
    np.testing.assert_array_equal(joined(x, 2), [*x, np.float32(0.5)])
    np.testing.assert_array_equal(eye(x), np.eye(2))
    with pytest.raises(ValueError, match=r"a size that is not negative.* = -1"):
        joined(x, 0)  # the kernel that joins them would write beyond its result
    with pytest.raises(ValueError, match=r"eye_short: a size that is not negative.*: 0, \w+ - 1 = -1"):
        eye(x[:0])


SIGNAL_PROGRAMS = Programs(
    {
        "hann": ("%at: !relax.prim<i64, n>", "relax.cosine_window length = n coefficients = [0.5, 0.5]"),
        "hamming": (
            "%at: !relax.prim<i64, n>",
            "relax.cosine_window length = n coefficients = [0.54, 0.46] dtype = f64",
        ),
        "blackman": (
            "%at: !relax.prim<i64, n>",
            "relax.cosine_window length = n + 1 coefficients = [0.42, 0.5, 0.08] periodic",
        ),
        "flat": ("%at: !relax.prim<i64, n>", "relax.cosine_window length = n coefficients = [2.0] dtype = f16"),
    }
)


@pytest.mark.parametrize("size", [0, 2, 7, 32])
def test_windows(size: int):
    SIGNAL_PROGRAMS.check("hann", [size], np.hanning(size).astype(np.float32))
    SIGNAL_PROGRAMS.check("hamming", [size], np.hamming(size))
    SIGNAL_PROGRAMS.check("blackman", [size], np.blackman(size + 2)[:-1].astype(np.float32))
    SIGNAL_PROGRAMS.check("flat", [size], np.full(size, 2, np.float16))


def test_one_place():
    SIGNAL_PROGRAMS.check("hann", [1], np.zeros(1, np.float32))


SEED, RANDOM_SHAPE = "%seed: !relax.prim<i64>", "%s: !relax.shape<[n, 3]>"
STREAM = 0x123456789A
FLOATS = ("f16", "bf16", "f32", "f64")
RANDOM_PROGRAMS = Programs(
    {
        **{f"uniform_{d}": (f"{SEED}, {RANDOM_SHAPE}", f"relax.random.uniform %seed, %s dtype = {d}") for d in FLOATS},
        **{f"normal_{d}": (f"{SEED}, {RANDOM_SHAPE}", f"relax.random.normal %seed, %s dtype = {d}") for d in FLOATS},
        "range": (f"{SEED}, {RANDOM_SHAPE}", "relax.random.uniform %seed, %s low = -3.0 high = 5.0"),
        "moved": (f"{SEED}, {RANDOM_SHAPE}", "relax.random.normal %seed, %s mean = 4.0 scale = 0.5"),
        "unknown": (f"{SEED}, %s: !relax.shape<[_, _]>", "relax.random.uniform %seed, %s dtype = f64"),
        "stream": (f"{SEED}, {RANDOM_SHAPE}", f"relax.random.uniform %seed, %s dtype = f64 stream = {STREAM}"),
        "none": (SEED, "%s = relax.shape []; relax.random.uniform %seed, %s"),
    }
)
MASK = (1 << 32) - 1


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((MASK,) * 4, (MASK,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_words(counter: Any, key: Any, expected: str):
    """The known answers that the authors of Philox publish."""
    found = philox(tuple(map(np.uint64, counter)), tuple(map(np.uint64, key)))
    assert " ".join(f"{int(word):08x}" for word in found) == expected


def _uniform(seed: int, count: int, stream: int = 0) -> np.ndarray:
    """The numbers in `f64` by integers of Python."""
    found: list[float] = []
    for place in range(count):
        key = seed & MASK, (seed >> 32) & MASK
        high, low, *_ = (int(word) for word in philox((place, 0, stream & MASK, stream >> 32), key))
        found.append(((high >> 5 << 26) | (low >> 6)) / 2**53)
    return np.array(found)


@pytest.mark.parametrize("seed", [0, 7, -1, -(1 << 63), 0x123456789ABCDEF])
def test_uniform(seed: int):
    for size in (0, 1, 5):
        expected = _uniform(seed, 3 * size).reshape(size, 3)
        shape = tvm_ffi.Shape((size, 3))
        RANDOM_PROGRAMS.check("uniform_f64", [seed, shape], expected, Tolerance(0, 0))
        RANDOM_PROGRAMS.check("unknown", [seed, shape], expected, Tolerance(0, 0))
        RANDOM_PROGRAMS.check(
            "stream", [seed, shape], _uniform(seed, 3 * size, STREAM).reshape(size, 3), Tolerance(0, 0)
        )
        for dtype, bits in (("f32", 2**-24), ("f16", 1e-3), ("bf16", 1e-2)):
            RANDOM_PROGRAMS.check(f"uniform_{dtype}", [seed, shape], expected.astype(DTYPES[dtype]), Tolerance(0, bits))
        RANDOM_PROGRAMS.check("range", [seed, shape], (8 * expected - 3).astype(np.float32), Tolerance(0, 1e-6))
    RANDOM_PROGRAMS.check("none", [seed], _uniform(seed, 1).astype(np.float32).reshape(()), Tolerance(0, 2**-24))


def _run(mode: str, name: str, *args: Any) -> np.ndarray:
    found: Any = RANDOM_PROGRAMS.runners[mode](name)(*args)
    return np.asarray(found)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", MODES)
def test_normal(mode: str, dtype: str):
    count = 30000 if mode == "native" else 3000
    found = (
        np.asarray(RANDOM_PROGRAMS.runners[mode](f"normal_{dtype}")(5, tvm_ffi.Shape((count, 3))))
        .astype(np.float64)
        .ravel()
    )
    assert np.isfinite(found).all()
    near = 4 / np.sqrt(found.size)
    assert abs(found.mean()) < near
    assert abs(found.std() - 1) < near
    assert abs((abs(found) < 1).mean() - 0.6827) < near
    assert abs((abs(found) < 2).mean() - 0.9545) < near
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < near


@pytest.mark.parametrize("size", [0, 1, 257])
def test_normal_is_the_same_in_every_mode(size: int):
    shape = tvm_ffi.Shape((size, 3))
    for name, near in (("normal_f64", 1e-13), ("normal_f32", 1e-5)):
        RANDOM_PROGRAMS.check(
            name, [11, shape], np.asarray(RANDOM_PROGRAMS.runners["interpret"](name)(11, shape)), Tolerance(near, near)
        )
    plain = _run("interpret", "normal_f32", 11, shape)
    RANDOM_PROGRAMS.check("moved", [11, shape], 0.5 * plain + 4, Tolerance(1e-5, 1e-5))
