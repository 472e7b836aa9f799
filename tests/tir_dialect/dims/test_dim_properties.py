"""Dimensions against a reference that evaluates syntax trees, on all small values, and against sympy."""

import copy
import pickle

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.dims import NO_VALUE, SYMBOLS, Tree, build, environments, trees, value
from tir_dialect.dims import Bounds, Dim, Prover, parse_dim

SEEDED = settings(deadline=None, derandomize=True, max_examples=300)
GRID = list(environments(-3, 5))
POLYNOMIALS = ("+", "-", "*")


def built(tree: Tree) -> Dim:
    try:
        return build(tree)
    except NO_VALUE:
        assert all(value(tree, env) is None for env in GRID)
        assume(False)
        raise


@SEEDED
@given(trees())
def test_canonical_form_keeps_every_value(tree: Tree):
    dim = built(tree)
    for env in GRID:
        expected = value(tree, env)
        if expected is not None:
            assert dim.evaluate(env) == expected, (str(dim), env)


@SEEDED
@given(trees())
def test_text_parses_back_to_the_same_object(tree: Tree):
    dim = built(tree)
    assert parse_dim(str(dim)) is dim


@SEEDED
@given(trees())
def test_copies_are_the_same_object(tree: Tree):
    dim = built(tree)
    assert copy.copy(dim) is copy.deepcopy(dim) is pickle.loads(pickle.dumps(dim)) is dim


@SEEDED
@given(trees(), trees(size=3), trees(size=3))
def test_substitution_commutes_with_evaluation(tree: Tree, for_m: Tree, for_n: Tree):
    dim, replacements = built(tree), {"m": built(for_m), "n": built(for_n)}
    for env in GRID[::7]:
        inner = {"k": env["k"], "m": value(for_m, env), "n": value(for_n, env)}
        if inner["m"] is None or inner["n"] is None:
            continue
        known = {name: number for name, number in inner.items() if number is not None}
        expected = value(tree, known)
        if expected is not None:
            assert dim.substitute(replacements).evaluate(env) == expected


@SEEDED
@given(trees(size=5), trees(size=5), st.sampled_from((-3, 0, 1)), st.sampled_from((2, 5)))
def test_prover_never_contradicts_evaluation(left: Tree, right: Tree, low: int, high: int):
    lhs, rhs = built(left), built(right)
    prover = Prover(Bounds(dict.fromkeys(SYMBOLS, (low, high))))
    answers = prover.equal(lhs, rhs), prover.less_equal(lhs, rhs), prover.less(lhs, rhs)
    divisible = prover.divisible(lhs, 3)
    least, greatest = prover.range(lhs)
    simpler = prover.simplify(lhs)
    for env in environments(low, high):
        a, b = value(left, env), value(right, env)
        if a is None:
            continue
        assert least is None or least <= a
        assert greatest is None or a <= greatest
        assert divisible in (None, a % 3 == 0)
        assert simpler.evaluate(env) == a
        if b is not None:
            for answer, truth in zip(answers, (a == b, a <= b, a < b), strict=True):
                assert answer in (None, truth), (str(lhs), str(rhs), env)


@SEEDED
@given(trees(POLYNOMIALS), trees(POLYNOMIALS))
def test_polynomial_identities_are_decided_as_by_sympy(left: Tree, right: Tree):
    same = sympy.expand(to_sympy(left) - to_sympy(right)) == 0
    assert (build(left) is build(right)) == same


@SEEDED
@given(trees(POLYNOMIALS))
def test_a_polynomial_expanded_by_sympy_is_the_same_object(tree: Tree):
    text = str(sympy.expand(to_sympy(tree)))
    for power in range(9, 1, -1):
        for name in SYMBOLS:
            text = text.replace(f"{name}**{power}", "*".join([name] * power))
    assert parse_dim(text) is build(tree)


@settings(SEEDED, max_examples=100)
@given(trees(("+", "-", "*", "//", "%", "min", "max"), size=5))
def test_values_agree_with_sympy(tree: Tree):
    dim = built(tree)
    assume(all(value(tree, env) is not None for env in GRID[::61]))
    expression = to_sympy(tree)
    for env in GRID[::61]:
        assert dim.evaluate(env) == expression.subs({to_sympy(name): number for name, number in env.items()})


@pytest.mark.slow
@settings(deadline=None, max_examples=5000)
@given(trees(size=12))
def test_sweep(tree: Tree):
    dim = built(tree)
    assert parse_dim(str(dim)) is dim
    simpler = Prover(Bounds(dict.fromkeys(SYMBOLS, (-3, 5)))).simplify(dim)
    for env in GRID:
        expected = value(tree, env)
        if expected is not None:
            assert dim.evaluate(env) == expected == simpler.evaluate(env)


def to_sympy(tree: Tree) -> sympy.Expr:
    if isinstance(tree, int):
        return sympy.Integer(tree)
    if isinstance(tree, str):
        return sympy.Symbol(tree, integer=True)
    op, lhs, rhs = tree[0], to_sympy(tree[1]), to_sympy(tree[2])
    match op:
        case "+":
            return lhs + rhs
        case "-":
            return lhs - rhs
        case "*":
            return lhs * rhs
        case "//":
            return sympy.floor(lhs / rhs)
        case "%":
            return lhs - rhs * sympy.floor(lhs / rhs)
        case "min":
            return sympy.Min(lhs, rhs)
        case "max":
            return sympy.Max(lhs, rhs)
        case _:
            raise ValueError(op)
