"""Elementwise operators, reductions and conversions against PyTorch: many in one program, since building takes long."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from relax_dialect.interpreter import run
from tests.relax_dialect.frontend.torch.programs import assert_same

torch.manual_seed(0)
X, Y = torch.randn(2, 3, 4), torch.randn(3, 4)
INTS = torch.arange(-6, 6).reshape(3, 4)
MASK = X > 0
PLACES = torch.tensor([2, 0, 2])
POSITIVE = X.abs() + 0.1
BYTES = torch.randint(0, 200, (3, 4), dtype=torch.uint8)
Tensor = torch.Tensor


def functions(*names: str) -> list[Any]:
    return [getattr(torch, name) for name in " ".join(names).split()]


def unary(x: Tensor, i: Tensor) -> Any:
    """Of floating-point numbers and integers."""
    of_floats = functions(
        "abs atan cos cosh erf exp neg reciprocal sigmoid sin sinh asinh tanh tan ceil floor round sign trunc isnan",
        "isinf isfinite square expm1 exp2 erfc frac deg2rad rad2deg sinc logical_not",
    )
    of_ints = functions("sin abs floor sign isnan exp bitwise_not logical_not isfinite")
    return [f(x) for f in of_floats], [f(i) for f in of_ints], ~(x > 0), torch.round(x, decimals=2)


def unary_on_domain(x: Tensor) -> Any:
    """Functions that are not defined everywhere."""
    inside = x.clamp(0, 0.9)
    return [
        *(f(x) for f in functions("sqrt rsqrt log log1p log2 log10")),
        *(f(inside) for f in functions("acos asin atanh")),
        torch.acosh(x + 1),
        torch.logit(inside.clamp(min=0.1)),
    ]


def arithmetic(x: Tensor, y: Tensor, i: Tensor) -> Any:
    """With factors, with modes of rounding, with numbers on either side."""
    return [
        *(x + y, x - y, x * y, x / y, torch.rsub(x, 2), x.add(y, alpha=2), x.sub(i, alpha=3)),
        *(i + 1, i + 1.5, i * i, i / 2, i // 2, i % 3, torch.div(i, 4, rounding_mode="trunc")),
        *(torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")),
        *(x // 0.7, x % 0.7, torch.fmod(x, 0.7), torch.remainder(x, y)),
        *(x**2, x**3, x**2.0, y.abs() ** 0.5, 2**x, torch.pow(x.abs(), y), i**2),
        *(f(x, y) for f in functions("atan2 maximum fmax hypot copysign logaddexp")),
        *(torch.minimum(i, i + 1), torch.lerp(x, y, 0.3)),
        *(torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, x, y, value=2)),
    ]


def promotion(x: Tensor, i: Tensor, u: Tensor, b: Tensor) -> Any:
    """Tensors decide more than tensors of rank 0, and these more than numbers; categories decide more than widths."""
    return [
        *(u + i, u + 1, u * 2.5, b + 1, b * 2.0, b + b, b * b, b[0] | b[1], b & b, b ^ b),
        *(x + torch.tensor(2.0, dtype=torch.float64), i + torch.tensor(1.5), u + torch.tensor(1)),
        *(u + u.to(torch.int8), x.half() + 1, i & 3, i | 3, i ^ 3, i << 1, i >> 1),
        *(torch.logical_and(x, i), torch.logical_or(b, i), torch.logical_xor(b, b)),
    ]


def comparisons(x: Tensor, y: Tensor, i: Tensor, b: Tensor) -> Any:
    return [
        *(x == y, x != y, x < y, x <= y, x > y, x >= y, x > 0, i == 1, i > 0.5, x < i, b.eq(True)),
        *(torch.where(b, x, y), torch.where(b, x, 0.0), torch.where(b, 1, 2), x.masked_fill(b, 3.0)),
        *(x.clamp(-0.5, 0.5), x.clamp(min=0), x.clamp(max=0.3), torch.clamp(x, min=y), i.clamp(0, 2)),
        *(i.clamp(min=0.5), x.clamp_min(0.2), i.clamp_max(2), torch.clip(x, 0, 1)),
    ]


def truth_values(a: Tensor, b: Tensor) -> Any:
    """In their order false is before true."""
    return [
        *(a < b, a <= b, a > b, a >= b, a >= 1, a > False, a < a.int(), torch.sign(a), torch.sgn(a)),
        *(torch.max(a, b), torch.min(a, b), torch.fmax(a, b), torch.fmin(a, b), a.max(), a.min()),
        *(*a.max(1), *a.min(0, keepdim=True), a.clamp_min(b), a.clamp_max(b)),
        *(torch.outer(a[0], b[1]), torch.addr(a[:, :3], a[:, 0], b[0, :3])),
        *(a.index_add(0, PLACES, b), a.index_add(0, PLACES, b, alpha=0), a.scatter_add(0, PLACES[:, None], b)),
        a.index_put((PLACES,), b, accumulate=True),
        *(a.scatter_reduce(0, PLACES[:, None], b, how) for how in ("sum", "prod", "amax", "amin")),
        *(a.scatter_reduce(0, PLACES[:, None], b, how, include_self=False) for how in ("amax", "amin")),
    ]


def activations(x: Tensor, w: Tensor) -> Any:
    return [
        *(F.prelu(x.sum() - 100, w[:1]), F.softmax(x.sum(), 0), F.log_softmax(x.sum(), 0)),
        *(F.relu(x), F.relu6(x * 5), F.leaky_relu(x, 0.2), F.prelu(x, w), F.elu(x, 0.7), F.celu(x, 1.3), F.selu(x)),
        *(F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.hardsigmoid(x * 3), F.hardswish(x * 3)),
        *(F.hardtanh(x, -0.3, 0.4), F.softplus(x, 2.0, 1.0), F.mish(x), F.logsigmoid(x), F.softsign(x)),
        *(F.threshold(x, 0.1, -2), F.softshrink(x, 0.4), F.hardshrink(x, 0.4), F.glu(x, -1), F.rrelu(x)),
        *(F.softmax(x, 1), F.log_softmax(x, -1), F.softmin(x, 2), F.softmax(x, -1, dtype=torch.float64)),
        *(F.tanhshrink(x), F.normalize(x, dim=1)),
    ]


def reductions(x: Tensor, i: Tensor) -> Any:
    return [
        *(x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), i.sum(), (i > 0).sum(), x.mean(), x.mean((1, 2))),
        *(x.amax(1), x.amin((0, 1)), x.prod(), x.prod(1), i.prod(), x.max(), x.min(), *x.max(1)),
        *((x > 0).prod(1, dtype=torch.bool), (x > 0).amax(1)),
        *(*x.min(2, keepdim=True), x.max(0).values, x.any(), x.any(1), (x > -9).all(), (x > 0).all(2, keepdim=True)),
        *(i.any(1), x.var(1), x.var((0, 2), correction=0), x.std(), x.std(1, keepdim=True)),
        *(*torch.var_mean(x, 1), *torch.std_mean(x, (1, 2)), torch.linalg.vector_norm(x, 2, 1)),
        *(torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, float("inf"), 0), torch.norm(x, 3, 1)),
        *(torch.logsumexp(x, 1), torch.logsumexp(x, (0, 1), True), x.cumsum(1), i.cumsum(0), x.cumprod(2)),
        *(torch.count_nonzero(i), torch.linalg.norm(x), x.argmax(), x.argmin(1), x.argmax(1, keepdim=True)),
        x.argmax(keepdim=True),
        *(torch.linalg.vector_norm((x * 300).half(), order, 1) for order in (0, 1, 2, 3)),  # squares are infinite
        torch.dist((x * 300).half(), (x * 200).half(), 2),
    ]


def conversions(x: Tensor, i: Tensor, b: Tensor) -> Any:
    return [
        *(x.to(torch.float64), x.int(), i.float(), i.bool(), b.float(), x.type_as(i), x.half(), x.clone()),
        *(x.detach(), x.contiguous(), i.to(torch.int8), x.bool(), x.double().float(), x.bfloat16().float()),
    ]


def special_functions(x: Tensor, i: Tensor) -> Any:
    """Gamma and Bessel functions (at infinity PyTorch's `i0` and `i1` are no numbers), and the inverse of `erf`."""
    return [
        *(torch.lgamma(x), torch.lgamma(i), torch.digamma(x), torch.i0(x[:-3]), torch.special.i1(x[:-3])),
        *(torch.special.i0e(x), torch.special.i1e(x), torch.erfinv(x / 10), torch.erfinv(x.clamp(-0.999999, 1))),
        *(torch.signbit(x), torch.signbit(i), torch.angle(x), torch.nextafter(x, i[0]), torch.ldexp(x, i[:1])),
        *(5 & i, 7 | i, 6 ^ i, 1 << i.abs(), torch.dist(x[1:9], x[9:17]), torch.dist(x[1:9], x[9:17], 1.0)),
        torch.searchsorted(x[1:9], 0.2),
    ]


def functions_of_pairs(x: Tensor, a: Tensor, i: Tensor, j: Tensor) -> Any:
    """Zeta and incomplete gamma functions; derivatives of `digamma` (PyTorch's are no numbers at infinity)."""
    return [
        *(torch.special.erfcx(x), *torch.frexp(x), *torch.frexp(x.double() * 1e300), *torch.frexp(x * 1e-40)),
        *(torch.polygamma(0, x), torch.polygamma(1, x[5:-3]), torch.polygamma(2, x[5:-3]), torch.polygamma(4, x[8:-3])),
        *(torch.special.zeta(a[:9], x[8:-3][:, None]), torch.special.zeta(2.5, x[8:-3])),
        *(torch.special.modified_bessel_i0(x[:-3]), torch.special.modified_bessel_i1(x[:-3])),
        *(torch.igamma(a[:, None], a.abs() * 1.1), torch.igammac(a[:, None], a.abs() * 1.1)),
        *(torch.gcd(i[:, None], j), torch.lcm(i[:, None], j), torch.gcd(i.to(torch.int8), i.flip(0).to(torch.int8))),
    ]


def polynomials(x: Tensor, n: Tensor) -> Any:
    """Orthogonal polynomials of degrees that are data, of numbers, and of a degree that is a number."""
    chebyshev = [
        getattr(torch.special, f"{how}chebyshev_polynomial_{kind}") for how in ("", "shifted_") for kind in "tuvw"
    ]
    others = ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")
    functions = [*chebyshev, *(getattr(torch.special, name) for name in others)]
    x = x[:, None].double()
    of_all = [function(x, n) for function in functions]
    return [*of_all, functions[0](x, 20), functions[-1](0.3, n), functions[1](x.float(), torch.full_like(n, 3))]


def bessel_functions(x: Tensor, small: Tensor) -> Any:
    """Up to where PyTorch's own sums of f32 are exact enough; those of the second kind are not of numbers below 0."""
    names = ("airy_ai", "spherical_bessel_j0", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")
    modified = ("modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1")
    of_doubles = [getattr(torch.special, name)(x.double()) for name in (*names, *modified)]
    quantiles = [torch.special.ndtri(small), torch.special.ndtri(small * 1e-6), torch.erfinv(small * 2 - 1)]
    return [*of_doubles, *quantiles, torch.erfinv(small.double() * 2 - 1), torch.special.bessel_y0(x)]


def next_numbers(x: Tensor, y: Tensor) -> Any:
    """Of 16 bits, towards each other, past 0 and to infinity."""
    pairs = [(x.to(dtype)[:, None], y.to(dtype)) for dtype in (torch.bfloat16, torch.float16)]
    return [torch.nextafter(*pair).float() for pair in pairs]


ORDERS = torch.tensor([0.0, 1e-3, 0.5, 1.0, 2.5, 9.0, 30.0, 200.0, 5000.0, -1.0, inf])

POINTS = [-100.0, -7.0, -3.5, -2.0, -1.0, -0.7, -1e-5, -0.0, 0.0, 1e-6, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 9.9, 10.0, 30.0]

CASES = [
    (unary, (X, INTS)),
    (unary_on_domain, (POSITIVE,)),
    (arithmetic, (X, Y, INTS)),
    (promotion, (X, INTS, BYTES, MASK)),
    (comparisons, (X, Y, INTS, MASK)),
    (truth_values, (INTS % 2 == 0, INTS % 3 == 0)),
    (activations, (X, torch.rand(3))),
    (reductions, (X, INTS)),
    (conversions, (X, INTS, MASK)),
    (special_functions, (torch.tensor([*POINTS, 80.0, inf, -inf, nan]), torch.arange(-3, 5))),
    (
        functions_of_pairs,
        (
            *(torch.tensor([*POINTS, 80.0, inf, -inf, nan]), ORDERS, torch.tensor([0, -4, 12, 7, 2**40])),
            torch.tensor([0, 6, -9, 3]),
        ),
    ),
    (polynomials, (torch.tensor([-1.5, -1.0, -0.7, 0.0, 0.3, 1.0, 1.2]), torch.tensor([-1.0, 0, 1, 2.7, 5, 8, 9, 30]))),
    (
        bessel_functions,
        (
            torch.tensor([*POINTS, 4.9, 5.0, 17.0, 24.9, 25.0, 80.0, inf, -inf, nan]),
            torch.tensor([0.0, 1e-5, 0.02, 0.3, 0.5, 0.8, 0.999, 1.0, nan]),
        ),
    ),
    (
        next_numbers,
        (torch.tensor([0.0, -0.0, 1, -1, 6e-8, 65504, inf, nan]), torch.tensor([-2.0, 0, 1, inf, -inf, nan])),
    ),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_values(function: Any, args: Any):
    assert_same(function, args)


SPECIAL = torch.tensor([nan, inf, -inf, -0.0, 0.0, 1.0, -2.5, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e-30, 1e30, 1e-20, 7.0])
FIRST, SECOND = SPECIAL.repeat_interleave(len(SPECIAL)), SPECIAL.repeat(len(SPECIAL))
"""Each pair of special values."""


def special(x: Tensor, y: Tensor) -> Any:
    return torch.hypot(x, y), torch.copysign(x, y), torch.sign(x), torch.sgn(x), F.threshold(x, 0.1, 20.0)


def small(x: Tensor) -> Any:
    return torch.expm1(x), torch.log1p(x)


def medians(x: Tensor) -> Any:
    return (*torch.median(x, dim=1), torch.median(x), torch.median(x[1:2]), *torch.median(x, dim=0, keepdim=True))


def test_special_values():
    model = assert_same(special, (FIRST, SECOND))
    found = run(model, "main", [FIRST, SECOND])
    for ours, theirs in zip(found[1:4], special(FIRST, SECOND)[1:4], strict=True):
        np.testing.assert_array_equal(np.signbit(ours[~np.isnan(ours)]), torch.signbit(theirs)[~theirs.isnan()].numpy())
    assert_same(small, (torch.tensor([1e-20, -1e-20, 1e-10, 0.5, inf, nan]),))


def running(x: Tensor, i: Tensor) -> Any:
    of_floats = [*torch.cummax(x, 1), *torch.cummin(x, 0), torch.logcumsumexp(x, 1), torch.logcumsumexp(x.double(), 2)]
    return [*of_floats, *torch.cummax(i, -1), *torch.cummin(x[0, 0, 0], 0)]


def numbers_in_the_middle(x: Tensor, i: Tensor) -> Any:
    of_floats = [torch.nanmedian(x), torch.median(x), *torch.median(x, 0), x.kthvalue(2, 0).values]
    return [*of_floats, torch.nanmedian(x, 1).values, torch.median(i), i.median(1, True).values, torch.nanmedian(i)]


@pytest.mark.parametrize("function", [running, numbers_in_the_middle])
def test_an_order_along_axes_of_any_length(function: Any):
    x = torch.randn(4, 5, 3).round(decimals=1)
    x[1, 2, 1], x[0, 0], x[3, :, 2] = nan, -inf, nan
    inputs = [(part, torch.randint(0, 4, (len(part), 6))) for part in (x, x[:2, :3], x[1:, :1])]
    assert_same(function, inputs[0], ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}), *inputs[1:])


def test_a_logarithm_of_a_power_of_two_is_whole():
    assert_same(lambda x: torch.log2(x).floor(), (2.0 ** torch.arange(-40, 41),))


def test_a_median_of_what_is_no_number():
    assert_same(medians, (torch.tensor([[1.0, nan, 3.0, nan, 0.0], [4.0, 2.0, inf, -inf, 1.0]]),))
