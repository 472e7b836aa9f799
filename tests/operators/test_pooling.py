"""Pooling against windows written out, in every mode."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, wide


@dataclass(frozen=True)
class Case:
    """Windows; numbers are one per spatial dimension, padding two."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False
    include: bool = False

    def body(self, kind: str) -> str:
        lists = {"pool_size": self.sizes, "strides": self.strides, "padding": self.padding, "dilation": self.dilation}
        text = " ".join(f"{name} = [{', '.join(map(str, values))}]" for name, values in lists.items())
        flags = " ceil_mode" * self.ceil + " count_include_pad" * self.include
        return f"relax.nn.{kind}_pool{len(self.sizes)}d %x {text}{flags}"


CASES: dict[str, Case] = {
    "line": Case((2,), (2,), (0, 0), (1,)),
    "line_padded": Case((3,), (2,), (1, 1), (1,)),
    "line_ceil": Case((3,), (2,), (1, 0), (1,), ceil=True),
    "line_included": Case((3,), (2,), (1, 1), (1,), ceil=True, include=True),
    "line_apart": Case((2,), (1,), (2, 1), (3,)),
    "plane": Case((2, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    "plane_all": Case((3, 2), (2, 3), (1, 0, 1, 1), (1, 2), ceil=True),
    "plane_included": Case((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), include=True),
    "space": Case((2, 2, 1), (2, 1, 1), (1, 0, 0, 0, 1, 0), (1, 1, 1), include=True),
}
BLOCKED = ("plane", "plane_all", "plane_included")
SHAPES = {1: ((0, 3, 7), (1, 1, 4), (2, 3, 9)), 2: ((1, 0, 5, 6), (1, 1, 4, 5), (2, 3, 7, 8)), 3: ((1, 2, 3, 2, 4),)}

RUNS = [(name, shape) for name, case in CASES.items() for shape in SHAPES[len(case.sizes)]]


def _params(rank: int, dtype: str = "f32") -> str:
    return f"%x: !relax.tensor<[{', '.join(['n', 'c', *'hwd'[:rank]])}], {dtype}>"


PROGRAMS = Programs(
    {
        **{
            f"{kind}_{name}": (_params(len(case.sizes)), case.body(kind))
            for name, case in CASES.items()
            for kind in ("max", "avg")
        },
        **{
            f"blocked_{kind}_{name}": (
                "%x: !relax.tensor<[n, c, h, w, 4], f32>",
                CASES[name].body(kind) + ' layout = "NCHW4c"',
            )
            for name in BLOCKED
            for kind in ("max", "avg")
        },
        **{
            f"{kind}_{dtype}": (_params(1, dtype), CASES["line_padded"].body(kind))
            for kind in ("max", "avg")
            for dtype in ("bf16", "f64", "i8", "i32")
        },
        **{
            f"{kind}_sized": (
                "%x: !relax.tensor<[n, c, h], f32>",
                f"relax.nn.{kind}_pool1d %x pool_size = [n + 1] strides = [2] padding = [1, 1] ceil_mode",
            )
            for kind in ("max", "avg")
        },
        "last": (
            "%x: !relax.tensor<[n, h, w, c], f32>",
            'relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NHWC" out_layout = "NCHW"',
        ),
        **{
            f"adaptive_{rank}": (_params(rank), f"relax.nn.adaptive_avg_pool{rank}d %x output_size = {sizes}")
            for rank, sizes in {1: "[3]", 2: "[2, 1]", 3: "[1, 1, 2]"}.items()
        },
        "blocks_made": (
            "%x: !relax.tensor<[n, 2, h, w, 4], f32>",
            'relax.nn.adaptive_avg_pool2d %x output_size = [1, 3] layout = "NCHW4c" out_layout = "NHWC"',
        ),
        "adaptive_even": ("%x: !relax.tensor<[n, c, 6], f32>", "relax.nn.adaptive_avg_pool1d %x output_size = [3]"),
        "adaptive_sized": (_params(1), "relax.nn.adaptive_avg_pool1d %x output_size = [n + 1]"),
        "adaptive_i32": (_params(1, "i32"), "relax.nn.adaptive_avg_pool1d %x output_size = [2]"),
        "global": (
            "%x: !relax.tensor<[n, h, w, c], f32>",
            'relax.nn.adaptive_avg_pool2d %x output_size = [1, 1] layout = "NHWC"',
        ),
    }
)
NEAR = Tolerance(1e-5, 1e-5)


def _counts(case: Case, lengths: tuple[int, ...]) -> list[int]:
    counts = []
    for axis, length in enumerate(lengths):
        low, high = case.padding[axis], case.padding[axis + len(lengths)]
        room = length + low + high - case.dilation[axis] * (case.sizes[axis] - 1) - 1
        count = (-(-room // case.strides[axis]) if case.ceil else room // case.strides[axis]) + 1
        # The last window does not start after the data.
        while case.ceil and (count - 1) * case.strides[axis] >= length + low:
            count -= 1
        counts.append(count)
    return counts


def _pool(case: Case, x: np.ndarray, kind: str) -> np.ndarray:
    lengths, rank = x.shape[2:], len(case.sizes)
    counts = _counts(case, lengths)
    result = np.zeros((*x.shape[:2], *counts))
    for at in np.ndindex(*counts):
        found, counted = [], 0
        for k in np.ndindex(*case.sizes):
            place = tuple(
                a * s + b * d - p
                for a, s, b, d, p in zip(at, case.strides, k, case.dilation, case.padding[:rank], strict=True)
            )
            inside = all(0 <= each < length for each, length in zip(place, lengths, strict=True))
            ends = [length + after for length, after in zip(lengths, case.padding[rank:], strict=True)]
            counted += all(each < end for each, end in zip(place, ends, strict=True)) if case.include else inside
            if inside:
                found.append(x[(slice(None), slice(None), *place)])
        window = (slice(None), slice(None), *at)
        if kind == "max":
            result[window] = np.max(found, 0) if found else -np.inf
        else:
            result[window] = np.sum(found, 0) / max(counted, 1)
    return result


@pytest.mark.parametrize(("name", "shape"), RUNS)
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pool(kind: str, name: str, shape: tuple[int, ...]):
    x = random("f32", *shape)
    PROGRAMS.check(f"{kind}_{name}", [x], _pool(CASES[name], wide(x), kind).astype(np.float32), NEAR)


@pytest.mark.parametrize("shape", SHAPES[2])
@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_blocks_of_channels(kind: str, name: str, shape: tuple[int, int, int, int]):
    """Each position in a block is a channel."""
    x = random("f32", *shape, 4)
    channels = np.moveaxis(x, -1, 2).reshape(shape[0], 4 * shape[1], *shape[2:])
    pooled = _pool(CASES[name], wide(channels), kind).astype(np.float32)
    expected = np.moveaxis(pooled.reshape(*shape[:2], 4, *pooled.shape[2:]), 2, -1)
    PROGRAMS.check(f"blocked_{kind}_{name}", [x], np.ascontiguousarray(expected), NEAR)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dtype", ["bf16", "f64", "i8", "i32"])
def test_other_dtypes(kind: str, dtype: str):
    x = random(dtype, 2, 3, 9, low=-100, high=100)
    expected = _pool(CASES["line_padded"], x.astype(np.float64), kind)
    PROGRAMS.check(f"{kind}_{dtype}", [x], (np.trunc(expected) if dtype[0] == "i" else expected).astype(DTYPES[dtype]))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_sizes_that_are_dimensions(kind: str):
    x = random("f32", 2, 3, 8)
    expected = _pool(Case((3,), (2,), (1, 1), (1,), ceil=True), wide(x), kind).astype(np.float32)
    PROGRAMS.check(f"{kind}_sized", [x], expected, NEAR)


def test_layouts_and_values_that_are_no_numbers():
    x = random("f32", 2, 4, 5, 3)
    x[0, 1, 1, 0] = np.nan
    parts = [x[:, i : i + 3, j : j + 4] for i in range(2) for j in range(2)]
    PROGRAMS.check("last", [x], np.max(parts, 0).transpose(0, 3, 1, 2).copy())
    PROGRAMS.check("global", [x], x.mean((1, 2), keepdims=True), NEAR)


def _adaptive(x: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    result = np.zeros((*x.shape[:2], *counts))
    for at in np.ndindex(*counts):
        cut = [slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, x.shape[2:], counts, strict=True)]
        result[(slice(None), slice(None), *at)] = x[(slice(None), slice(None), *cut)].mean(tuple(range(2, x.ndim)))
    return result


@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 1, 1), (2, 3, 7), (2, 1, 9)])
def test_adaptive(shape: tuple[int, int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("adaptive_1", [x], _adaptive(wide(x), (3,)).astype(np.float32), NEAR)
    y = random("f32", *shape, 4, seed=1)
    PROGRAMS.check("adaptive_2", [y], _adaptive(wide(y), (2, 1)).astype(np.float32), NEAR)
    z = random("f32", *shape, 4, 3, seed=2)
    PROGRAMS.check("adaptive_3", [z], _adaptive(wide(z), (1, 1, 2)).astype(np.float32), NEAR)
    sized = _adaptive(wide(x), (shape[0] + 1,)).astype(np.float32)
    PROGRAMS.check("adaptive_sized", [x], sized, NEAR)
    even = random("f32", *shape[:2], 6)
    PROGRAMS.check("adaptive_even", [even], even.reshape(*shape[:2], 3, 2).mean(-1), NEAR)
    blocks = random("f32", shape[0], 2, *shape[2:], 5, 4)
    channels = np.moveaxis(blocks, -1, 2).reshape(shape[0], 8, shape[2], 5)
    expected = _adaptive(wide(channels), (1, 3)).transpose(0, 2, 3, 1)
    PROGRAMS.check("blocks_made", [blocks], np.ascontiguousarray(expected, np.float32), NEAR)
    integers = random("i32", *shape, low=-9, high=9)
    expected = np.trunc(_adaptive(integers.astype(np.float64), (2,))).astype(np.int32)
    PROGRAMS.check("adaptive_i32", [integers], expected)


@pytest.mark.parametrize("mode", MODES)
def test_windows_that_do_not_fit(mode: str):
    with pytest.raises(ValueError, match="a window within the padded data"):
        PROGRAMS.runners[mode]("max_plane")(random("f32", 1, 1, 1, 5))


@dataclass(frozen=True)
class GradientCase:
    """Windows over two dimensions; the padding is two numbers before and two after."""

    sizes: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    flags: str = ""

    def body(self, kind: str, more: str = "") -> str:
        lists = {"pool_size": self.sizes, "strides": self.strides, "padding": self.padding, "dilation": self.dilation}
        text = " ".join(f"{name} = [{', '.join(map(str, values))}]" for name, values in lists.items())
        return f"relax.grad.{kind}_pool2d_backward %x, %g {text} {self.flags}{more}"

    def starts(self, axis: int, count: int) -> range:
        """The first positions of so many windows."""
        return range(-self.padding[axis], -self.padding[axis] + count * self.strides[axis], self.strides[axis])


GRADIENTS_CASES: dict[str, tuple[GradientCase, tuple[int, int, int, int], tuple[int, int]]] = {
    "apart": (GradientCase((2, 3), (2, 3)), (2, 3, 6, 6), (3, 2)),
    "over": (GradientCase((3, 2)), (1, 2, 4, 5), (2, 4)),
    "padded": (GradientCase((3, 3), (2, 1), (1, 0, 1, 2), (1, 2)), (2, 1, 5, 6), (3, 4)),
    "ceil": (GradientCase((3, 2), (2, 3), (1, 0, 0, 1), (1, 1), "ceil_mode"), (1, 3, 6, 5), (3, 2)),
    "counted": (
        GradientCase((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), "ceil_mode count_include_pad"),
        (2, 2, 4, 4),
        (3, 3),
    ),
    "empty": (GradientCase((2, 2), (2, 2)), (0, 2, 4, 4), (2, 2)),
    # the first window is in the padding as a whole
    "outside": (GradientCase((1, 1), (2, 2), (1, 1, 0, 0)), (1, 1, 3, 3), (2, 2)),
}
KINDS = ("max", "avg")
PARAMETERS = "%x: !relax.tensor<[n, c, h, w], {0}>, %g: !relax.tensor<[n, c, p, q], {0}>"
GRADIENTS_PROGRAMS = Programs(
    {
        **{
            f"{kind}_{name}": (PARAMETERS.format("f32"), GRADIENTS_CASES[name][0].body(kind))
            for name in GRADIENTS_CASES
            for kind in KINDS
        },
        **{
            f"{kind}_{dtype}": (PARAMETERS.format(dtype), GRADIENTS_CASES["padded"][0].body(kind))
            for kind in KINDS
            for dtype in ("bf16", "f16", "f64")
        },
        **{
            f"{kind}_laid": (
                "%x: !relax.tensor<[n, h, w, c], f32>, %g: !relax.tensor<[n, k, p, q, 2], f32>",
                GRADIENTS_CASES["padded"][0].body(kind, 'layout = "NHWC" out_layout = "NCHW2c"'),
            )
            for kind in KINDS
        },
        **{
            f"{kind}_sized": (
                PARAMETERS.format("f32"),
                f"relax.grad.{kind}_pool2d_backward %x, %g pool_size = [n + 1, 2] padding = [1, 0, 1, 0]",
            )
            for kind in KINDS
        },
    }
)


def _gradient(kind: str, case: GradientCase, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Each window by itself."""
    result, sizes = np.zeros(x.shape), x.shape[2:]
    for n, c, *window in np.ndindex(*g.shape):
        starts = [case.starts(axis, g.shape[2 + axis])[at] for axis, at in enumerate(window)]
        places = [
            tuple(start + step * d for start, step, d in zip(starts, k, case.dilation, strict=True))
            for k in np.ndindex(*case.sizes)
        ]
        inside = [place for place in places if all(0 <= at < size for at, size in zip(place, sizes, strict=True))]
        ends = [size + after for size, after in zip(sizes, case.padding[2:], strict=True)]
        counted = [place for place in places if all(at < end for at, end in zip(place, ends, strict=True))]
        divisor = len(counted if "include" in case.flags else inside)
        value = g[(n, c, *window)]
        if kind == "avg":
            for place in inside:
                result[(n, c, *place)] += value / divisor
        elif inside:
            result[(n, c, *inside[int(np.argmax([x[(n, c, *place)] for place in inside]))])] += value
    return result


@pytest.mark.parametrize("name", GRADIENTS_CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient(kind: str, name: str):
    """The data has ties: the first of equal elements counts."""
    case, shape, counts = GRADIENTS_CASES[name]
    x, g = np.round(random("f32", *shape)), random("f32", *shape[:2], *counts, seed=1)
    GRADIENTS_PROGRAMS.check(f"{kind}_{name}", [x, g], _gradient(kind, case, wide(x), wide(g)).astype(np.float32), NEAR)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_dtypes_of_gradients(kind: str, dtype: str):
    case, shape, counts = GRADIENTS_CASES["padded"]
    x, g = random(dtype, *shape), random(dtype, *shape[:2], *counts, seed=1)
    expected = _gradient(kind, case, x.astype(np.float64), g.astype(np.float64))
    GRADIENTS_PROGRAMS.check(f"{kind}_{dtype}", [x, g], expected.astype(DTYPES[dtype]))


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(kind: str):
    case = GRADIENTS_CASES["padded"][0]
    x, g = random("f32", 2, 4, 5, 6), random("f32", 2, 4, 3, 4, seed=1)
    expected = _gradient(kind, case, wide(x), wide(g)).astype(np.float32).transpose(0, 2, 3, 1)
    blocks = np.moveaxis(g.reshape(2, 2, 2, 3, 4), 2, -1)
    args = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(blocks)]
    GRADIENTS_PROGRAMS.check(f"{kind}_laid", args, np.ascontiguousarray(expected), NEAR)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_are_dimensions_of_gradients(kind: str):
    x, g = random("f32", 2, 3, 4, 5), random("f32", 2, 3, 4, 4, seed=1)
    expected = _gradient(kind, GradientCase((3, 2), padding=(1, 0, 1, 0)), wide(x), wide(g)).astype(np.float32)
    GRADIENTS_PROGRAMS.check(f"{kind}_sized", [x, g], expected, NEAR)


def test_values_that_are_no_numbers():
    """NaN is greater than all numbers; windows of minus infinity have a greatest element too."""
    x, g = np.full((1, 1, 6, 6), -np.inf, np.float32), random("f32", 1, 1, 3, 2, seed=1)
    x[0, 0, 1, 1] = x[0, 0, 1, 2] = np.nan
    GRADIENTS_PROGRAMS.check(
        "max_apart", [x, g], _gradient("max", GRADIENTS_CASES["apart"][0], x, g).astype(np.float32), NEAR
    )


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_another_shape(mode: str):
    with pytest.raises(ValueError, match="a gradient with the shape of the pooling's result"):
        GRADIENTS_PROGRAMS.runners[mode]("max_apart")(random("f32", 1, 1, 6, 6), random("f32", 1, 1, 3, 3))
