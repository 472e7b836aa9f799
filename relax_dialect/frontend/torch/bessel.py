"""Bessel functions and Airy's, computed in `f64` of each element; the quantiles of the normal distribution.

Power series near 0, the recurrence of Miller with the sums of Neumann in the middle, asymptotic series far away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f64

from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.special import polynomial, spatial
from tir_dialect import te

Function = Callable[[te.ExternBuilder, te.Expr], te.Expr]
"""Emits the statements that compute a function of an element in `f64`, and gives its value."""

_GAMMA = 0.57721566490153286061
_NEAR, _FAR = 5.0, 25.0
"""Below the first, power series; above the second, asymptotic ones."""
_TERMS = 32


def _infinite() -> te.Expr:
    return te.const(math.inf, "f64")


def _nan() -> te.Expr:
    return te.const(math.nan, "f64")


def _series(order: int, sign: int) -> list[float]:
    """Coefficients of `(x / 2) ** -order * J(x)`, or of `I(x)`, in powers of `x * x / 4`."""
    return [float(sign) ** k / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]


def _series_of_psi(order: int, sign: int) -> list[float]:
    """The same times the sum of digamma functions of `k + 1` and `k + 1 + order`."""

    def psi(n: int) -> float:
        return sum(1 / at for at in range(1, n)) - _GAMMA

    return [each * (psi(k + 1) + psi(k + 1 + order)) for k, each in enumerate(_series(order, sign))]


def _hankel(order: float) -> list[float]:
    """Coefficients of the asymptotic series in powers of `1 / x`."""
    found = [1.0]
    for k in range(1, 26):
        found.append(found[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return found


def _oscillating(order: int, x: te.Expr, *, second: bool) -> te.Expr:
    """`J` or `Y` of numbers from 25 on."""
    terms, squared = _hankel(order), 1 / (x * x)
    even = polynomial(squared, [each * (-1) ** k for k, each in enumerate(terms[::2])])
    odd = polynomial(squared, [each * (-1) ** k for k, each in enumerate(terms[1::2])]) / x
    # The sine and cosine of x - (order / 2 + 1 / 4) * pi, without a difference of large numbers.
    sine, cosine, root = te.sin(x), te.cos(x), math.sqrt(0.5)
    shifted_sine, shifted_cosine = (sine - cosine) * root, (sine + cosine) * root
    if order == 1:
        shifted_sine, shifted_cosine = -shifted_cosine, shifted_sine
    made = even * shifted_sine + odd * shifted_cosine if second else even * shifted_cosine - odd * shifted_sine
    return made * te.sqrt(2 / (math.pi * x))


def _ordinary(order: int, *, second: bool) -> Function:
    """`J` of order 0 or 1, or `Y`, which is of positive numbers only; NaN of infinities, as in PyTorch."""

    def function(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
        size = te.abs(x)
        low = te.minimum(size, _NEAR)
        quarter, half = low * low * 0.25, low * 0.5
        power = half if order else te.const(1, "f64")
        near = polynomial(quarter, _series(order, -1)) * power
        logarithm = te.log(half)
        if second:
            rest = polynomial(quarter, _series_of_psi(order, -1)) * power / math.pi
            near = 2 / math.pi * logarithm * near - rest
            near = near - 2 / (math.pi * low) if order else near
        middle = te.maximum(te.minimum(size, _FAR), _NEAR)
        zeroth, first, of_zero, of_one = _miller(b, middle)
        between = first if order else zeroth
        if second:
            log_middle = te.log(middle * 0.5) + _GAMMA
            between = 2 / math.pi * log_middle * zeroth - 4 / math.pi * of_zero
            if order:
                between = 2 / math.pi * ((log_middle - 1) * first - 2 * of_one - zeroth / middle)
        high = te.maximum(size, _FAR)
        found = te.select(size < _NEAR, near, te.select(size < _FAR, between, _oscillating(order, high, second=second)))
        found = te.select(te.isinf(x), _nan(), found)
        if second:
            found = te.select(x == 0, -_infinite(), te.select(x < 0, _nan(), found))
        elif order:
            found = te.select(x < 0, -found, found)
        return te.select(te.isnan(x), x, found)

    return function


_START = 70


def _miller(b: te.ExternBuilder, x: te.Expr) -> tuple[te.Expr, te.Expr, te.Expr, te.Expr]:
    """`J` of orders 0 and 1, and the sums of Neumann for `Y`, of numbers from 5 to 25.

    The sums are those of `(-1)^k J_2k / k`, and of `(-1)^k (2k + 1) / (2k (k + 1)) J_(2k+1)`, from `k = 1` on.
    """
    names = ("above", "here", "total", "of_zero", "of_one")
    above, here, total, of_zero, of_one = (b.alloc((), "f64", name) for name in names)
    for each in (above, total, of_zero, of_one):
        b.store(each, (), te.const(0, "f64"))
    b.store(here, (), te.const(1, "f64"))
    with b.for_range(0, _START, "i") as i:
        order = b.let(te.const(float(_START), "f64") - te.cast(i, "f64"), "order")  # Of `here`.
        half = b.let(te.floor(order * 0.5), "half")
        is_even = b.let(order == 2 * half, "is_even")
        sign = b.let(te.select(half == 2 * te.floor(half * 0.5), te.const(1, "f64"), te.const(-1, "f64")), "sign")
        weight = te.select(half > 0, (2 * half + 1) / te.maximum(2 * half * (half + 1), 1), te.const(0, "f64"))
        zero = te.const(0, "f64")
        b.store(total, (), total[()] + te.select(is_even, 2 * here[()], zero))
        b.store(of_zero, (), of_zero[()] + te.select(is_even, sign * here[()] / te.maximum(half, 1), zero))
        b.store(of_one, (), of_one[()] + te.select(is_even, zero, sign * weight * here[()]))
        below = b.let(2 * order / x * here[()] - above[()], "below")
        b.store(above, (), here[()])
        b.store(here, (), below)
    scale = 1 / (total[()] + here[()])
    return here[()] * scale, above[()] * scale, of_zero[()] * scale, of_one[()] * scale


def _scaled_second(b: te.ExternBuilder, order: float, x: te.Expr) -> te.Expr:
    """`exp(x) * K(x)` of numbers from 1 on: an integral as a sum, from 25 on the asymptotic series."""
    middle, total = te.minimum(x, _FAR), b.alloc((), "f64", "total")
    b.store(total, (), te.const(0.5, "f64"))
    with b.for_range(1, 48, "i") as i:
        t = b.let(te.cast(i, "f64") * 0.1, "t")
        b.store(total, (), total[()] + te.exp(-middle * (te.cosh(t) - 1)) * te.cosh(order * t))
    high = te.maximum(x, _FAR)
    far = polynomial(1 / high, _hankel(order)) * te.sqrt(math.pi / (2 * high))
    return te.select(x < _FAR, total[()] * 0.1, far)


def _modified(order: int, *, is_scaled: bool) -> Function:
    """`K` of order 0 or 1, which is of positive numbers only."""

    def function(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
        low = te.maximum(te.minimum(x, 2), 0)
        quarter, half = low * low * 0.25, low * 0.5
        power = half if order else te.const(1, "f64")
        first = polynomial(quarter, _series(order, 1)) * power
        rest = polynomial(quarter, _series_of_psi(order, 1)) * power * 0.5
        near = te.log(half) * first - rest + 1 / low if order else rest - te.log(half) * first
        far = _scaled_second(b, order, te.maximum(x, 2))
        if is_scaled:
            near = near * te.exp(low)
        else:
            far = far * te.exp(-te.maximum(x, 2))
        found = te.select(x < 2, near, te.select(te.isinf(x), te.const(0, "f64"), far))
        return te.select(te.isnan(x), x, te.select(x == 0, _infinite(), te.select(x < 0, _nan(), found)))

    return function


def _airy_series() -> tuple[list[float], list[float]]:
    """Coefficients in powers of `x ** 3` of the two series at 0, with their factors."""
    one, other = [3 ** (-2 / 3) / math.gamma(2 / 3)], [3 ** (-1 / 3) / math.gamma(1 / 3)]
    for k in range(1, 50):
        one.append(one[-1] / (3 * k * (3 * k - 1)))
        other.append(other[-1] / (3 * k * (3 * k + 1)))
    return one, other


def _airy(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
    """Airy's function `Ai`; as in PyTorch, it is NaN of infinities, and 0 from where it is less than any number."""
    near = te.maximum(te.minimum(x, 2), -7)
    one, other = _airy_series()
    cube = near * near * near
    found = polynomial(cube, one) - near * polynomial(cube, other)
    high = te.maximum(x, 2)
    zeta = 2 / 3 * high * te.sqrt(high)
    falling = te.sqrt(high / 3) / math.pi * _scaled_second(b, 1 / 3, zeta) * te.exp(-zeta)
    low = te.maximum(-x, 7)
    zeta = 2 / 3 * low * te.sqrt(low)
    terms, squared = _airy_asymptotic(), 1 / (zeta * zeta)
    even = polynomial(squared, [each * (-1) ** k for k, each in enumerate(terms[::2])])
    odd = polynomial(squared, [each * (-1) ** k for k, each in enumerate(terms[1::2])]) / zeta
    waves = te.sin(zeta + math.pi / 4) * even - te.cos(zeta + math.pi / 4) * odd
    waves = waves / (math.sqrt(math.pi) * te.sqrt(te.sqrt(low)))
    found = te.select(x > 2, te.select(x > 103.892, te.const(0, "f64"), falling), te.select(x < -7, waves, found))
    return te.select(te.isnan(x), x, te.select(te.isinf(x), _nan(), found))


