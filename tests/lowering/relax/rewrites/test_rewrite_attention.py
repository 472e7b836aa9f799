"""Recognised attention computes what it computed written out, in all its forms."""

import numpy as np
import pytest

from tests.support.programs import Tolerance, check_pass

PARAMETERS = (
    "%q: !relax.tensor<[b, s, 6, 4], f32>, %k: !relax.tensor<[b, t, 6, 4], f32>, %v: !relax.tensor<[b, t, 6, 3], f32>"
)
SCALES = {
    "factor": "%p = relax.matmul %0, %1 %a = relax.multiply %p, %half",
    "divisor": "%p = relax.matmul %0, %1 %a = relax.divide %p, %two",
    "on both": "%o = relax.multiply %half, %0 %n = relax.divide %1, %two %a = relax.matmul %o, %n",
    "none": "%a = relax.matmul %0, %1",
}
MASKS = {
    "none": ("", "%w = relax.nn.softmax %a"),
    "added": (", %m: !relax.tensor<[b, 1, s, t], f32>", "%n1 = relax.add %m, %a %w = relax.nn.softmax %n1 axis = -1"),
    "chosen": (
        ", %m: !relax.tensor<[s, t], i1>",
        "%n1 = relax.where %m, %a, %far %w = relax.nn.softmax %n1 axis = 3",
    ),
    "refused": (", %m: !relax.tensor<[t], i1>", "%n1 = relax.where %m, %far, %a %w = relax.nn.softmax %n1"),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_values_stay(scale: str, mask: str):
    parameter, softmax = MASKS[mask]
    program = f"""
    relax.func @main[%b, %s, %t]({PARAMETERS}{parameter}) -> !relax.tensor<[b, s, 6, 3], f32> {{
      %half = relax.constant dense<0.5> : tensor<f32>
      %two = relax.constant dense<2.0> : tensor<1xf32>
      %far = relax.constant dense<-20.0> : tensor<f32>
      %0 = relax.permute_dims %q axes = [0, 2, 1, 3]
      %1 = relax.permute_dims %k axes = [0, 2, 3, 1]
      %2 = relax.permute_dims %v axes = [0, 2, 1, 3]
      {SCALES[scale]}
      {softmax}
      %3 = relax.matmul %w, %2
      %4 = relax.permute_dims %3 axes = [0, 2, 1, 3]
      relax.return %4
    }}
    """
    rng = np.random.default_rng(0)

    def inputs(b: int, s: int, t: int) -> list[object]:
        operands: list[object] = [rng.standard_normal((b, n, 6, d), np.float32) for n, d in ((s, 4), (t, 4), (t, 3))]
        masks = {"added": (b, 1, s, t), "chosen": (s, t), "refused": (t,)}
        mine = rng.standard_normal(masks.get(mask, ()), np.float32)
        return operands + ([] if mask == "none" else [mine if mask == "added" else mine > 0])

    cases = [inputs(*sizes) for sizes in ((2, 3, 5), (1, 1, 1), (1, 2, 0), (0, 3, 2))]
    module = check_pass(program, "rewrite-attention", cases, tolerance=Tolerance(1e-5, 1e-6))
    assert "relax.nn.attention" in str(module)
    assert "relax.matmul" not in str(module)
    assert "relax.permute_dims" not in str(module)


def test_rows_that_see_nothing():
    """A row of which all scores are minus infinity has no distribution."""
    program = """
    relax.func @main[%s, %t](%q: !relax.tensor<[1, s, 4], f32>, %k: !relax.tensor<[1, 4, t], f32>,
        %v: !relax.tensor<[1, t, 4], f32>, %m: !relax.tensor<[s, t], f32>) -> !relax.tensor<[1, s, 4], f32> {
      %0 = relax.matmul %q, %k
      %1 = relax.add %0, %m
      %2 = relax.nn.softmax %1
      %3 = relax.matmul %2, %v
      relax.return %3
    }
    """
    rng = np.random.default_rng(1)
    q, k, v, m = (rng.standard_normal(shape, np.float32) for shape in ((1, 3, 4), (1, 4, 5), (1, 5, 4), (3, 5)))
    m[0, :3], m[1] = -np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        module = check_pass(program, "rewrite-attention", [[q, k, v, m]], tolerance=Tolerance(1e-5, 1e-6))
    assert "relax.nn.attention_bias" in str(module)


@pytest.mark.parametrize("mask", ["", "%a = relax.add %0, %m"], ids=["plain", "mask"])
def test_one_head_of_one_sequence(mask: str):
    """Neither batch nor heads; and a dropout that drops nothing."""
    program = f"""
    relax.func @main[%s, %t](%q: !relax.tensor<[s, 4], f32>, %k: !relax.tensor<[t, 4], f32>,
        %v: !relax.tensor<[t, 3], f32>, %m: !relax.tensor<[s, t], f32>) -> !relax.tensor<[3, s], f32> {{
      %1 = relax.permute_dims %k
      %0 = relax.matmul %q, %1
      {mask}
      %2 = relax.nn.softmax {"%a" if mask else "%0"}
      %3 = relax.nn.dropout %2
      %4 = relax.matmul %3, %v
      %5 = relax.permute_dims %4
      relax.return %5
    }}
    """
    rng = np.random.default_rng(1)
    cases = [
        [rng.standard_normal(shape, np.float32) for shape in ((s, 4), (t, 4), (t, 3), (s, t))]
        for s, t in ((3, 5), (1, 1), (0, 2), (2, 0))
    ]
    module = check_pass(program, "rewrite-attention", cases, tolerance=Tolerance(1e-5, 1e-6))
    assert "relax.nn.attention" in str(module)
    assert "relax.matmul" not in str(module)


def half(softmax: str) -> str:
    """Attention in `f16`, with these ops between the products."""
    return f"""
    relax.func @main[%s, %t](%q: !relax.tensor<[2, s, 4], f16>, %k: !relax.tensor<[2, 4, t], f16>,
        %v: !relax.tensor<[2, t, 4], f16>, %m: !relax.tensor<[s, t], f16>) -> !relax.tensor<[2, s, 4], f16> {{
      %0 = relax.matmul %q, %k
      %1 = relax.add %0, %m
      {softmax}
      %5 = relax.matmul %4, %v
      relax.return %5
    }}
    """


def test_numbers_of_16_bits():
    """Rewritten where the softmax is written in `f32`, as Llama's is; one in `f16` rounds what attention does not."""
    wide = "%2 = relax.astype %1 dtype = f32 %3 = relax.nn.softmax %2 %4 = relax.astype %3 dtype = f16"
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(shape).astype(np.float16) for shape in ((2, 3, 4), (2, 4, 5), (2, 5, 4), (3, 5))]
    module = check_pass(half(wide), "rewrite-attention", [inputs], tolerance=Tolerance(4e-3, 2e-3))
    assert "relax.nn.attention_bias" in str(module)
    module = check_pass(half("%4 = relax.nn.softmax %1"), "rewrite-attention", [inputs])
    assert "relax.nn.attention" not in str(module)
