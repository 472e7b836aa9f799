"""Random numbers: the words of Philox, the same numbers in every mode, and how they are distributed."""

from typing import Any

import numpy as np
import pytest
import tvm_ffi

from relax_dialect.ops.creation import philox
from tests.operators.support import DTYPES, MODES, Programs, Tolerance

SEED, SHAPE = "%seed: !relax.prim<i64>", "%s: !relax.shape<[n, 3]>"
STREAM = 0x123456789A
FLOATS = ("f16", "bf16", "f32", "f64")
PROGRAMS = Programs(
    {
        **{f"uniform_{d}": (f"{SEED}, {SHAPE}", f"relax.random.uniform %seed, %s dtype = {d}") for d in FLOATS},
        **{f"normal_{d}": (f"{SEED}, {SHAPE}", f"relax.random.normal %seed, %s dtype = {d}") for d in FLOATS},
        "range": (f"{SEED}, {SHAPE}", "relax.random.uniform %seed, %s low = -3.0 high = 5.0"),
        "moved": (f"{SEED}, {SHAPE}", "relax.random.normal %seed, %s mean = 4.0 scale = 0.5"),
        "unknown": (f"{SEED}, %s: !relax.shape<[_, _]>", "relax.random.uniform %seed, %s dtype = f64"),
        "stream": (f"{SEED}, {SHAPE}", f"relax.random.uniform %seed, %s dtype = f64 stream = {STREAM}"),
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
        PROGRAMS.check("uniform_f64", [seed, shape], expected, Tolerance(0, 0))
        PROGRAMS.check("unknown", [seed, shape], expected, Tolerance(0, 0))
        PROGRAMS.check("stream", [seed, shape], _uniform(seed, 3 * size, STREAM).reshape(size, 3), Tolerance(0, 0))
        for dtype, bits in (("f32", 2**-24), ("f16", 1e-3), ("bf16", 1e-2)):
            PROGRAMS.check(f"uniform_{dtype}", [seed, shape], expected.astype(DTYPES[dtype]), Tolerance(0, bits))
        PROGRAMS.check("range", [seed, shape], (8 * expected - 3).astype(np.float32), Tolerance(0, 1e-6))
    PROGRAMS.check("none", [seed], _uniform(seed, 1).astype(np.float32).reshape(()), Tolerance(0, 2**-24))


def _run(mode: str, name: str, *args: Any) -> np.ndarray:
    found: Any = PROGRAMS.runners[mode](name)(*args)
    return np.asarray(found)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", MODES)
def test_normal(mode: str, dtype: str):
    count = 30000 if mode == "native" else 3000
    found = (
        np.asarray(PROGRAMS.runners[mode](f"normal_{dtype}")(5, tvm_ffi.Shape((count, 3)))).astype(np.float64).ravel()
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
        PROGRAMS.check(
            name, [11, shape], np.asarray(PROGRAMS.runners["interpret"](name)(11, shape)), Tolerance(near, near)
        )
    plain = _run("interpret", "normal_f32", 11, shape)
    PROGRAMS.check("moved", [11, shape], 0.5 * plain + 4, Tolerance(1e-5, 1e-5))