def _airy_asymptotic() -> list[float]:
    found = [1.0]
    for k in range(1, 20):
        found.append(found[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    return found


def _spherical(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
    """`sin(x) / x`, which is 1 at 0."""
    divisor = te.select(x == 0, te.const(1, "f64"), x)
    found = te.select(x == 0, te.const(1, "f64"), te.sin(divisor) / divisor)
    return te.select(te.isinf(x), te.const(0, "f64"), found)


_CENTRE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
        *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4),
        *(3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
)
_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0),
        *(1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
)
_END = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1),
        *(2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)
"""Quotients of polynomials of Wichura, The Percentage Points of the Normal Distribution, 1988."""


def _quotient(x: te.Expr, of: tuple[Sequence[float], Sequence[float]]) -> te.Expr:
    return polynomial(x, of[0]) / polynomial(x, of[1])


def _quantile(from_middle: te.Expr, tail: te.Expr) -> te.Expr:
    """The number below which a part `1/2 + from_middle` of the normal distribution is; `tail` is the lesser part."""
    centre = from_middle * _quotient(0.180625 - from_middle * from_middle, _CENTRE)
    r = te.sqrt(-te.log(tail))
    away = te.select(r <= 5, _quotient(r - 1.6, _TAIL), _quotient(r - 5, _END))
    found = te.select(te.abs(from_middle) <= 0.425, centre, te.copysign(away, from_middle))
    found = te.select(tail == 0, te.copysign(_infinite(), from_middle), found)
    return te.select(te.abs(from_middle) > 0.5, _nan(), found)


