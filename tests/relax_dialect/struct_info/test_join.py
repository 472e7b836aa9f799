"""Join and meet: each rule, and that they are bounds in the order of types."""

import pytest
from hypothesis import given

from relax_dialect.struct_info.join import join, meet
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import StructInfo
from tests.support.struct_info import info, infos
from tir_dialect.dims import Prover

JOINS = [
    ("J1", "tensor<[n], f32>", "shape<[n]>", "object"),
    ("J1", "prim<i64>", "prim<i32>", "object"),
    ("J1", "tuple<>", "object", "object"),
    ("J1", "object", "prim<i64>", "object"),
    ("J1", "prim<i64>", "prim<i64, n>", "prim<i64>"),
    ("J2", "tensor<[n, 4], f32>", "tensor<[n, 5], f32>", "tensor<[n, _], f32>"),
    ("J2", "tensor<[n, 4], f32>", "tensor<[n], f32>", "tensor<*, f32>"),
    ("J2", "tensor<[n], f32>", "tensor<[n], f16>", "tensor<[n], _>"),
    ("J2", 'tensor<[n], f32, "cpu">', "tensor<[n], f32>", "tensor<[n], f32>"),
    ("J2", "tensor<[n], f32, sharding<x = 2: S[0]>>", "tensor<[n], f32, sharding<x = 2: R>>", "tensor<[n], f32>"),
    ("J2", "tensor<[n], f32, sharding<x = 2: S[0]>>", "tensor<[n], f32>", "tensor<[n], f32>"),
    (
        "J2",
        "tensor<[n], f32, sharding<x = 2: S[0]>>",
        "tensor<[4], f32, sharding<x = 2: S[0]>>",
        "tensor<[_], f32, sharding<x = 2: S[0]>>",
    ),
    ("J2", "tensor<[2 * n], f32>", "tensor<[n + n], f32>", "tensor<[2 * n], f32>"),
    ("J2", "tensor<[n + n], f32>", "tensor<[2 * n], f32>", "tensor<[2 * n], f32>"),
    ("J2", "shape<[n, m]>", "shape<[n, n]>", "shape<[n, _]>"),
    ("J2", "prim<i64, n>", "prim<i64, m>", "prim<i64>"),
    ("J3", "tuple<!relax.prim<i64>>", "tuple<!relax.prim<i64, 2>>", "tuple<!relax.prim<i64>>"),
    ("J3", "tuple<!relax.prim<i64, 1>>", "tuple<!relax.prim<i64, 2>>", "tuple<!relax.prim<i64>>"),
    ("J3", "tuple<!relax.prim<i64>>", "tuple<>", "object"),
    ("J5", "func<* -> !relax.object, pure>", "func<* -> !relax.shape<*>, pure>", "func<* -> !relax.object, pure>"),
    ("J5", "func<* -> !relax.object, pure>", "func<* -> !relax.object, impure>", "func<* -> !relax.object, impure>"),
    (
        "J6",
        "func<(!relax.prim<i64>) -> !relax.object, pure>",
        "func<(!relax.object) -> !relax.object, pure>",
        "func<(!relax.prim<i64>) -> !relax.object, pure>",
    ),
    (
        "J6",
        "func<(!relax.object) -> !relax.object, pure>",
        "func<(!relax.prim<i64>) -> !relax.object, pure>",
        "func<(!relax.prim<i64>) -> !relax.object, pure>",
    ),
    (
        "J6",
        "func<[n](!relax.tensor<[n, _], f32>) -> !relax.prim<i64, n>, pure>",
        "func<[m](!relax.tensor<[m, 4], f32>) -> !relax.prim<i64, m>, pure>",
        "func<[n](!relax.tensor<[n, 4], f32>) -> !relax.prim<i64, n>, pure>",
    ),
    (
        "J6",
        "func<(!relax.prim<i64>) -> !relax.object, pure>",
        "func<(!relax.prim<i32>) -> !relax.object, pure>",
        "func<* -> !relax.object, pure>",
    ),
    (
        "J6",
        "func<[n](!relax.tensor<[n], f32>) -> !relax.prim<i64, n>, pure>",
        "func<(!relax.tensor<[4], f32>) -> !relax.prim<i64, 4>, pure>",
        "func<* -> !relax.prim<i64>, pure>",
    ),
    (
        "J7",
        "func<() -> !relax.prim<i64>, pure>",
        "func<() -> !relax.prim<i64, 2>, pure>",
        "func<() -> !relax.prim<i64>, pure>",
    ),
    (
        "J7",
        "func<() -> !relax.prim<i64, 1>, pure>",
        "func<() -> !relax.prim<i64, 2>, pure>",
        "func<() -> !relax.prim<i64>, pure>",
    ),
]

