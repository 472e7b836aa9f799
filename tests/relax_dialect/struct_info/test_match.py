"""Matching of declared and actual types: bindings, and what is left for run time."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, i64

from relax_dialect.struct_info.match import (
    AccessPath,
    Match,
    Mismatch,
    Verdict,
    _same_static_type,
    entry_match,
    match_types,
)
from relax_dialect.struct_info.symbols import erase_static
from relax_dialect.struct_info.types import TensorType
from tests.support.struct_info import func, info
from tir_dialect.dims import Prover, constant, symbol
from tir_dialect.types import SymbolAttr


def match(declared: str, actual: str, *symbols: str | SymbolAttr, prover: Prover | None = None) -> Match:
    attrs = [SymbolAttr(name) if isinstance(name, str) else name for name in symbols]
    return match_types([info(declared)], [info(actual)], attrs, prover)


def texts(found: Match) -> dict[str, str]:
    return {name: str(dim) for name, dim in found.bindings.items()}


@pytest.mark.parametrize(
    ("declared", "actual", "symbols", "bindings"),
    [
        ("tensor<[n, m], f32>", "tensor<[4, 2 * k], f32>", "nm", {"n": "4", "m": "2 * k"}),
        ("tensor<[2 * n + 1], f32>", "tensor<[9], f32>", "n", {"n": "4"}),
        ("shape<[n + m, n]>", "shape<[k, 3]>", "nm", {"n": "3", "m": "k - 3"}),
        ("prim<i64, n>", "prim<i64, 7>", "n", {"n": "7"}),
        (
            "tuple<!relax.prim<i64, n>, !relax.shape<[m]>>",
            "tuple<!relax.prim<i64, 1>, !relax.shape<[2]>>",
            "nm",
            {"n": "1", "m": "2"},
        ),
    ],
)
def test_symbols_are_solved(declared: str, actual: str, symbols: str, bindings: dict[str, str]):
    assert texts(match(declared, actual, *symbols)) == bindings


MATCH_CAST_RULES = [
    ("MC1", "object", "tensor<[n], f32>", Verdict.YES),
    ("MC1", "object", "object", Verdict.YES),
    ("MC1", "tuple<!relax.object>", "tuple<>", Verdict.NEVER),
    ("MC2", "tensor<*, _>", "tensor<[n, 4], f32>", Verdict.YES),
    ("MC2", "tensor<[n, 4], f32>", "tensor<[n, 4], f32>", Verdict.YES),
    ("MC2", "tensor<[n, 4], f32>", "tensor<[n, _], f32>", Verdict.RUNTIME),
    ("MC2", "tensor<[n, 4], f32>", "tensor<*, _>", Verdict.RUNTIME),
    ("MC2", "tensor<[n, 4], f32>", "tensor<[n, 5], f32>", Verdict.NEVER),
    ("MC2", "tensor<[n, 4], f32>", "tensor<[n], f32>", Verdict.NEVER),
    ("MC2", "tensor<[n], f32>", "tensor<[n], i32>", Verdict.NEVER),
    ("MC2", "tensor<*, f32>", "shape<*>", Verdict.NEVER),
    ("MC2", "tensor<[n], f32, sharding<x = 2: R>>", "tensor<[n], f32>", Verdict.YES),
    ("MC2", "tensor<[n], f32, sharding<x = p: R>>", "tensor<[n], f32, sharding<x = 2: R>>", Verdict.RUNTIME),
    ("MC2", "tensor<[n], f32, sharding<x = 2: R>>", "tensor<[n], f32, sharding<x = 2: S[0]>>", Verdict.NEVER),
    ("MC2", 'tensor<[n], f32, "cpu">', 'tensor<[n], f32, "cpu">', Verdict.YES),
    ("MC2", 'tensor<[n], f32, "cpu">', 'tensor<[n], f32, "cuda:0">', Verdict.NEVER),
    ("MC3", "prim<i64>", "prim<i64, 4>", Verdict.YES),
    ("MC3", "prim<i64, n>", "prim<i64>", Verdict.RUNTIME),
    ("MC3", "prim<i64, 5>", "prim<i64, 4>", Verdict.NEVER),
    ("MC3", "prim<i32>", "prim<i64>", Verdict.NEVER),
    ("MC4", "shape<[_, _]>", "shape<[n, m]>", Verdict.YES),
    ("MC4", "shape<[n]>", "shape<*>", Verdict.RUNTIME),
    ("MC4", "shape<[n]>", "shape<[m]>", Verdict.RUNTIME),
    ("MC4", "shape<[4]>", "shape<[5]>", Verdict.NEVER),
    ("MC4", "shape<[_]>", "shape<[_, _]>", Verdict.NEVER),
    ("MC5", "tuple<!relax.object, !relax.prim<i64>>", "tuple<!relax.prim<i8>, !relax.prim<i64>>", Verdict.YES),
    ("MC5", "tuple<!relax.prim<i64>>", "tuple<!relax.object>", Verdict.RUNTIME),
    ("MC5", "tuple<!relax.prim<i64>>", "tuple<!relax.prim<i32>>", Verdict.NEVER),
    ("MC5", "tuple<>", "tuple<!relax.object>", Verdict.NEVER),
    ("MC6", "func<* -> !relax.object, impure>", "func<() -> !relax.object, pure>", Verdict.YES),
    ("MC6", "func<() -> !relax.object, pure>", "object", Verdict.RUNTIME),
    ("MC6", "func<() -> !relax.object, pure>", "func<* -> !relax.object, pure>", Verdict.RUNTIME),
    ("MC6", "func<* -> !relax.object, impure>", "tensor<*, f32>", Verdict.NEVER),
]


@pytest.mark.parametrize(("rule", "declared", "actual", "verdict"), MATCH_CAST_RULES)
def test_rule_of_match_cast(rule: str, declared: str, actual: str, verdict: Verdict):
    """Specification, "Evaluating MatchCast", on types; the interpreter does the same on values."""
    try:
        found = match(declared, actual).verdict
    except Mismatch:
        found = Verdict.NEVER
    assert found is verdict


def test_a_symbol_binds_where_it_stands_alone_whatever_the_order():
    """Specification, well-formedness 6."""
    found = match("shape<[n * m, m, n]>", "shape<[12, 3, 4]>", "n", "m")
    assert texts(found) == {"n": "4", "m": "3"}
    assert found.verdict is Verdict.YES


def test_unknown_dimensions_become_slots():
    found = match("tensor<[n, m, 4], f32>", "tensor<[_, 2, _], f32>", "n", "m")
    assert texts(found) == {"n": "arg0.dim0", "m": "2"}
    assert found.slots == {"arg0.dim0": AccessPath(0, (), 0), "arg0.dim2": AccessPath(0, (), 2)}
    assert [str(placed.check) for placed in found.dim_checks] == ["4 == arg0.dim2"]
    assert found.kind_checks == ()
    assert found.verdict is Verdict.RUNTIME


def test_unknown_rank_and_dtype_are_checked():
    found = match("tensor<[n, 4], f32>", "tensor<*, _>", "n")
    assert [(str(kind.path), kind.expected) for kind in found.kind_checks] == [("#0", info("tensor<[_, _], f32>"))]


def test_an_object_is_checked_all_the_way_down():
    found = match("tuple<!relax.tensor<[n], f32>, !relax.prim<i64, n>>", "object", "n")
    assert [str(kind.path) for kind in found.kind_checks] == ["#0", "#0 field 0", "#0 field 1"]
    assert texts(found) == {"n": "arg0.0.dim0"}
    assert [(str(placed.path), str(placed.check)) for placed in found.dim_checks] == [
        ("#0 field 1 dimension 0", "arg0.0.dim0 == arg0.1.dim0")
    ]


def test_names_of_both_sides_are_kept_apart():
    """The n that is bound is not the n of the actual type."""
    found = match("shape<[n, m]>", "shape<[m, n + 1]>", "n", "m")
    assert texts(found) == {"n": "m", "m": "n + 1"}


def test_a_slot_has_a_name_of_its_own():
    found = match_types(
        [info("shape<[n]>"), info("shape<[n]>")], [info("shape<[arg1.dim0]>"), info("shape<[_]>")], [SymbolAttr("n")]
    )
    assert list(found.slots) == ["arg1.dim0_1"]


def test_numbers_may_be_negative_and_symbols_are_not():
    """A dimension needs no such check; nor a number that has to be a known dimension."""
    assert match("tensor<[n], f32>", "tensor<[_], f32>", "n").bound_checks == ()
    assert [str(check.value) for check in match("prim<i64, 4 * n>", "object", "n").bound_checks] == [
        "floordiv(arg0.dim0, 4)"
    ]
    assert match("prim<i64, n>", "prim<i64>").bound_checks == ()
    with pytest.raises(Mismatch, match=r"expected n in \[0, _\], got -3"):
        match("prim<i64, n>", "prim<i64, -3>", "n")


def test_what_provers_know_is_not_checked():
    assert match("shape<[4]>", "shape<[n]>", prover=Prover({"n": (4, 4)})).verdict is Verdict.YES
    assert match("shape<[4]>", "shape<[n]>").verdict is Verdict.RUNTIME


def test_bounds_of_symbols():
    bounded = SymbolAttr("n", 1, 8)
    assert match("shape<[n]>", "shape<[4]>", bounded).bound_checks == ()
    (check,) = match("shape<[n]>", "shape<[k]>", bounded).bound_checks
    assert (check.symbol, check.value, check.path) == (bounded, symbol("k"), AccessPath(0, (), 0))
    assert match("shape<[n]>", "shape<[k]>", bounded, prover=Prover({"k": (2, 3)})).bound_checks == ()


def test_a_solution_must_not_be_negative():
    (check,) = match("shape<[n + 1]>", "shape<[k]>", "n").bound_checks
    assert str(check.value) == "k - 1"


def test_functions_are_compared_with_the_symbols_put_in():
    found = match_types(
        [info("prim<i64, n>"), info("func<(!relax.tensor<[n], f32>) -> !relax.object, pure>")],
        [info("prim<i64, 4>"), info("func<(!relax.tensor<[4], f32>) -> !relax.object, pure>")],
        [SymbolAttr("n")],
    )
    assert found.verdict is Verdict.YES


@pytest.mark.parametrize(
    ("declared", "actual", "symbols", "message"),
    [
        ("tensor<[n, 4], f32>", "tensor<[n, 5], f32>", "n", "#0 dimension 1: 5 does not match 4"),
        ("tensor<[n, n], f32>", "tensor<[2, 3], f32>", "n", "#0 dimension 1: 3 does not match n with n = 2"),
        ("tensor<[n], f32>", "tensor<[n, 5], f32>", "n", r"#0: expected !relax.tensor<\[n\], f32>, got"),
        ("tensor<[n], f32>", "tensor<[4], f16>", "n", r"#0: expected !relax.tensor<\[n\], f32>, got"),
        ("shape<[_]>", "shape<[4, 4]>", "", "#0: expected 1 dimensions, got 2"),
        ("tuple<!relax.shape<*>>", "tuple<!relax.prim<i64>>", "", "#0 field 0: expected !relax.shape"),
        ("tuple<>", "tuple<!relax.object>", "", "#0: expected !relax.tuple<>"),
        ("prim<i64>", "prim<i32>", "", "#0: expected !relax.prim<i64>"),
        ("shape<[4 * n]>", "shape<[10]>", "n", "#0 dimension 0: 10 does not match 4"),
        ("shape<[n + 5]>", "shape<[4]>", "n", r"expected n in \[0, _\], got -1"),
        ("shape<[n * n]>", "shape<[4]>", "n", "cannot solve"),
        ("shape<[_]>", "shape<[4]>", "n", "nothing binds the symbol n"),
        ("func<() -> !relax.object, pure>", "func<() -> !relax.object, impure>", "", "#0: expected !relax.func"),
    ],
)
def test_mismatch(declared: str, actual: str, symbols: str, message: str):
    with pytest.raises(Mismatch, match=message):
        match(declared, actual, *symbols)


def test_bounds_mismatch():
    with pytest.raises(Mismatch, match=r"expected n in \[1, 8\], got 9"):
        match("shape<[n]>", "shape<[9]>", SymbolAttr("n", 1, 8))


def test_number_of_values():
    with pytest.raises(Mismatch, match="expected 1 values, got 0"):
        match_types([info("object")], [])


def test_entry_checks_everything():
    found = entry_match(func("[n, m](!relax.tensor<[n, 2 * m], f32>, !relax.shape<[n]>) -> !relax.object"))
    assert texts(found) == {"n": "arg0.dim0", "m": "floordiv(arg0.dim1, 2)"}
    assert {name: str(place) for name, place in found.sources.items()} == {
        "n": "#0 dimension 0",
        "m": "#0 dimension 1",
    }
    assert [str(placed.check) for placed in found.dim_checks] == ["mod(arg0.dim1, 2) == 0", "arg0.dim0 == arg1.dim0"]
    assert [str(kind.path) for kind in found.kind_checks] == ["#0", "#1"]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=2, max_size=4),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_matching_finds_the_values_that_made_the_shape(factors: list[tuple[int, int]], n: int, m: int):
    """Any shape that is linear in the symbols, one of which stands alone, gives them back."""
    declared = TensorType([symbol("n"), *(a * symbol("n") + (b + 1) * symbol("m") for a, b in factors)], f32)
    actual = TensorType([n, *(a * n + (b + 1) * m for a, b in factors)], f32)
    found = match_types([declared], [actual], [SymbolAttr("n"), SymbolAttr("m")])
    assert found.bindings == {"n": constant(n), "m": constant(m)}
    assert found.verdict is Verdict.YES


def test_tensors_that_differ_in_dimensions_only_have_one_static_type():
    dtypes, devices = (None, f32, i64), (None, "cpu", "cuda:0")
    shapes: list[list[str | int | None] | None] = [None, [], ["n"], [None], [4], ["n", 4], ["m", None]]
    types = [TensorType(*each) for each in product(shapes, dtypes, devices)]
    for left, right in product(types, types):
        assert _same_static_type(left, right) == (erase_static(left) == erase_static(right))
