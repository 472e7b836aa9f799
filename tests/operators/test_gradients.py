"""Gradients of pooling against windows written out, in every mode."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, wide


@dataclass(frozen=True)
class Case:
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


CASES: dict[str, tuple[Case, tuple[int, int, int, int], tuple[int, int]]] = {
    "apart": (Case((2, 3), (2, 3)), (2, 3, 6, 6), (3, 2)),
    "over": (Case((3, 2)), (1, 2, 4, 5), (2, 4)),
    "padded": (Case((3, 3), (2, 1), (1, 0, 1, 2), (1, 2)), (2, 1, 5, 6), (3, 4)),
    "ceil": (Case((3, 2), (2, 3), (1, 0, 0, 1), (1, 1), "ceil_mode"), (1, 3, 6, 5), (3, 2)),
    "counted": (Case((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), "ceil_mode count_include_pad"), (2, 2, 4, 4), (3, 3)),
    "empty": (Case((2, 2), (2, 2)), (0, 2, 4, 4), (2, 2)),
    # the first window is in the padding as a whole
    "outside": (Case((1, 1), (2, 2), (1, 1, 0, 0)), (1, 1, 3, 3), (2, 2)),
}
KINDS = ("max", "avg")
PARAMETERS = "%x: !relax.tensor<[n, c, h, w], {0}>, %g: !relax.tensor<[n, c, p, q], {0}>"
PROGRAMS = Programs(
    {
        **{f"{kind}_{name}": (PARAMETERS.format("f32"), CASES[name][0].body(kind)) for name in CASES for kind in KINDS},
        **{
            f"{kind}_{dtype}": (PARAMETERS.format(dtype), CASES["padded"][0].body(kind))
            for kind in KINDS
            for dtype in ("bf16", "f16", "f64")
        },
        **{
            f"{kind}_laid": (
                "%x: !relax.tensor<[n, h, w, c], f32>, %g: !relax.tensor<[n, k, p, q, 2], f32>",
                CASES["padded"][0].body(kind, 'layout = "NHWC" out_layout = "NCHW2c"'),
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
NEAR = Tolerance(1e-5, 1e-5)


def _gradient(kind: str, case: Case, x: np.ndarray, g: np.ndarray) -> np.ndarray:
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


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient(kind: str, name: str):
    """The data has ties: the first of equal elements counts."""
    case, shape, counts = CASES[name]
    x, g = np.round(random("f32", *shape)), random("f32", *shape[:2], *counts, seed=1)
    PROGRAMS.check(f"{kind}_{name}", [x, g], _gradient(kind, case, wide(x), wide(g)).astype(np.float32), NEAR)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_dtypes(kind: str, dtype: str):
    case, shape, counts = CASES["padded"]
    x, g = random(dtype, *shape), random(dtype, *shape[:2], *counts, seed=1)
    expected = _gradient(kind, case, x.astype(np.float64), g.astype(np.float64))
    PROGRAMS.check(f"{kind}_{dtype}", [x, g], expected.astype(DTYPES[dtype]))


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(kind: str):
    case = CASES["padded"][0]
    x, g = random("f32", 2, 4, 5, 6), random("f32", 2, 4, 3, 4, seed=1)
    expected = _gradient(kind, case, wide(x), wide(g)).astype(np.float32).transpose(0, 2, 3, 1)
    blocks = np.moveaxis(g.reshape(2, 2, 2, 3, 4), 2, -1)
    args = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(blocks)]
    PROGRAMS.check(f"{kind}_laid", args, np.ascontiguousarray(expected), NEAR)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_are_dimensions(kind: str):
    x, g = random("f32", 2, 3, 4, 5), random("f32", 2, 3, 4, 4, seed=1)
    expected = _gradient(kind, Case((3, 2), padding=(1, 0, 1, 0)), wide(x), wide(g)).astype(np.float32)
    PROGRAMS.check(f"{kind}_sized", [x, g], expected, NEAR)


def test_values_that_are_no_numbers():
    """NaN is greater than all numbers; windows of minus infinity have a greatest element too."""
    x, g = np.full((1, 1, 6, 6), -np.inf, np.float32), random("f32", 1, 1, 3, 2, seed=1)
    x[0, 0, 1, 1] = x[0, 0, 1, 2] = np.nan
    PROGRAMS.check("max_apart", [x, g], _gradient("max", CASES["apart"][0], x, g).astype(np.float32), NEAR)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_another_shape(mode: str):
    with pytest.raises(ValueError, match="a gradient with the shape of the pooling's result"):
        PROGRAMS.runners[mode]("max_apart")(random("f32", 1, 1, 6, 6), random("f32", 1, 1, 3, 3))
