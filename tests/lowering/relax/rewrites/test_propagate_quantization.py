"""`propagate-quantization`, and the permutations of bytes after it: the same values."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from tests.support.programs import check_pass, run_in_turn

BOTH = "propagate-quantization,simplify-permute-dims"

# As in a network with skip connections: bytes with channels last are pooled, and joined with numbers of f32.
TEXT = """
relax.func @main[%n, %h, %w](%q: !relax.tensor<[n, h, w, 3], DTYPE>, %y: !relax.tensor<[n, 2, h, w], f32>)
    -> !relax.object {
  %scale = relax.constant dense<0.5> : tensor<f32>
  %point = relax.constant dense<POINT> : tensor<f32>
  %other = relax.constant dense<OTHER> : tensor<f32>
  %least = relax.constant dense<LEAST> : tensor<f32>
  %most = relax.constant dense<MOST> : tensor<f32>
  %0 = relax.permute_dims %q axes = [0, 3, 1, 2]
  %1 = relax.astype %0 dtype = f32
  %2 = relax.subtract %1, %point
  %3 = relax.multiply %2, %scale
  %4 = relax.nn.max_pool2d %3 pool_size = [3, 2] strides = [2, 1] padding = [1, 0, 1, 1] ceil_mode
  %5 = relax.divide %4, %other
  %6 = relax.round %5
  %7 = relax.add %6, %point
  %8 = relax.maximum %7, %least
  %9 = relax.minimum %8, %most
  %10 = relax.astype %9 dtype = DTYPE
  %11 = relax.permute_dims %10 axes = [0, 2, 3, 1]
  %12 = relax.concat %3, %y axis = 1
  %13 = relax.permute_dims %12 axes = [0, 2, 3, 1]
  %14 = relax.divide %13, %scale
  %15 = relax.round %14
  %16 = relax.add %15, %point
  %17 = relax.maximum %16, %least
  %18 = relax.minimum %17, %most
  %19 = relax.astype %18 dtype = DTYPE
  %20 = relax.tuple(%11, %19)
  relax.return %20
}
"""


def text_of(dtype: str, point: int, other: float) -> str:
    info = np.iinfo(np.uint8 if dtype == "ui8" else np.int8)
    values = {"DTYPE": dtype, "POINT": f"{point}.0", "OTHER": str(other), "LEAST": f"{info.min}.0"}
    text = TEXT
    for name, value in (values | {"MOST": f"{info.max}.0"}).items():
        text = text.replace(name, value)
    return text


def arguments(dtype: str, n: int, h: int, w: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n + h)
    info = np.iinfo(np.uint8 if dtype == "ui8" else np.int8)
    q = rng.integers(info.min, info.max, (n, h, w, 3), info.dtype, endpoint=True)
    return [q, rng.standard_normal((n, 2, h, w), dtype=np.float32) * 40]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "point"), [("ui8", 128), ("ui8", 0), ("i8", -3)])
@pytest.mark.parametrize("other", [0.5, 0.3, -0.5])
def test_values_stay(dtype: str, point: int, other: float):
    inputs = [arguments(dtype, *sizes) for sizes in ((2, 5, 4), (1, 2, 1), (0, 3, 3))]
    module = check_pass(text_of(dtype, point, other), BOTH, inputs)
    pools = [op for op in module.walk() if op.name == "relax.nn.max_pool2d"]
    assert [str(op.properties["layout"]) for op in pools] == ['"NHWC"']


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["ui8", "i8"])
def test_all_modes_agree(dtype: str):
    module = parse_module(text_of(dtype, 7, 0.5))
    for sizes in ((2, 5, 4), (1, 33, 18), (0, 3, 3)):
        run_in_turn(module, "main", arguments(dtype, *sizes))


def test_the_same_scale_is_no_computation():
    module = check_pass(text_of("ui8", 9, 0.5), BOTH, [arguments("ui8", 1, 5, 4)])
    # What is left is computed of the numbers of f32 alone.
    assert sum(op.name == "relax.divide" for op in module.walk()) == 1
    assert sum(op.name == "relax.permute_dims" for op in module.walk()) == 1
