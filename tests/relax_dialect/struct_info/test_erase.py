"""Erasure: each rule, and that the result is a supertype."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.symbols import erase_static, erase_symbols, erase_to_scope
from relax_dialect.struct_info.types import StructInfo
from tests.support.struct_info import SYMBOLS, info, infos, uses_only

SCOPED = [
    ("E1", "tensor<[n, m, n * m, 4], f32>", "tensor<[n, _, _, 4], f32>"),
    ("E1", "shape<[n, m]>", "shape<[n, _]>"),
    ("E1", "tensor<[n], f32, sharding<x = m: S[0]>>", "tensor<[n], f32>"),
    ("E1", "tensor<[m], f32, sharding<x = n: S[0], y = 2: R>>", "tensor<[_], f32, sharding<x = n: S[0], y = 2: R>>"),
    ("E1", "tensor<*, f32>", "tensor<*, f32>"),
    ("E2", "prim<i64, m>", "prim<i64>"),
    ("E2", "prim<i64, n>", "prim<i64, n>"),
    ("E3", "tuple<!relax.prim<i64, m>, !relax.prim<i64, n>>", "tuple<!relax.prim<i64>, !relax.prim<i64, n>>"),
    ("E3", "tuple<!relax.prim<i64, n>, !relax.object>", "tuple<!relax.prim<i64, n>, !relax.object>"),
    # The result may be forgotten, a parameter not.
    (
        "E4",
        "func<(!relax.prim<i64, n>) -> !relax.prim<i64, m>, pure>",
        "func<(!relax.prim<i64, n>) -> !relax.prim<i64>, pure>",
    ),
    ("E4", "func<(!relax.prim<i64, m>) -> !relax.prim<i64, n>, pure>", "func<* -> !relax.prim<i64, n>, pure>"),
    # A symbol that the function binds is always in scope.
    (
        "E4",
        "func<[m](!relax.tensor<[m, n], f32>) -> !relax.prim<i64, m>, pure>",
        "func<[m](!relax.tensor<[m, n], f32>) -> !relax.prim<i64, m>, pure>",
    ),
    (
        "E4",
        "func<[k](!relax.tensor<[k, m], f32>) -> !relax.prim<i64, k>, impure>",
        "func<* -> !relax.prim<i64>, impure>",
    ),
    ("E4", 'func<* derive "f" -> !relax.prim<i64, m>, pure>', 'func<* derive "f" -> !relax.prim<i64>, pure>'),
]

STATIC = [
    ("E5", "tensor<[n, 4, _], f32>", "tensor<[_, _, _], f32>"),
    ("E5", 'tensor<*, f32, "cpu">', 'tensor<*, f32, "cpu">'),
    ("E5", "shape<[4]>", "shape<[_]>"),
    ("E5", "prim<i64, 4>", "prim<i64>"),
    ("E5", "tuple<!relax.shape<[n]>>", "tuple<!relax.shape<[_]>>"),
    ("E5", "object", "object"),
]


@pytest.mark.parametrize(("rule", "subject", "expected"), SCOPED)
def test_erase_to_scope(rule: str, subject: str, expected: str):
    assert erase_to_scope(info(subject), {"n"}) == info(expected)


@pytest.mark.parametrize(("rule", "subject", "expected"), STATIC)
def test_erase_static(rule: str, subject: str, expected: str):
    assert erase_static(info(subject)) == info(expected)


def test_erase_symbols():
    assert erase_symbols(info("shape<[n, m + n, 4]>"), ["m"]) == info("shape<[n, _, 4]>")
    assert erase_symbols(info("shape<[n]>"), []) == info("shape<[n]>")


@given(infos(), st.sets(st.sampled_from(SYMBOLS)))
def test_erasure_forgets_and_is_a_supertype(subject: StructInfo, scope: set[str]):
    erased = erase_to_scope(subject, scope)
    assert uses_only(erased, scope)
    assert is_subtype(subject, erased) is Verdict.YES
    assert erase_to_scope(erased, scope) == erased


@given(infos())
def test_static_erasure_is_a_supertype(subject: StructInfo):
    assert is_subtype(subject, erase_static(subject)) is Verdict.YES
