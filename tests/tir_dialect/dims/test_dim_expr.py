"""Identity, structure and the rules of the canonical form."""

import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tir_dialect.dims import (
    BroadcastAtom,
    Dim,
    DimSizeError,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    Prover,
    SymbolAtom,
    broadcast,
    ceildiv,
    constant,
    floordiv,
    from_atom,
    from_term,
    is_symbol_name,
    maximum,
    minimum,
    mod,
    parse_dim,
    product,
    symbol,
    to_dim,
    total,
)

k, m, n = symbol("k"), symbol("m"), symbol("n")

SAME = [
    # polynomials
    (n * 4, 4 * n),
    ((n + 1) * (n - 1), n * n - 1),
    ((m + n) * k, n * k + m * k),
    (n - n, constant(0)),
    (2 * n - n, n),
    (3 - (3 - n), n),
    (0 * n, constant(0)),
    # multiples of a constant divisor come out
    ((4 * n) // 4, n),
    ((4 * n + 3) // 4, n),
    ((n + 20) // 4, n // 4 + 5),
    ((5 * n + 4 * m) // 4, n // 4 + n + m),
    ((n - 1) // 4, (n + 3) // 4 - 1),
    ((4 * n + k) // 4, n + k // 4),
    ((4 * n) % 4, constant(0)),
    ((4 * n + 7) % 4, constant(3)),
    ((9 * n) % 4, n % 4),
    ((7 * n) % 8, (-n) % 8),
    # common factors
    ((6 * n + 3) // 9, (2 * n + 1) // 3),
    ((6 * n + 5) // 9, (2 * n + 1) // 3),
    ((6 * n + 5) % 9, 3 * ((2 * n + 1) % 3) + 2),
    ((2 * n * k) // (2 * m * k), n // m),
    ((2 * n * k) % (2 * m * k), 2 * k * (n % m)),
    # nesting
    (n // 4 // 2, n // 8),
    ((n // 4 + 1) // 2, (n + 4) // 8),
    (n % 8 % 4, n % 4),
    ((n % 8 + m) % 4, (m + n) % 4),
    (n % 4 % 8, n % 4),
    ((n % 4) // 4, constant(0)),
    ((4 * n + m % 4) // 4, n),
    ((4 * n + m % 4) // 8, n // 2),
    ((8 * n + m % 4) % 8, m % 4),
    # negative numerators and denominators
    ((-n) // 4, -ceildiv(n, 4)),
    (n // -4, (-n) // 4),
    (n % -4, -((-n) % 4)),
    (ceildiv(n, 4), (n + 3) // 4),
    (ceildiv(4 * n, 4), n),
    ((-n) // (-m), n // m),
    # symbolic divisors
    ((m * n) // n, m),
    ((m * n + k) // n, m + k // n),
    ((m * n + k) % n, k % n),
    ((m * n) % n, constant(0)),
    ((n + 1) * (n + 2) // (n + 1), n + 2),
    (ceildiv(m * n, n), m),
    (n // n, constant(1)),
    (constant(0) // n, constant(0)),
    (n // 1, n),
    (n % 1, constant(0)),
    (constant(-7) // 2, constant(-4)),
    (constant(-7) % 2, constant(1)),
    # min and max
    (minimum(n, m), minimum(m, n, m)),
    (minimum(n, minimum(m, k)), minimum(minimum(n, m), k)),
    (minimum(n, n + 1), n),
    (maximum(n, n + 1, 3, 5), maximum(5, n + 1)),
    (minimum(n, maximum(n, m)), n),
    (maximum(n, minimum(n, m)), n),
    (minimum(4, 7), constant(4)),
    (maximum(n), n),
    # broadcast
    (broadcast(1, n), n),
    (broadcast(n, 1), n),
    (broadcast(n, n), n),
    (broadcast(n, 4), constant(4)),
    (broadcast(0, n), constant(0)),
    (broadcast(1, 0), constant(0)),
    (broadcast(2 * n, m), 2 * n),
    (broadcast(n, m), broadcast(m, n)),
    (broadcast(n, broadcast(m, k)), broadcast(k, m, n)),
    (broadcast(), constant(1)),
    # sums and products of many
    (product([2, n, m]), 2 * n * m),
    (product([]), constant(1)),
    (total([n, 1, n]), 2 * n + 1),
    (total([]), constant(0)),
]

DIFFERENT = [
    (n, m),
    (n // 2, ceildiv(n, 2)),
    (n * n, n),
    (minimum(n, m), maximum(n, m)),
    ((n // 4) * 4, n),
    (broadcast(n, m), n),
    (broadcast(n + 1, m), n + 1),
    (n % 4, n),
    ((n + m) // 4, n // 4 + m // 4),
]


@pytest.mark.parametrize(("left", "right"), SAME, ids=[f"{left}#{i}" for i, (left, _) in enumerate(SAME)])
def test_equal_dimensions_are_one_object(left: Dim, right: Dim):
    assert left is right


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_dimensions_are_different(left: Dim, right: Dim):
    assert left is not right
    assert left != right


def test_reflected_operators():
    assert 1 + n is n + 1
    assert 1 - n is -(n - 1)
    assert 2 * n is n * 2
    assert 7 // n is floordiv(7, n)
    assert 7 % n is mod(7, n)


def test_constants_and_symbols_tell_what_they_are():
    assert constant(4).is_constant
    assert constant(4).constant_value == 4
    assert constant(0).constant_value == 0
    assert int(constant(4)) == 4
    with pytest.raises(TypeError, match="the dimension n is no number"):
        int(n)
    assert not n.is_constant
    assert n.constant_value is None
    assert (n + 3).constant_term == 3
    assert n.as_symbol == "n"
    assert (2 * n).as_symbol is None
    assert (n + 1).as_symbol is None
    assert (n // 2).as_symbol is None
    assert constant(1).as_symbol is None
    assert (n // m + k * 2 + 1).symbols == {"k", "m", "n"}
    assert constant(1).symbols == frozenset()


def test_structure_can_be_walked():
    dim = 2 * n * n * m - minimum(n, m) + (n // m) * 3 + 7
    assert [coefficient for coefficient, _ in dim.terms] == [2, 3, -1, 7]
    assert [(atom.symbols, power) for atom, power in dim.terms[0][1]] == [({"m"}, 1), ({"n"}, 2)]
    (quotient,) = (atom for atom, _ in dim.terms[1][1])
    assert isinstance(quotient, FloorDivAtom)
    assert (quotient.numerator, quotient.denominator) == (n, m)
    assert dim.terms[-1] == (7, ())
    assert total(from_term(*term) for term in dim.terms) is dim
    assert from_term(0, ()) is constant(0)
    assert from_atom(quotient) is n // m
    for part, kind in [
        (n, SymbolAtom),
        (n % 2, ModAtom),
        (minimum(n, m), MinAtom),
        (maximum(n, m), MaxAtom),
        (broadcast(n, m), BroadcastAtom),
    ]:
        assert isinstance(part.as_atom, kind)
    assert maximum(n, m).as_atom is not None
    assert maximum(n, m).as_atom.operands == (m, n)


def test_substitution_is_simultaneous():
    assert (n + 2 * m).substitute({"n": "m", "m": n}) is m + 2 * n
    assert (n // 2 + m).substitute({"n": 9}) is m + 4
    assert broadcast(n, m).substitute({"n": 1}) is m
    assert (n * n).substitute({"n": n + 1}) is n * n + 2 * n + 1
    assert n.substitute({"m": 3}) is n


def test_evaluation():
    assert ((n + 1) // m).evaluate({"n": -4, "m": 2}) == -2
    assert broadcast(n, m).evaluate({"n": 1, "m": 0}) == 0
    with pytest.raises(ZeroDivisionError):
        (n // m).evaluate({"n": 1, "m": 0})
    with pytest.raises(ValueError, match="extents 3 and 2 do not broadcast"):
        broadcast(n, m).evaluate({"n": 2, "m": 3})
    with pytest.raises(KeyError, match="n"):
        n.evaluate({})


def test_what_never_has_a_value_is_refused():
    with pytest.raises(ZeroDivisionError, match="division of n by zero"):
        n // 0
    with pytest.raises(ZeroDivisionError, match="modulo of n by zero"):
        n % 0
    with pytest.raises(ValueError, match="extents 2 and 3 do not broadcast"):
        broadcast(n, 2, 3)
    with pytest.raises(ValueError, match="min of nothing"):
        minimum()
    with pytest.raises(TypeError):
        n + 1.5
    with pytest.raises(TypeError):
        n + "m"


@pytest.mark.parametrize("name", ["n", "_n", "n.1", "seq_len", "N$2"])
def test_symbol_names(name: str):
    assert is_symbol_name(name)
    assert symbol(name).as_symbol == name


@pytest.mark.parametrize("name", ["", "_", "1n", "n-1", "min", "floordiv", "n m", "ä"])
def test_impossible_symbol_names(name: str):
    assert not is_symbol_name(name)
    with pytest.raises(ValueError, match="cannot name a symbol"):
        symbol(name)


def test_dimensions_and_atoms_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        n.terms = ()
    assert n.as_atom is not None
    with pytest.raises(AttributeError, match="immutable"):
        n.as_atom.operands = ()


def test_atoms_copy_and_pickle_to_themselves():
    for dim in (n, n // 3, minimum(n, m)):
        atom = dim.as_atom
        assert pickle.loads(pickle.dumps(atom)) is atom


def test_unused_dimensions_are_freed():
    from tir_dialect.dims import expr

    gc.collect()
    before = len(expr._dims)
    kept = [to_dim(f"freed{i}") + i for i in range(20000)]
    assert len(expr._dims) >= before + 20000
    del kept
    gc.collect()
    caches = 3 * 8192 + 4096
    assert len(expr._dims) < before + caches


def test_the_deepest_nesting_works_and_more_is_refused():
    dim = n
    for i in range(100):
        dim = (dim + symbol(f"s{i}")) // 2
    assert parse_dim(str(dim)) is dim
    assert pickle.loads(pickle.dumps(dim)) is dim
    assert dim.evaluate(dict.fromkeys(dim.symbols, 3)) == 3
    assert dim.substitute(dict.fromkeys(dim.symbols, 3)) is constant(3)
    assert Prover().less_equal(0, dim) is True
    assert Prover().simplify(dim) is dim
    with pytest.raises(ValueError, match="dimension is nested deeper than 100 levels"):
        (dim + m) // 2


def test_what_doubles_with_each_step_is_refused():
    """An expression may have a part many times over, whose text is larger than what is in memory."""
    texts: list[str] = []

    def doubled(dim: Dim, times: int) -> Dim:
        for i in range(times):
            dim = maximum(dim // (i + 2), dim % m)
            texts.append(str(dim))
        return dim

    with pytest.raises(DimSizeError, match="dimension has more than 16384 symbols, numbers and functions"):
        doubled(n, 90)
    assert len(texts[-1]) < 1 << 20


@pytest.mark.parametrize("step", [lambda dim: dim * dim, lambda dim: dim * (n + m + 1), lambda dim: (dim + 1) * dim])
def test_products_without_an_end_are_refused(step):
    def repeated(dim: Dim, times: int) -> Dim:
        for _ in range(times):
            dim = step(dim)
        return dim

    with pytest.raises(DimSizeError):
        repeated(n + m, 1000)


def test_threads_get_the_same_object():
    def make(_: int) -> list[Dim]:
        return [symbol(f"thread{i}") * i + i // 2 for i in range(200)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(make, range(8)))
    assert all(left is right for other in results for left, right in zip(results[0], other, strict=True))


def test_text_is_the_same_in_every_run():
    text = "min(b, a, c) * z + y * x + mod(q, p) + broadcast(v, u)"
    code = f"from tir_dialect.dims import parse_dim; print(parse_dim('{text}'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert runs == {"x * y + z * min(a, b, c) + mod(q, p) + broadcast(u, v)\n"}


def test_the_package_imports_nothing_of_xdsl():
    code = "import sys, tir_dialect.dims; print([name for name in sys.modules if name.startswith(('xdsl', 'numpy'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
