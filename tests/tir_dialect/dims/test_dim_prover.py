"""What the prover can show, what it must not claim, and bounds."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.dims import Tree, build, environments, trees, value
from tir_dialect.dims import Bounds, Prover, symbol

SIZES = Prover()
BOUNDED = Prover(
    {
        "n": (1, 2048),
        "m": (1, None),
        "s": (-4, 4),
        "i": (0, "n - 1"),
        "j": (0, 3),
        "block": (0, "ceildiv(n, 8) - 1"),
        "thread": (0, 7),
        "one": (1, 1),
    }
)


@pytest.mark.parametrize(
    ("prover", "left", "right"),
    [
        (SIZES, "0", "n"),
        (SIZES, "n", "n + m"),
        (SIZES, "4 * floordiv(n, 4)", "n"),
        (SIZES, "n", "4 * floordiv(n, 4) + 3"),
        (SIZES, "n", "8 * ceildiv(n, 8)"),
        (SIZES, "8 * ceildiv(n, 8)", "n + 7"),
        (SIZES, "n", "n + mod(-n, 8)"),
        (SIZES, "floordiv(n + 1, 2)", "n"),
        (SIZES, "ceildiv(n, 4)", "ceildiv(n, 2)"),
        (SIZES, "floordiv(n, m)", "n"),
        (SIZES, "m * floordiv(n, m)", "n"),
        (SIZES, "mod(n, m) + 1", "m"),
        (SIZES, "min(n, m)", "max(n, m)"),
        (SIZES, "min(n, m)", "n"),
        (SIZES, "n", "max(n, m, k)"),
        (SIZES, "max(n, m)", "n + m"),
        (SIZES, "n * m", "n * m + n"),
        (SIZES, "n", "n * n"),
        (SIZES, "2 * n", "n * n + 1"),
        (SIZES, "n", "max(n * n, 1)"),
        (SIZES, "2 * n", "2 * m + 2 * n + 1"),
        (BOUNDED, "n", "2048"),
        (BOUNDED, "n", "n * m"),
        (BOUNDED, "n", "n * n"),
        (BOUNDED, "n * m", "2048 * m"),
        (BOUNDED, "n", "broadcast(n, m)"),
        (BOUNDED, "4 * i + j", "4 * n - 1"),
        (BOUNDED, "i * m + m", "n * m"),
        (BOUNDED, "8 * block + thread", "n + 6"),
        (BOUNDED, "floordiv(i, 4)", "floordiv(n - 1, 4)"),
        (BOUNDED, "s * s", "16"),
        (BOUNDED, "s * m", "4 * m"),
    ],
)
def test_less_equal_is_shown(prover: Prover, left: str, right: str):
    assert prover.less_equal(left, right) is True
    assert prover.less(right, left) is False


@pytest.mark.parametrize(
    ("prover", "left", "right"),
    [
        (SIZES, "8 * floordiv(n, 8) + mod(n, 8)", "n"),
        (SIZES, "8 * ceildiv(n, 8) - mod(-n, 8)", "n"),
        (SIZES, "m * floordiv(n, m) + mod(n, m)", "n"),
        (SIZES, "max(n, 0)", "n"),
        (SIZES, "min(n + 1, m + 1)", "min(n, m) + 1"),
        (SIZES, "min(n, m) + max(n, m)", "n + m"),
        (SIZES, "min(2 * n, 2 * m)", "2 * min(n, m)"),
        (SIZES, "floordiv(3 * n, 4)", "n - ceildiv(n, 4)"),
        (BOUNDED, "floordiv(4 * i + j, 4)", "i"),
        (BOUNDED, "mod(4 * i + j, 4)", "j"),
        (BOUNDED, "floordiv(8 * block + thread, 8)", "block"),
        (BOUNDED, "mod(i, n)", "i"),
        (BOUNDED, "floordiv(m * n + i, n)", "m"),
        (BOUNDED, "max(n, 1)", "n"),
        (BOUNDED, "broadcast(one, n)", "n"),
        (BOUNDED, "broadcast(n + 1, k)", "n + 1"),
        (BOUNDED, "floordiv(thread, 8) * n", "0"),
    ],
)
def test_equal_is_shown(prover: Prover, left: str, right: str):
    assert prover.equal(left, right) is True


@pytest.mark.parametrize(
    ("prover", "left", "right"),
    [
        (SIZES, "n", "n + 1"),
        (SIZES, "3", "4"),
        (SIZES, "2 * n", "2 * m + 1"),
        (SIZES, "n + 1", "0"),
        (SIZES, "4 * floordiv(n, 4)", "n + 1"),
        (BOUNDED, "n", "0"),
        (BOUNDED, "n", "4096"),
        (BOUNDED, "i", "n"),
        (BOUNDED, "n + m", "1"),
    ],
)
def test_unequal_is_shown(prover: Prover, left: str, right: str):
    assert prover.equal(left, right) is False
    assert prover.equal(right, left) is False


@pytest.mark.parametrize(
    ("left", "right"), [("n", "m"), ("n", "4"), ("n * m", "n * k"), ("n", "2 * n"), ("floordiv(n, 2)", "ceildiv(n, 2)")]
)
def test_what_depends_on_the_values_is_unknown(left: str, right: str):
    assert SIZES.equal(left, right) is None
    assert SIZES.less(left, right) is None


def test_divisibility():
    assert SIZES.divisible("4 * n * m", 4) is True
    assert SIZES.divisible("4 * n + 2", 4) is False
    assert SIZES.divisible("n", 4) is None
    assert SIZES.divisible("n * (n + 1)", 2) is True
    assert SIZES.divisible("n * (n + 1) * (n + 2)", -6) is True
    assert SIZES.divisible("n * n + 1", 4) is False
    assert SIZES.divisible("n * m", "m") is True
    assert SIZES.divisible("8 * ceildiv(n, 8)", 8) is True
    assert BOUNDED.divisible("thread + 1", 16) is False
    with pytest.raises(ZeroDivisionError):
        SIZES.divisible("n", 0)


@pytest.mark.parametrize(
    ("prover", "text", "range_"),
    [
        (SIZES, "n", (0, None)),
        (SIZES, "-n", (None, 0)),
        (SIZES, "7", (7, 7)),
        (SIZES, "mod(n, 8) + 1", (1, 8)),
        (SIZES, "n - 4 * floordiv(n, 4)", (0, 3)),
        (SIZES, "mod(n, -8)", (-7, 0)),
        (BOUNDED, "4 * n + 1", (5, 8193)),
        (BOUNDED, "n * n - n", (0, 2048 * 2047)),
        (BOUNDED, "s * s", (0, 16)),
        (BOUNDED, "4 * i + j", (0, 8191)),
        (BOUNDED, "n - i", (1, 2048)),
        (BOUNDED, "min(n, m)", (1, 2048)),
        (BOUNDED, "max(n, 4)", (4, 2048)),
        (BOUNDED, "broadcast(n + 1, m)", (2, 2049)),
        (BOUNDED, "floordiv(n, m)", (0, 2048)),
        (BOUNDED, "floordiv(-n, 2)", (-1024, -1)),
    ],
)
def test_ranges(prover: Prover, text: str, range_: tuple[int | None, int | None]):
    assert prover.range(text) == range_


@pytest.mark.parametrize(
    ("text", "simpler"),
    [
        ("floordiv(4 * i + j, 4)", "i"),
        ("mod(4 * i + j, 4)", "j"),
        ("floordiv(32 * i + 4 * thread + j, 16)", "2 * i + floordiv(thread, 4)"),
        ("floordiv(4 * i + j, 4 * n)", "0"),
        ("max(n, 1) + min(i, n)", "i + n"),
        ("8 * floordiv(k, 8) + mod(k, 8)", "k"),
        ("broadcast(one, k) * one", "k"),
        ("broadcast(n, k)", "broadcast(n, k)"),
        ("min(n, m)", "min(n, m)"),
    ],
)
def test_simplification_under_bounds(text: str, simpler: str):
    assert str(BOUNDED.simplify(text)) == str(build_text(simpler))


def build_text(text: str):
    return symbol("n") * 0 + SIZES.simplify(text)


def test_an_expression_without_values_stays():
    prover = Prover({"z": (0, 0)})
    assert str(prover.simplify("floordiv(n, z)")) == "floordiv(n, z)"


MULTILINEAR = trees(("+", "-", "*"), size=6)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(MULTILINEAR, st.tuples(*[st.integers(-3, 3)] * 3), st.tuples(*[st.integers(0, 3)] * 3))
def test_exact_for_products_of_different_symbols(tree: Tree, lows: tuple[int, ...], extents: tuple[int, ...]):
    dim = build(tree)
    assume(all(power == 1 for _, monomial in dim.terms for _, power in monomial))
    box = {name: (low, low + extent) for name, low, extent in zip("kmn", lows, extents, strict=True)}
    values = [dim.evaluate(env) for env in _box(box)]
    prover = Prover(box)
    assert prover.range(dim) == (min(values), max(values))
    assert (prover.less_equal(0, dim) is True) == (min(values) >= 0)
    assert (prover.less_equal(0, dim) is False) == (max(values) < 0)


def _box(box: dict[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
    for env in environments(-3, 6, tuple(box)):
        if all(low <= env[name] <= high for name, (low, high) in box.items()):
            yield env


@settings(deadline=None, derandomize=True, max_examples=300)
@given(trees(size=5), trees(size=4))
def test_symbolic_bounds_are_never_contradicted(left: Tree, right: Tree):
    prover = Prover({"n": (0, 6), "m": (-1, "n - 1"), "k": ("m", "floordiv(n, 2) + 1")})
    envs = [
        e for e in environments(-1, 6) if e["n"] >= 0 and -1 <= e["m"] < e["n"] and e["m"] <= e["k"] <= e["n"] // 2 + 1
    ]
    try:
        lhs, rhs = build(left), build(right)
    except (ZeroDivisionError, ValueError):
        assume(False)
        raise
    less_equal, equal, simpler = prover.less_equal(lhs, rhs), prover.equal(lhs, rhs), prover.simplify(lhs)
    least, greatest = prover.range(lhs)
    for env in envs:
        a, b = value(left, env), value(right, env)
        if a is None:
            continue
        assert least is None or least <= a
        assert greatest is None or a <= greatest
        assert simpler.evaluate(env) == a
        if b is not None:
            assert less_equal in (None, a <= b)
            assert equal in (None, a == b)


def test_bounds_are_a_mapping_with_a_default():
    bounds = Bounds({"n": (1, 2048), "k": (0, None), "i": (0, "n - 1"), "z": (None, 3)})
    assert bounds["n"] == (1, 2048)
    assert bounds["other"] == (0, None)
    assert set(bounds) == {"n", "i", "z"}
    assert "k" not in bounds
    assert bounds["i"] == (0, symbol("n") - 1)
    assert repr(bounds) == "Bounds(n in [1, 2048], i in [0, n - 1], z in (-inf, 3])"
    assert bounds.text("k") == "[0, inf)"
    wider = bounds.with_entries({"n": (0, 4)})
    assert wider["n"] == (0, 4)
    assert bounds["n"] == (1, 2048)
    assert Bounds({"n": (1, 2), "m": (3, 4)}) == Bounds({"m": (3, 4), "n": (1, 2)})
    assert hash(Bounds({"n": (1, 2), "m": (3, 4)})) == hash(Bounds({"m": (3, 4), "n": (1, 2)}))


def test_impossible_bounds_are_refused():
    with pytest.raises(ValueError, match=r"bounds of 'n' are empty: \[3, 2\]"):
        Bounds({"n": (3, 2)})
    with pytest.raises(ValueError, match="bounds refer to each other in a circle: i -> n -> i"):
        Bounds({"i": (0, "n - 1"), "n": ("i + 1", None)})


def test_default_symbols_may_be_negative_when_bounds_say_so():
    assert Prover({"n": (None, None)}).less_equal(0, "n") is None
    assert Prover({"n": (-1, None)}).less_equal(-1, "n") is True


def test_a_hard_question_ends():
    names = [f"x{i}" for i in range(24)]
    left = " + ".join(f"min({a}, {b}) * mod({b}, {a} + 1)" for a, b in pairwise(names))
    assert SIZES.less_equal(left, "y") is None