def _ndtri(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
    return _quantile(x - 0.5, te.minimum(x, 1 - x))


def _erfinv(b: te.ExternBuilder, x: te.Expr) -> te.Expr:
    return _quantile(x * 0.5, (1 - te.abs(x)) * 0.5) * math.sqrt(0.5)


_FUNCTIONS: dict[str, Function] = {
    "aten.erfinv.default": _erfinv,
    "aten.special_ndtri.default": _ndtri,
    "aten.special_airy_ai.default": _airy,
    "aten.special_spherical_bessel_j0.default": _spherical,
    **{f"aten.special_bessel_j{order}.default": _ordinary(order, second=False) for order in (0, 1)},
    **{f"aten.special_bessel_y{order}.default": _ordinary(order, second=True) for order in (0, 1)},
    **{f"aten.special_modified_bessel_k{order}.default": _modified(order, is_scaled=False) for order in (0, 1)},
    **{f"aten.special_scaled_modified_bessel_k{order}.default": _modified(order, is_scaled=True) for order in (0, 1)},
}


@converts(*_FUNCTIONS)
def bessel(node: Node) -> Result:
    """A function of each element; of integers it is a floating-point number."""
    function, dtype = _FUNCTIONS[node.operator], node.out_dtype()

    def statements(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block(node.name, *spatial(ins[0].shape)) as i:
            x = b.let(te.cast(ins[0][i], f64), "x")
            b.store(outs[0], i, te.cast(function(b, x), outs[0].dtype))

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.extern([(x.shape, x.dtype)], [x], statements, name=node.name)[0]

    argument = "self" if "self" in node.arguments else "x"
    return node.te(kernel, node.tensor(argument, dtype), name=node.name)
