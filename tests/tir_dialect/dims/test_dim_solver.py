import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dims import environments
from tir_dialect.dims import (
    Bounds,
    CheckKind,
    Dim,
    DimLike,
    MatchError,
    Prover,
    constant,
    determined,
    floordiv,
    match,
    solve,
    symbol,
)


def texts(patterns: list[tuple[DimLike, DimLike]], unknowns: str, **options: object) -> tuple[list[str], list[str]]:
    solution = solve(patterns, unknowns.split(), **options)
    return [f"{name} = {value}" for name, value in solution.bindings.items()], [str(c) for c in solution.checks]


@pytest.mark.parametrize(
    ("patterns", "unknowns", "bindings", "checks"),
    [
        # a symbol alone binds; a second time it is compared
        ([("n", "a")], "n", ["n = a"], []),
        ([("n", "a"), ("n", "b")], "n", ["n = a"], ["a == b"]),
        ([("n", "a"), ("n", "a")], "n", ["n = a"], []),
        # positions that bind come first, whatever the order
        ([("x * y", "a"), ("x", "b"), ("y", "c")], "x y", ["x = b", "y = c"], ["b * c == a"]),
        # linear patterns are solved
        ([("n + 1", "a")], "n", ["n = a - 1"], ["a - 1 >= 0"]),
        ([("4 * n", "a")], "n", ["n = floordiv(a, 4)"], ["mod(a, 4) == 0"]),
        ([("8 - n", "a")], "n", ["n = 8 - a"], ["8 - a >= 0"]),
        (
            [("2 * n + m", "a"), ("m", "b")],
            "n m",
            ["m = b", "n = floordiv(a - b, 2)"],
            ["mod(a - b, 2) == 0", "a - b >= 0"],
        ),
        (
            [("n + m", "a"), ("m + k", "b"), ("k", "c")],
            "n m k",
            ["k = c", "m = b - c", "n = a + c - b"],
            ["b - c >= 0", "a + c - b >= 0"],
        ),
        ([("k * n", "a"), ("k", 3)], "n k", ["k = 3", "n = floordiv(a, 3)"], ["mod(a, 3) == 0"]),
        # a linear pattern of a symbol that another pattern binds is only checked
        ([("n + 1", "a"), ("n", "b")], "n", ["n = b"], ["b + 1 == a"]),
        # what is not linear is checked once its symbols are known
        ([("floordiv(n, 2)", "a"), ("n", "b")], "n", ["n = b"], ["floordiv(b, 2) == a"]),
        ([("n * n", "a"), ("n", "b")], "n", ["n = b"], ["b * b == a"]),
        # known symbols mean the same on both sides
        ([("n + known", "known + 4")], "n", ["n = 4"], []),
        ([("known", "a")], "", [], ["known == a"]),
        # an unknown is not the symbol of the same name in a value
        ([("n", "2 * n"), ("m", "n"), ("n + m", "3 * n")], "n m", ["n = 2 * n", "m = n"], []),
        ([("n + 1", "n")], "n", ["n = n - 1"], ["n - 1 >= 0"]),
        # integers are decided at once
        ([("n + 1", 8), ("4 * m", 12)], "n m", ["n = 7", "m = 3"], []),
        ([(4, 4)], "", [], []),
        # what the prover can show needs no check
        ([("4 * n", "8 * a")], "n", ["n = 2 * a"], []),
        ([("n + 2", "a + 3")], "n", ["n = a + 1"], []),
    ],
)
def test_solutions(patterns: list[tuple[DimLike, DimLike]], unknowns: str, bindings: list[str], checks: list[str]):
    assert texts(patterns, unknowns) == (bindings, checks)


@pytest.mark.parametrize(
    ("patterns", "unknowns", "message", "source"),
    [
        ([("n + 1", 0)], "n", "0 does not match n + 1 with n = -1", 0),
        ([("4 * n", 6)], "n", "6 does not match 4 * n", 0),
        ([("n", 3), ("n", 4)], "n", "4 does not match n with n = 3", 1),
        ([("n + 1", "a"), ("n", "a")], "n", "a does not match n + 1 with n = a", 0),
        ([("4 * n", "4 * a + 2")], "n", "4 * a + 2 does not match 4 * n", 0),
        ([(3, 4)], "", "4 does not match 3", 0),
        ([("n", -1)], "n", "-1 does not match n", 0),
        ([("n * m", "a")], "n m", "cannot solve m * n for 'm': expected 'm' alone in some dimension", 0),
        ([("n * n", 9)], "n", "cannot solve n * n for 'n'", 0),
        ([("n + m", "a"), ("n - m", "b")], "n m", "cannot solve m + n for 'm'", 0),
        ([("n", "a")], "n m", "'m' occurs in no pattern", -1),
    ],
)
def test_refusals(patterns: list[tuple[DimLike, DimLike]], unknowns: str, message: str, source: int):
    with pytest.raises(MatchError) as caught:
        solve(patterns, unknowns.split())
    assert message in str(caught.value)
    assert caught.value.source == source


