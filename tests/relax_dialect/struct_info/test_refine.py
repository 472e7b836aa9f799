"""Refinement: each rule, and that nothing that is declared is lost."""

import pytest
from hypothesis import given

from relax_dialect.struct_info.join import refine
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import StructInfo
from tests.support.struct_info import info, infos

IMPURE = "func<* -> !relax.object, impure>"
PURE = "func<(!relax.object) -> !relax.prim<i64>, pure>"

REFINEMENTS = [
    ("R1", "object", "tensor<[n], f32>", "tensor<[n], f32>"),
    ("R1", "tensor<[n], f32>", "object", "tensor<[n], f32>"),
    ("R2", "tensor<[_, 4], _>", "tensor<[n, m], f32>", "tensor<[n, 4], f32>"),
    ("R2", "tensor<*, f32>", "tensor<[n], f16>", "tensor<[n], f32>"),
    ("R2", "tensor<[n], f32>", "tensor<*, _, sharding<x = 2: R>>", "tensor<[n], f32, sharding<x = 2: R>>"),
    ("R2", "tensor<[n], f32>", 'tensor<[_], _, "cpu">', 'tensor<[n], f32, "cpu">'),
    ("R2", "tensor<[n, _], f32>", "tensor<[m], f32>", "tensor<[n, _], f32>"),
    ("R2", "shape<[_, m]>", "shape<[n, 2]>", "shape<[n, m]>"),
    ("R2", "prim<i64>", "prim<i64, n>", "prim<i64, n>"),
    ("R2", "prim<i64, 4>", "prim<i64, n>", "prim<i64, 4>"),
    ("R3", "tuple<!relax.object, !relax.prim<i64>>", "tuple<!relax.object, !relax.prim<i64, 1>>", None),
    ("R3", "tuple<!relax.object>", "tuple<>", "tuple<!relax.object>"),
    ("R4", IMPURE, PURE, PURE),
    ("R4", PURE, IMPURE, PURE),
    ("R5", "shape<[_]>", "shape<[n]>", "shape<[n]>"),
    ("R5", "shape<[_]>", "tensor<[n], f32>", "shape<[_]>"),
    ("R5", "prim<i32>", "prim<i64, n>", "prim<i32>"),
]


@pytest.mark.parametrize(("rule", "declared", "known", "expected"), REFINEMENTS)
def test_rule(rule: str, declared: str, known: str, expected: str | None):
    assert refine(info(declared), info(known)) == info(known if expected is None else expected)


@given(infos(), infos())
def test_nothing_declared_is_lost(declared: StructInfo, known: StructInfo):
    refined = refine(declared, known)
    assert is_subtype(refined, declared) is Verdict.YES
    assert refine(refined, known) == refined


@given(infos(), infos())
def test_a_subtype_is_what_is_left(declared: StructInfo, known: StructInfo):
    if is_subtype(known, declared) is Verdict.YES:
        assert is_subtype(refine(declared, known), known) is not Verdict.NEVER
