"""Special functions, computed in `f64` of each element: gamma and Bessel functions, the inverse of `erf`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f64

from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect import te


def _polynomial(x: te.Expr, coefficients: Sequence[float]) -> te.Expr:
    """A polynomial whose coefficients are given from the constant on, by Horner's rule."""
    made = te.const(coefficients[-1], "f64")
    for coefficient in reversed(coefficients[:-1]):
        made = made * x + coefficient
    return made


def _sine_of_half_turns(x: te.Expr) -> te.Expr:
    """`sin(pi * x)` up to its sign."""
    return te.sin((x - te.round(x)) * math.pi)


_LANCZOS = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059),
    *(12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7),
)
"""Lanczos' series of the gamma function for g = 7 and nine terms."""


def lgamma(x: te.Expr) -> te.Expr:
    """`log(abs(gamma(x)))`, below one half by reflection."""
    is_low = x < 0.5
    z = te.select(is_low, 1 - x, x) - 1
    series = te.const(_LANCZOS[0], "f64")
    for at, coefficient in enumerate(_LANCZOS[1:], start=1):
        series = series + coefficient / (z + at)
    t = z + 7.5
    high = 0.5 * math.log(2 * math.pi) + ((z + 0.5) * te.log(t) - t) + te.log(series)
    reflected = math.log(math.pi) - te.log(te.abs(_sine_of_half_turns(x))) - high
    return te.select(te.isinf(x), te.abs(x), te.select(is_low, reflected, high))


_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""The Bernoulli numbers of even index `2n` from 2 on, over `2n`."""


def digamma(x: te.Expr) -> te.Expr:
    """The derivative of `lgamma`: its asymptotic series from 10 on, below by recurrence and reflection."""
    is_low = x <= 0
    y = te.select(is_low, 1 - x, x)
    steps = te.const(0, "f64")
    for _ in range(10):
        is_small = y < 10
        steps = steps + te.select(is_small, 1 / y, 0)
        y = te.select(is_small, y + 1, y)
    squared = 1 / (y * y)
    found = te.log(y) - 0.5 / y - squared * _polynomial(squared, _BERNOULLI) - steps
    half_turns = x - te.round(x)
    reflected = found - math.pi / te.tan(half_turns * math.pi)
    at_pole = te.select(x == 0, te.copysign(te.const(math.inf, "f64"), -x), te.const(math.nan, "f64"))
    below = te.select(half_turns == 0, at_pole, reflected)
    return te.select(is_low, te.select(te.isinf(x), te.const(math.nan, "f64"), below), found)


_NEAR = (
    *(1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087),
    *(-4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08),
)
_FAR = (
    *(2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773),
    *(-0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257),
)
"""Polynomials of Giles, Approximating the erfinv function, 2010."""


def erfinv(x: te.Expr) -> te.Expr:
    """The inverse of `erf` for numbers of `f32`: an approximation and one step of Newton's method."""
    w = -te.log((1 - x) * (1 + x))
    near, far = _polynomial(w - 2.5, _NEAR), _polynomial(te.sqrt(te.maximum(w, 0)) - 3, _FAR)
    y = te.select(w < 5, near, far) * x
    better = y - (te.erf(y) - x) * te.exp(y * y) * (math.sqrt(math.pi) / 2)
    return te.select(te.abs(x) == 1, te.copysign(te.const(math.inf, "f64"), x), better)


_TERMS = 45


def _scaled_bessel(order: int, x: te.Expr) -> te.Expr:
    """`exp(-abs(x)) * I(abs(x))` of a modified Bessel function: its power series up to 15, then the asymptotic one."""
    size = te.abs(x)
    rising = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    low = te.minimum(size, 15)
    near = _polynomial(low * low * 0.25, rising) * te.exp(-low) * (1 if order == 0 else low * 0.5)
    falling = [1.0]
    for k in range(1, 25):
        falling.append(falling[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
    high = te.maximum(size, 15)
    far = _polynomial(1 / high, falling) / te.sqrt(high * (2 * math.pi))
    return te.select(size < 15, near, te.select(te.isnan(x), x, far))


def _bessel(order: int, *, is_scaled: bool) -> Callable[[te.Expr], te.Expr]:
    def function(x: te.Expr) -> te.Expr:
        found = _scaled_bessel(order, x)
        half = te.exp(te.abs(x) * 0.5)
        grown = found if is_scaled else te.select(te.isinf(x), te.abs(x), found * half * half)
        return te.select(x < 0, -grown, grown) if order else grown

    return function


_FUNCTIONS: dict[str, Callable[[te.Expr], te.Expr]] = {
    "aten.lgamma.default": lgamma,
    "aten.digamma.default": digamma,
    "aten.erfinv.default": erfinv,
    "aten.i0.default": _bessel(0, is_scaled=False),
    "aten.special_i0e.default": _bessel(0, is_scaled=True),
    "aten.special_i1.default": _bessel(1, is_scaled=False),
    "aten.special_i1e.default": _bessel(1, is_scaled=True),
}


@converts(*_FUNCTIONS)
def special(node: Node) -> Result:
    """A special function of each element; of integers it is a floating-point number."""
    function, dtype = _FUNCTIONS[node.operator], node.out_dtype()
    if node.name == "erfinv" and dtype == f64:
        raise Refusal("erfinv of f64 is not supported: take f32")

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.cast(function(te.cast(x[i], f64)), x.dtype), name=node.name)

    return node.te(kernel, node.tensor("self", dtype), name=node.name)
