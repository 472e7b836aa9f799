"""Recognised normalisation computes what it computed written out, in all its forms."""

import numpy as np
import pytest

from tests.support.programs import Tolerance, check_pass

SQUARES = {"product": "relax.multiply %d, %d", "power": "relax.power %d, %two", "square": "relax.square %d"}
QUOTIENTS = {
    "quotient": "%s = relax.sqrt %e %o = relax.divide %d, %s",
    "rsqrt": "%s = relax.rsqrt %e %o = relax.multiply %s, %d",
    "reciprocal": "%s = relax.sqrt %e %r = relax.reciprocal %s %o = relax.multiply %d, %r",
    "one over": "%s = relax.sqrt %e %r = relax.divide %one, %s %o = relax.multiply %d, %r",
}
MEANS = {
    "layer_norm": "%m = relax.mean %x axes = [-1] keepdims %d = relax.subtract %x, %m",
    "rms_norm": "%d = relax.exp %x",
}
ENDS = {
    "layer_norm": "%g = relax.multiply %gamma, %o %y = relax.add %beta, %g",
    "rms_norm": "%y = relax.multiply %o, %gamma",
}


@pytest.mark.parametrize("square", SQUARES.values(), ids=SQUARES)
@pytest.mark.parametrize("quotient", QUOTIENTS.values(), ids=QUOTIENTS)
@pytest.mark.parametrize("kind", MEANS)
def test_values_stay(kind: str, quotient: str, square: str):
    program = f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %gamma: !relax.tensor<[8], f32>,
        %beta: !relax.tensor<[8], f32>) -> !relax.tensor<[n, 8], f32> {{
      %one = relax.constant dense<1.0> : tensor<f32>
      %two = relax.constant dense<2.0> : tensor<f32>
      %epsilon = relax.constant dense<0.01> : tensor<f32>
      {MEANS[kind]}
      %q = {square}
      %v = relax.mean %q axes = [1] keepdims
      %e = relax.add %epsilon, %v
      {quotient}
      {ENDS[kind]}
      relax.return %y
    }}
    """
    rng = np.random.default_rng(0)
    inputs = [[rng.random((n, 8), np.float32), *rng.random((2, 8), np.float32)] for n in (0, 1, 5)]
    module = check_pass(program, "rewrite-normalization", inputs, tolerance=Tolerance(1e-5, 1e-6))
    assert f"relax.nn.{kind}" in str(module)
    assert "relax.mean" not in str(module)


SOFTMAX = {
    "from the greatest": "%m = relax.max %x axes = [1] keepdims %d = relax.subtract %x, %m %e = relax.exp %d",
    "plain": "%e = relax.exp %x",
}
SHARES = {"quotient": "%y = relax.divide %e, %s", "reciprocal": "%r = relax.reciprocal %s %y = relax.multiply %r, %e"}


@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("exponential", SOFTMAX.values(), ids=SOFTMAX)
def test_softmax(exponential: str, share: str):
    program = f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 8, 3], f32>) -> !relax.tensor<[n, 8, 3], f32> {{
      {exponential}
      %s = relax.sum %e axes = [-2] keepdims
      {share}
      relax.return %y
    }}
    """
    rng = np.random.default_rng(0)
    inputs = [[rng.random((n, 8, 3), np.float32)] for n in (0, 1, 5)]
    module = check_pass(program, "rewrite-normalization", inputs, tolerance=Tolerance(1e-5, 1e-6))
    assert "relax.nn.softmax" in str(module)
    assert "relax.exp" not in str(module)


NO_SOFTMAX = {
    "another axis": "%m = relax.max %x axes = [0] keepdims %d = relax.subtract %x, %m %e = relax.exp %d",
    "another sum": "%e = relax.exp %x",
}


@pytest.mark.parametrize("name", NO_SOFTMAX)
def test_no_softmax(name: str):
    """The greatest elements are those of another axis: the sums still are those of `exp(d)`; or sums are over both."""
    axes = "[0, 1]" if name == "another sum" else "[1]"
    program = f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>) -> !relax.tensor<[n, 8], f32> {{
      {NO_SOFTMAX[name]}
      %s = relax.sum %e axes = {axes} keepdims
      %y = relax.divide %e, %s
      relax.return %y
    }}
    """
    x = np.random.default_rng(0).random((5, 8), np.float32)
    check_pass(program, "rewrite-normalization", [[x]], tolerance=Tolerance(1e-5, 1e-6))
