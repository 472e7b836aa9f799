"""The order of types: each rule with what it admits and what it does not."""

import pytest
from hypothesis import given

from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import StructInfo
from tests.support.struct_info import at, info, infos, valuations
from tir_dialect.dims import Prover

YES, RUNTIME, NEVER = Verdict.YES, Verdict.RUNTIME, Verdict.NEVER

RULES = {
    "S1": [
        ("tensor<[n], f32>", "object", YES),
        ("object", "object", YES),
        ("object", "tensor<*, _>", RUNTIME),
        ("object", "tuple<>", RUNTIME),
    ],
    "S2": [
        ("tensor<*, _>", "shape<*>", NEVER),
        ("prim<i64>", "tensor<[], i64>", NEVER),
        ("tuple<>", "func<*>", NEVER),
        ("tuple<>", "object", YES),
    ],
    "S3": [
        ("prim<i64, n>", "prim<i64>", YES),
        ("prim<i64, n + n>", "prim<i64, 2 * n>", YES),
        ("prim<i64>", "prim<i64, n>", RUNTIME),
        ("prim<i64, m>", "prim<i64, n>", RUNTIME),
        ("prim<i64, n + 1>", "prim<i64, n>", NEVER),
        ("prim<i32>", "prim<i64>", NEVER),
    ],
    "S4": [
        ("shape<[n, 4]>", "shape<*>", YES),
        ("shape<[n, 4]>", "shape<[_, 4]>", YES),
        ("shape<[n, m]>", "shape<[n, m]>", YES),
        ("shape<*>", "shape<[_]>", RUNTIME),
        ("shape<[_]>", "shape<[n]>", RUNTIME),
        ("shape<[n, m]>", "shape<[m, n]>", RUNTIME),
        ("shape<[n, 4]>", "shape<[n, 5]>", NEVER),
        ("shape<[n, _]>", "shape<[n]>", NEVER),
        ("shape<[2 * n]>", "shape<[2 * m + 1]>", NEVER),
    ],
    "S5": [
        ("tensor<[n, 4], f32>", "tensor<[_, _], f32>", YES),
        ("tensor<[n, 4], f32>", "tensor<*, _>", YES),
        ('tensor<[n], f32, "cpu">', "tensor<[n], f32>", YES),
        ("tensor<[n], _>", "tensor<[n], f32>", RUNTIME),
        ("tensor<[n], f32>", 'tensor<[n], f32, "cpu">', RUNTIME),
        ("tensor<*, f32>", "tensor<[n], f32>", RUNTIME),
        ("tensor<[n], f16>", "tensor<[n], f32>", NEVER),
        ('tensor<[n], f32, "cuda:0">', 'tensor<[n], f32, "cpu">', NEVER),
        ("tensor<[4], _>", "tensor<[5], f32>", NEVER),
    ],
    "S11": [
        ("tensor<[n], f32, sharding<x = 2: S[0]>>", "tensor<[n], f32>", YES),
        ("tensor<[n], f32, sharding<x = p: S[0]>>", "tensor<[n], f32, sharding<x = p: S[0]>>", YES),
        ("tensor<[n], f32>", "tensor<[n], f32, sharding<x = 2: S[0]>>", RUNTIME),
        ("tensor<[n], f32, sharding<x = p: S[0]>>", "tensor<[n], f32, sharding<x = 2: S[0]>>", RUNTIME),
        ("tensor<[n], f32, sharding<x = 3: S[0]>>", "tensor<[n], f32, sharding<x = 2: S[0]>>", NEVER),
        ("tensor<[n], f32, sharding<x = 2: R>>", "tensor<[n], f32, sharding<x = 2: S[0]>>", NEVER),
        ("tensor<[n], f32, sharding<y = 2: R>>", "tensor<[n], f32, sharding<x = 2: R>>", NEVER),
        ("tensor<[n], f32, sharding<x = 2: P>>", "tensor<[n], f32, sharding<x = 2: P[max]>>", NEVER),
    ],
    "S6": [
        ("tuple<!relax.prim<i64, n>, !relax.object>", "tuple<!relax.prim<i64>, !relax.object>", YES),
        ("tuple<>", "tuple<>", YES),
        ("tuple<!relax.object>", "tuple<!relax.prim<i64>>", RUNTIME),
        ("tuple<!relax.object, !relax.prim<i8>>", "tuple<!relax.prim<i64>, !relax.prim<i64>>", NEVER),
        ("tuple<!relax.object>", "tuple<>", NEVER),
    ],
    "S7": [
        ("func<() -> !relax.object, pure>", "func<() -> !relax.object, impure>", YES),
        ("func<() -> !relax.object, impure>", "func<() -> !relax.object, pure>", NEVER),
        ("func<*>", "func<* -> !relax.object, pure>", NEVER),
    ],
    "S8": [
        ("func<(!relax.prim<i64>) -> !relax.prim<i64>, pure>", "func<* -> !relax.prim<i64>, pure>", YES),
        ("func<[n](!relax.tensor<[n], f32>) -> !relax.prim<i64, n>, pure>", "func<* -> !relax.prim<i64>, pure>", YES),
        (
            "func<[n](!relax.tensor<[n], f32>) -> !relax.prim<i64, n>, pure>",
            "func<* -> !relax.prim<i64, n>, pure>",
            RUNTIME,
        ),
        ('func<* derive "f" -> !relax.object, pure>', 'func<* derive "f" -> !relax.object, pure>', YES),
        ("func<* -> !relax.object, pure>", 'func<* derive "f" -> !relax.object, pure>', RUNTIME),
        ("func<() -> !relax.prim<i8>, pure>", "func<* -> !relax.prim<i64>, pure>", NEVER),
    ],
    "S9": [
        ("func<* -> !relax.object, pure>", "func<() -> !relax.object, pure>", RUNTIME),
        ("func<* -> !relax.object, pure>", "func<* -> !relax.object, impure>", YES),
    ],
    "S10": [
        # A function that accepts more will do where less is passed, not the other way round.
        ("func<(!relax.object) -> !relax.prim<i64>, pure>", "func<(!relax.prim<i64>) -> !relax.object, pure>", YES),
        (
            "func<(!relax.tensor<[_], f32>) -> !relax.object, pure>",
            "func<(!relax.tensor<[4], f32>) -> !relax.object, pure>",
            YES,
        ),
        ("func<(!relax.prim<i64>) -> !relax.object, pure>", "func<(!relax.object) -> !relax.object, pure>", RUNTIME),
        ("func<(!relax.prim<i8>) -> !relax.object, pure>", "func<(!relax.prim<i64>) -> !relax.object, pure>", NEVER),
        ("func<() -> !relax.object, pure>", "func<(!relax.object) -> !relax.object, pure>", NEVER),
        ("func<() -> !relax.object, pure>", "func<() -> !relax.prim<i64>, pure>", RUNTIME),
        # The names of bound symbols do not matter.
        (
            "func<[n](!relax.tensor<[n], f32>) -> !relax.tensor<[2 * n], f32>, pure>",
            "func<[m](!relax.tensor<[m], f32>) -> !relax.tensor<[m + m], f32>, pure>",
            YES,
        ),
        # A function for all n and m is one for n and n, but the reverse has to be checked.
        (
            "func<[n, m](!relax.tensor<[n, m], f32>) -> !relax.prim<i64, n>, pure>",
            "func<[m](!relax.tensor<[m, m], f32>) -> !relax.prim<i64, m>, pure>",
            YES,
        ),
        (
            "func<[n](!relax.tensor<[n, n], f32>) -> !relax.object, pure>",
            "func<[n, m](!relax.tensor<[n, m], f32>) -> !relax.object, pure>",
            RUNTIME,
        ),
        # A bound n is not the n of the surroundings.
        (
            "func<[n](!relax.tensor<[n], f32>) -> !relax.prim<i64, n>, pure>",
            "func<(!relax.tensor<[m], f32>) -> !relax.prim<i64, n>, pure>",
            RUNTIME,
        ),
        # Bounds have to be met.
        (
            "func<[n in [0, 8]](!relax.tensor<[n], f32>) -> !relax.object, pure>",
            "func<[m in [2, 4]](!relax.tensor<[m], f32>) -> !relax.object, pure>",
            YES,
        ),
        (
            "func<[n in [0, 8]](!relax.tensor<[n], f32>) -> !relax.object, pure>",
            "func<[m](!relax.tensor<[m], f32>) -> !relax.object, pure>",
            RUNTIME,
        ),
        (
            "func<[n in [0, 8]](!relax.tensor<[n], f32>) -> !relax.object, pure>",
            "func<[m in [9, _]](!relax.tensor<[m], f32>) -> !relax.object, pure>",
            NEVER,
        ),
    ],
}

