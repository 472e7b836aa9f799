"""Special functions, computed in `f64` of each element: gamma, zeta and modified Bessel functions, `erfcx`.

And orthogonal polynomials of a degree that is data: Chebyshev's, Hermite's, Laguerre's and Legendre's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.te.nodes import IterKind


def polynomial(x: te.Expr, coefficients: Sequence[float]) -> te.Expr:
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
    found = te.log(y) - 0.5 / y - squared * polynomial(squared, _BERNOULLI) - steps
    half_turns = x - te.round(x)
    reflected = found - math.pi / te.tan(half_turns * math.pi)
    at_pole = te.select(x == 0, te.copysign(te.const(math.inf, "f64"), -x), te.const(math.nan, "f64"))
    below = te.select(half_turns == 0, at_pole, reflected)
    return te.select(is_low, te.select(te.isinf(x), te.const(math.nan, "f64"), below), found)


_TERMS = 45


def _scaled_bessel(order: int, x: te.Expr) -> te.Expr:
    """`exp(-abs(x)) * I(abs(x))` of a modified Bessel function: its power series up to 15, then the asymptotic one."""
    size = te.abs(x)
    rising = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    low = te.minimum(size, 15)
    near = polynomial(low * low * 0.25, rising) * te.exp(-low) * (1 if order == 0 else low * 0.5)
    falling = [1.0]
    for k in range(1, 25):
        falling.append(falling[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
    high = te.maximum(size, 15)
    far = polynomial(1 / high, falling) / te.sqrt(high * (2 * math.pi))
    return te.select(size < 15, near, te.select(te.isnan(x), x, far))


def _bessel(order: int, *, is_scaled: bool) -> Callable[[te.Expr], te.Expr]:
    def function(x: te.Expr) -> te.Expr:
        found = _scaled_bessel(order, x)
        half = te.exp(te.abs(x) * 0.5)
        grown = found if is_scaled else te.select(te.isinf(x), te.abs(x), found * half * half)
        return te.select(x < 0, -grown, grown) if order else grown

    return function


def erfcx(x: te.Expr) -> te.Expr:
    """`exp(x * x) * erfc(x)`: from 2 on a continued fraction."""
    high = te.maximum(x, 2)
    fraction: te.Expr = high
    for at in range(60, 0, -1):
        fraction = high + (0.5 * at) / fraction
    far = te.select(te.isinf(x), te.const(0, "f64"), 1 / (fraction * math.sqrt(math.pi)))
    low = te.minimum(x, 2)
    return te.select(te.isnan(x), x, te.select(x < 2, te.exp(low * low) * (1 - te.erf(low)), far))


_FUNCTIONS: dict[str, Callable[[te.Expr], te.Expr]] = {
    "aten.lgamma.default": lgamma,
    "aten.digamma.default": digamma,
    "aten.i0.default": _bessel(0, is_scaled=False),
    "aten.special_i0e.default": _bessel(0, is_scaled=True),
    "aten.special_erfcx.default": erfcx,
    "aten.special_modified_bessel_i0.default": _bessel(0, is_scaled=False),
    "aten.special_modified_bessel_i1.default": _bessel(1, is_scaled=False),
    "aten.special_i1.default": _bessel(1, is_scaled=False),
    "aten.special_i1e.default": _bessel(1, is_scaled=True),
}


@converts(*_FUNCTIONS)
def special(node: Node) -> Result:
    """A special function of each element; of integers it is a floating-point number."""
    function, dtype = _FUNCTIONS[node.operator], node.out_dtype()

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.cast(function(te.cast(x[i], f64)), x.dtype), name=node.name)

    return node.te(kernel, node.tensor("self", dtype), name=node.name)


# Functions of two numbers, by loops that end when nothing changes

Pair: TypeAlias = Callable[[te.ExternBuilder, te.Expr, te.Expr], te.Expr]
"""Emits the statements that compute a function of two elements in `f64`, and gives its value."""

_EULER_MACLAURIN = (
    *(12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1307674368000 / 691, 74724249600.0),
    *(-10670622842880000 / 3617, 5109094217170944000 / 43867, -802857662698291200000 / 174611),
)
"""`(2k)!` over the Bernoulli numbers of even index `2k`."""


def _zeta(b: te.ExternBuilder, s: te.Expr, q: te.Expr) -> te.Expr:
    """Hurwitz' zeta function, the sum of `(q + k) ** -s` over all `k`: ten terms, or until `q + k` is 10; then the
    rest by the formula of Euler and Maclaurin.
    """
    found, at, count = (b.alloc((), "f64", name) for name in ("found", "at", "count"))
    b.store(found, (), te.pow(q, -s))
    b.store(at, (), q)
    b.store(count, (), te.const(0, "f64"))
    is_number = te.logical_and(s > 1, te.abs(q) < 1e8)
    with b.while_(te.logical_and(is_number, te.logical_or(count[()] < 9, at[()] <= 9))):
        b.store(at, (), at[()] + 1)
        b.store(count, (), count[()] + 1)
        b.store(found, (), found[()] + te.pow(at[()], -s))
    last = te.pow(at[()], -s)
    rest = last * at[()] / (s - 1) - 0.5 * last
    rising, falling = s, last / at[()]
    for k, divisor in enumerate(_EULER_MACLAURIN):
        rest = rest + rising * falling / divisor
        rising = rising * (s + (2 * k + 1)) * (s + (2 * k + 2))
        falling = falling / (at[()] * at[()])
    infinite, none = te.const(math.inf, "f64"), te.const(math.nan, "f64")
    is_pole = te.logical_and(q <= 0, q == te.floor(q))
    is_undefined = te.logical_or(s < 1, te.logical_and(q < 0, s != te.floor(s)))
    whole = te.select(te.isinf(q), te.const(0, "f64"), found[()] + rest)
    return te.select(s == 1, infinite, te.select(is_undefined, none, te.select(is_pole, infinite, whole)))


_MOST_TERMS = 20000


def _incomplete_gamma(b: te.ExternBuilder, a: te.Expr, x: te.Expr) -> tuple[te.Expr, te.Expr]:
    """The regularised lower and upper incomplete gamma functions: below `a + 1` a series gives the lower one, else the
    continued fraction of Lentz the upper one.
    """
    found, term, at, c, d = (b.alloc((), "f64", name) for name in ("found", "term", "at", "c", "d"))
    is_low = x < a + 1
    is_plain = te.logical_and(a > 0, x > 0, te.logical_not(te.isinf(a)), te.logical_not(te.isinf(x)))
    b.store(at, (), te.const(0, "f64"))
    b.store(term, (), te.select(is_plain, te.const(1, "f64"), te.const(0, "f64")))
    with b.if_(is_low):
        b.store(found, (), te.const(1, "f64"))
        with b.while_(te.logical_and(te.abs(term[()]) > 1e-17 * found[()], at[()] < _MOST_TERMS)):
            b.store(at, (), at[()] + 1)
            b.store(term, (), term[()] * x / (a + at[()]))
            b.store(found, (), found[()] + term[()])
    with b.else_():
        b.store(c, (), te.const(1e300, "f64"))
        b.store(d, (), 1 / (x + 1 - a))
        b.store(found, (), d[()])
        with b.while_(te.logical_and(te.abs(term[()]) > 1e-16, at[()] < _MOST_TERMS)):
            b.store(at, (), at[()] + 1)
            by = at[()] * (a - at[()])
            base = x + (2 * at[()] + 1 - a)
            b.store(d, (), 1 / (by * d[()] + base))
            b.store(c, (), base + by / c[()])
            b.store(term, (), c[()] * d[()] - 1)
            b.store(found, (), found[()] * c[()] * d[()])
    scale = te.exp(a * te.log(x) - x - lgamma(a))
    part = te.select(is_low, scale * found[()] / a, scale * found[()])
    zero, one, none = (te.const(value, "f64") for value in (0, 1, math.nan))
    lower = te.select(is_low, part, 1 - part)
    undefined = te.logical_or(a < 0, x < 0, te.logical_and(a == 0, x == 0), te.logical_and(te.isinf(a), te.isinf(x)))
    is_all, is_none = te.logical_or(a == 0, te.isinf(x)), te.logical_or(x == 0, te.isinf(a))
    at_end = te.select(is_none, zero, te.select(is_all, one, lower))
    return te.select(undefined, none, at_end), te.select(is_plain, te.select(is_low, 1 - part, part), 1 - at_end)


_PAIRS: dict[str, Pair] = {
    "special_zeta": _zeta,
    "igamma": lambda b, a, x: _incomplete_gamma(b, a, x)[0],
    "igammac": lambda b, a, x: te.select(
        te.isnan(_incomplete_gamma(b, a, x)[0]), te.const(math.nan, "f64"), _incomplete_gamma(b, a, x)[1]
    ),
}


def spatial(shape: Sequence[Dim]) -> list[tuple[IterKind, Dim, str]]:
    """The axes of a block over all elements."""
    return [("spatial", extent, f"i{axis}") for axis, extent in enumerate(shape)]


def of_pairs(node: Node, function: Pair, x: Expr, y: Expr) -> Expr:
    """A function of the elements of two tensors, which broadcast."""

    def statements(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block(node.name, *spatial(ins[0].shape)) as i:
            made = function(b, *(te.cast(each[i], f64) for each in ins))
            b.store(outs[0], i, te.cast(made, outs[0].dtype))

    def kernel(one: te.Tensor, other: te.Tensor) -> te.Tensor:
        return te.extern([(one.shape, one.dtype)], [one, other], statements, name=node.name)[0]

    return node.te(kernel, *(op.broadcast_to(each, node.out_dims()) for each in (x, y)), name=node.name)


@converts(
    *("aten.special_zeta.default", "aten.special_zeta.other_scalar", "aten.special_zeta.self_scalar"),
    *("aten.igamma.default", "aten.igammac.default"),
)
def special_of_two(node: Node) -> Result:
    """A special function of two numbers."""
    dtype = node.out_dtype()
    return of_pairs(node, _PAIRS[node.name], node.tensor("self", dtype), node.tensor("other", dtype))


@converts("aten.polygamma.default")
def polygamma(node: Node) -> Result:
    """The derivative of some order of `digamma`: `zeta(order + 1, x)` times the factorial of the order."""
    order, dtype = node.integer("n"), node.out_dtype()
    x = node.tensor("self", dtype)
    if order == 0:

        def kernel(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *i: te.cast(digamma(te.cast(x[i], f64)), x.dtype), name="digamma")

        return node.te(kernel, x, name="digamma")
    factor = (-1.0) ** (order + 1) * math.factorial(order)
    return of_pairs(node, lambda b, s, q: factor * _zeta(b, s, q), node.like(order + 1, x), x)


# Exponents, and common divisors


@converts("aten.frexp.Tensor")
def frexp(node: Node) -> Result:
    """A number of at least one half and below 1, and the power of 2 by which it is multiplied."""

    def exponent(x: te.Expr) -> te.Expr:
        """Up to one too much or too little, where the logarithm is rounded."""
        is_number = te.logical_and(x != 0, te.isfinite(x))
        near = te.floor(te.log2(te.select(is_number, te.abs(x), te.const(1, "f64")))) + 1
        rest = te.abs(te.ldexp(x, te.cast(-near, "i32")))
        exact = te.select(rest >= 1, near + 1, te.select(rest < 0.5, near - 1, near))
        return te.select(is_number, exact, te.const(0, "f64"))

    def powers(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.cast(exponent(te.cast(x[i], f64)), "i32"), name="exponent")

    def fractions(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            wide = te.cast(x[i], f64)
            return te.cast(te.ldexp(wide, te.cast(-exponent(wide), "i32")), x.dtype)

        return te.compute(x.shape, element, name="mantissa")

    x = node.tensor("self")
    return [node.te(fractions, x, name="mantissa"), node.te(powers, x, name="exponent")]


@converts("aten.gcd.default", "aten.lcm.default")
def common_divisor(node: Node) -> Result:
    """The greatest common divisor, or the least common multiple, which is 0 of 0."""
    dtype = str(node.out_dtype())

    def euclid(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block(node.name, *spatial(ins[0].shape)) as i:
            x, y, rest = (b.alloc((), dtype, name) for name in ("x", "y", "rest"))
            b.store(x, (), te.abs(ins[0][i]))
            b.store(y, (), te.abs(ins[1][i]))
            with b.while_(y[()] != 0):
                b.store(rest, (), te.truncmod(x[()], y[()]))
                b.store(x, (), y[()])
                b.store(y, (), rest[()])
            found: te.Expr = te.abs(x[()])
            if node.name == "lcm":
                divisor = te.select(found == 0, te.const(1, dtype), found)
                found = te.abs(te.truncdiv(ins[0][i], divisor) * ins[1][i])
            b.store(outs[0], i, found)

    def kernel(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        return te.extern([(x.shape, dtype)], [x, y], euclid, name=node.name)[0]

    both = (op.broadcast_to(node.tensor(name, node.out_dtype()), node.out_dims()) for name in ("self", "other"))
    return node.te(kernel, *both, name=node.name)


Step = Callable[[te.Expr, te.Expr, te.Expr, te.Expr], te.Expr]
"""The polynomial of degree `k + 1` of the argument, `k`, and the polynomials of degree `k - 1` and `k`."""


@dataclass(frozen=True)
class Polynomials:
    """A family, by the polynomial of degree 1 and the rule for the next one."""

    first: Callable[[te.Expr], te.Expr]
    step: Step
    inside: Callable[[te.Expr, te.Expr], te.Expr] | None = None
    """What the polynomial of a high degree is between -1 and 1: a quotient of sines."""
    at_one: tuple[bool, bool] = (False, False)
    """Whether the value at 1 and the absolute value at -1 grow with the degree `n`: as `slope * n + 1`, or are 1."""
    slope: int = 0
    most: int | None = None
    """The degree from which on PyTorch gives NaN."""

    def value(self, b: te.ExternBuilder, x: te.Expr, n: te.Expr) -> te.Expr:
        """Emits the statements for an argument and a degree, which is cut to an integer; below 0 the value is 0."""
        count, older, newer, k = (
            b.alloc((), dtype, name)
            for dtype, name in (("i64", "count"), ("f64", "older"), ("f64", "newer"), ("i64", "k"))
        )
        b.store(count, (), te.cast(n, "i64"))
        b.store(older, (), te.const(1, "f64"))
        b.store(newer, (), self.first(x))
        b.store(k, (), te.const(1, "i64"))
        is_closed = te.const(False, "i1")
        if self.inside is not None:
            is_closed = te.logical_or(te.abs(x) == 1, te.logical_and(te.abs(x) < 1, count[()] > _HIGH))
        going_on = te.logical_and(k[()] < count[()], te.logical_not(te.isnan(newer[()])), te.logical_not(is_closed))
        if self.most is not None:
            going_on = te.logical_and(going_on, count[()] <= self.most)
        with b.while_(going_on):
            degree = te.cast(k[()], "f64")
            following = b.let(self.step(x, degree, older[()], newer[()]), "following")
            b.store(older, (), newer[()])
            b.store(newer, (), following)
            b.store(k, (), k[()] + 1)
        found: te.Expr = newer[()]
        degree = te.cast(count[()], "f64")
        if self.inside is not None:
            found = te.select(te.logical_and(te.abs(x) < 1, count[()] > _HIGH), self.inside(x, degree), found)
            found = te.select(te.abs(x) == 1, self._at_end(x, degree), found)
        if self.most is not None:
            found = te.select(count[()] > self.most, te.const(math.nan, "f64"), found)
        found = te.select(count[()] == 0, te.const(1, "f64"), found)
        return te.select(count[()] < 0, te.const(0, "f64"), found)

    def _at_end(self, x: te.Expr, degree: te.Expr) -> te.Expr:
        """At 1 and at -1."""
        high, low = (self.slope * degree + 1 if grows else te.const(1, "f64") for grows in self.at_one)
        is_even = degree == 2 * te.floor(degree * 0.5)
        return te.select(x > 0, high, te.select(is_even, low, -low))


_HIGH = 8
"""Above this degree polynomials of Chebyshev are computed by sines between -1 and 1."""


def _chebyshev(x: te.Expr, k: te.Expr, older: te.Expr, newer: te.Expr) -> te.Expr:
    return 2 * x * newer - older


CHEBYSHEV = {
    "t": Polynomials(lambda x: x, _chebyshev, lambda x, n: te.cos(n * te.acos(x))),
    "u": Polynomials(
        lambda x: 2 * x,
        _chebyshev,
        lambda x, n: te.sin((n + 1) * te.acos(x)) / te.sin(te.acos(x)),
        (True, True),
        1,
    ),
    "v": Polynomials(
        lambda x: 2 * x - 1,
        _chebyshev,
        lambda x, n: te.cos((n + 0.5) * te.acos(x)) / te.cos(te.acos(x) * 0.5),
        (False, True),
        2,
    ),
    "w": Polynomials(
        lambda x: 2 * x + 1,
        _chebyshev,
        lambda x, n: te.sin((n + 0.5) * te.acos(x)) / te.sin(te.acos(x) * 0.5),
        (True, False),
        2,
    ),
}

OTHERS = {
    "hermite_polynomial_h": Polynomials(
        lambda x: 2 * x, lambda x, k, older, newer: 2 * x * newer - 2 * k * older, most=512
    ),
    "hermite_polynomial_he": Polynomials(lambda x: x, lambda x, k, older, newer: x * newer - k * older, most=512),
    "laguerre_polynomial_l": Polynomials(
        lambda x: 1 - x, lambda x, k, older, newer: ((2 * k + 1 - x) * newer - k * older) / (k + 1)
    ),
    "legendre_polynomial_p": Polynomials(
        lambda x: x, lambda x, k, older, newer: ((2 * k + 1) * x * newer - k * older) / (k + 1)
    ),
}

FAMILIES = {f"chebyshev_polynomial_{kind}": family for kind, family in CHEBYSHEV.items()} | OTHERS


@converts(
    *(
        f"aten.special_{prefix}{name}.{overload}"
        for name in FAMILIES
        for prefix in (("", "shifted_") if name.startswith("chebyshev") else ("",))
        for overload in ("default", "x_scalar", "n_scalar")
    )
)
def polynomial_of_degree(node: Node) -> Result:
    """The polynomial of a degree; shifted ones are those of `2 * x - 1`."""
    dtype = node.out_dtype()
    name = node.name.removeprefix("special_")
    family, is_shifted = FAMILIES[name.removeprefix("shifted_")], name.startswith("shifted_")

    def function(b: te.ExternBuilder, x: te.Expr, n: te.Expr) -> te.Expr:
        return family.value(b, 2 * x - 1 if is_shifted else x, n)

    return of_pairs(node, function, node.tensor("x", dtype), node.tensor("n", dtype))
