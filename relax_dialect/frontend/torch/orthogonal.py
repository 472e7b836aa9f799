"""Orthogonal polynomials of a degree that is data: Chebyshev's, Hermite's, Laguerre's and Legendre's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.special import of_pairs
from tir_dialect import te

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