MEETS = [
    ("M1", "tensor<[n, _], f32>", "tensor<[_, 4], _>", "tensor<[n, 4], f32>"),
    ("M1", "tensor<*, f32>", 'tensor<[n], _, "cpu">', 'tensor<[n], f32, "cpu">'),
    ("M1", "tensor<*, f32>", "tensor<[n], _, sharding<x = 2: R>>", "tensor<[n], f32, sharding<x = 2: R>>"),
    ("M2", "tensor<[n], f32, sharding<x = 2: R>>", "tensor<[n], f32, sharding<x = 2: P>>", None),
    ("M1", "object", "shape<[n]>", "shape<[n]>"),
    ("M1", "prim<i64>", "prim<i64, n>", "prim<i64, n>"),
    ("M1", "tuple<!relax.object>", "tuple<!relax.prim<i64>>", "tuple<!relax.prim<i64>>"),
    ("M1", "tensor<[_], f32>", "prim<i64, n>", None),
    ("M2", "tensor<[n + n], f32>", "tensor<[2 * n], f32>", "tensor<[2 * n], f32>"),
    ("M2", "tensor<[4], f32>", "tensor<[5], f32>", None),
    ("M2", "tensor<[n], f32>", "tensor<[m], f32>", None),
    ("M2", "tensor<[n], f32>", "tensor<[n], f16>", None),
    ("M2", "tensor<[n], f32>", "tensor<[n, 1], f32>", None),
    ("M2", "shape<*>", "prim<i64>", None),
    ("M2", "tuple<!relax.prim<i64>>", "tuple<!relax.prim<i8>>", None),
]


@pytest.mark.parametrize(("rule", "left", "right", "expected"), JOINS)
def test_join(rule: str, left: str, right: str, expected: str):
    assert join(info(left), info(right)) == info(expected)


@pytest.mark.parametrize(("rule", "left", "right", "expected"), MEETS)
def test_meet(rule: str, left: str, right: str, expected: str | None):
    assert meet(info(left), info(right)) == (expected and info(expected))


def test_bounds_decide():
    prover = Prover({"n": (4, 4)})
    assert join(info("shape<[n]>"), info("shape<[4]>"), prover) == info("shape<[n]>")
    assert join(info("shape<[n]>"), info("shape<[4]>")) == info("shape<[_]>")


@given(infos(), infos())
def test_join_is_an_upper_bound(left: StructInfo, right: StructInfo):
    joined = join(left, right)
    assert is_subtype(left, joined) is Verdict.YES
    assert is_subtype(right, joined) is Verdict.YES


@given(infos(functions=False), infos(functions=False), infos(functions=False))
def test_join_is_the_least_upper_bound(left: StructInfo, right: StructInfo, other: StructInfo):
    if is_subtype(left, other) is Verdict.YES and is_subtype(right, other) is Verdict.YES:
        assert is_subtype(join(left, right), other) is Verdict.YES


@given(infos(), infos())
def test_join_commutes(left: StructInfo, right: StructInfo):
    assert join(left, right) == join(right, left)


@given(infos())
def test_join_is_idempotent(subject: StructInfo):
    assert join(subject, subject) == subject


@given(infos(), infos())
def test_meet_is_a_lower_bound(left: StructInfo, right: StructInfo):
    met = meet(left, right)
    if met is not None:
        assert is_subtype(met, left) is Verdict.YES
        assert is_subtype(met, right) is Verdict.YES