def test_sources_of_bindings_and_checks():
    solution = solve([("n * m", "a"), ("4 * n", "b"), ("m", "c")], ["n", "m"])
    assert solution.sources == {"m": 2, "n": 1}
    assert [(check.kind, check.source) for check in solution.checks] == [
        (CheckKind.DIVISIBLE, 1),
        (CheckKind.EQUAL, 0),
    ]


def test_bounds_of_unknowns_are_checked():
    bounds = Bounds({"n": (1, 2048), "k": (0, "n - 1")})
    patterns: list[tuple[DimLike, DimLike]] = [("k", "b"), ("2 * n", "a")]
    bindings, checks = texts(patterns, "n k", bounds=bounds)
    assert bindings == ["k = b", "n = floordiv(a, 2)"]
    assert checks == ["mod(a, 2) == 0", "a - 2 >= 0", "4096 - a >= 0", "floordiv(a, 2) - b - 1 >= 0"]
    prover = Prover({"a": (2, 4096)})
    assert texts([("2 * n", "2 * a")], "n", bounds=Bounds({"n": (1, 4096)}), prover=prover) == (["n = a"], [])
    with pytest.raises(MatchError, match="4096 does not match n"):
        solve([("n", 4096)], ["n"], bounds=bounds)
    assert texts([("n", -3)], "n", bounds=Bounds({"n": (None, None)})) == (["n = -3"], [])


def test_match_integers():
    assert match(["n", "4 * m", "n + m"], [3, 8, 5]) == {"n": 3, "m": 2}
    assert match(["n + k"], [5], {"k": 2}) == {"k": 2, "n": 3}
    with pytest.raises(MatchError, match="6 does not match m \\+ n with m = 2, n = 3"):
        match(["n", "4 * m", "n + m"], [3, 8, 6])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        match(["n", "m"], [3])


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.permutations([("n", 0), ("m", 1), ("k", 2)]),
    st.lists(st.tuples(*[st.integers(-4, 4)] * 4), min_size=3, max_size=3),
    st.permutations(range(5)),
)
def test_solutions_are_what_enumeration_finds(
    chain: list[tuple[str, int]], rows: list[tuple[int, ...]], order: list[int]
):
    """A triangular linear system in any order: symbol after symbol can be solved for."""
    n, m, k = (symbol(name) for name, _ in chain)
    first, second, third = rows
    patterns: list[Dim] = [
        (first[0] or 1) * n + first[3],
        (second[0] or 2) * m + second[1] * n + second[3],
        (third[0] or 3) * k + third[1] * m + third[2] * n,
        n + m + k,
        n * m,
    ]
    patterns = [patterns[i] for i in order]
    names = tuple(name for name, _ in chain)
    for env in environments(0, 1, names):
        values = [pattern.evaluate(env) for pattern in patterns]
        assert match(patterns, values) == env
    values = [pattern.evaluate(dict.fromkeys(names, 1)) + (i == 0) for i, pattern in enumerate(patterns)]
    expected = [
        e for e in environments(0, 5, names) if all(p.evaluate(e) == v for p, v in zip(patterns, values, strict=True))
    ]
    try:
        assert match(patterns, values) in expected
    except MatchError:
        assert not expected


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(-5, 5).filter(bool), st.integers(-6, 6), st.integers(-10, 30))
def test_run_time_checks_decide_like_integers(factor: int, offset: int, value: int):
    """Solving for a symbolic value and checking later gives what solving for the integer gives."""
    pattern = factor * symbol("n") + offset
    try:
        expected = match([pattern], [value])
    except MatchError:
        expected = None
    try:
        solution = solve([(pattern, "v")], ["n"], prover=Prover({"v": (None, None)}))
    except MatchError:
        assert expected is None
        return
    env = {"v": value}
    if all(check.holds(env) for check in solution.checks):
        assert expected == {"n": solution.bindings["n"].evaluate(env)}
    else:
        assert expected is None


def test_checks_evaluate():
    (check,) = solve([("n", "a"), ("n", "b")], ["n"]).checks
    assert check.holds({"a": 3, "b": 3})
    assert not check.holds({"a": 3, "b": 4})
    assert check.lhs is symbol("a")
    assert check.rhs is symbol("b")
    assert constant(0) is solve([("n + 1", "a")], ["n"]).checks[0].rhs


def test_determined_symbols():
    """Those that follow from any values of the patterns; `solve` may find more when it knows the values."""
    n, m, k = symbol("n"), symbol("m"), symbol("k")
    assert determined([n, m]) == {"n", "m"}
    assert determined([2 * n + m, m + 1]) == {"n", "m"}
    assert determined([n, 2 * floordiv(m, 2)]) == {"n"}
    assert determined([floordiv(n, 2), n, n * m, k + m]) == {"n"}
    assert determined([constant(4)]) == set()