CASES = [(rule, *case) for rule, cases in RULES.items() for case in cases]


@pytest.mark.parametrize(("rule", "derived", "base", "verdict"), CASES)
def test_rule(rule: str, derived: str, base: str, verdict: Verdict):
    assert is_subtype(info(derived), info(base)) is verdict


def test_bounds_decide():
    prover = Prover({"n": (1, 4), "m": (5, 8)})
    assert is_subtype(info("shape<[n]>"), info("shape<[m]>"), prover) is NEVER
    assert is_subtype(info("shape<[n]>"), info("shape<[m]>")) is RUNTIME


@given(infos())
def test_reflexive(subject: StructInfo):
    assert is_subtype(subject, subject) is YES


@given(infos(), infos(), infos())
def test_transitive(first: StructInfo, second: StructInfo, third: StructInfo):
    if is_subtype(first, second) is YES and is_subtype(second, third) is YES:
        assert is_subtype(first, third) is YES


@given(infos(), infos(), valuations())
def test_verdicts_hold_for_all_values(derived: StructInfo, base: StructInfo, values: dict[str, int]):
    """What holds for symbols holds for numbers: `YES` and `NEVER` stay."""
    verdict = is_subtype(derived, base)
    concrete = is_subtype(at(derived, values), at(base, values))
    assert verdict in (RUNTIME, concrete)


@given(infos(functions=False), infos(functions=False))
def test_antisymmetric(left: StructInfo, right: StructInfo):
    if is_subtype(left, right) is YES and is_subtype(right, left) is YES:
        assert left == right
