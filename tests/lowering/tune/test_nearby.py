"""What is found for some sizes is not much slower at others."""

from pathlib import Path

import pytest

from lowering.compiler.tuning_database import Call, TuningDatabase, nearby
from lowering.parsing import parse_module
from lowering.tune import tune
from tests.lowering.tune.support import MAP, arrays, groups, races
from tests.support.tir import parse_prim_func

FUNC = parse_prim_func("""
tir.prim_func @f[%n, %k in [1, 6], %m](%A: !tir.buffer<[2 * n, k], f32>, %s: f32, %B: !tir.buffer<[3], i64>) {
}""")


def call(n: int, k: int, m: int) -> Call:
    return Call("f", (n, k, m, ("float32", (2 * n, k)), 2.5, ("int64", (3,))))


def test_sizes_are_halved_and_doubled_within_their_bounds():
    assert nearby(FUNC, [call(8, 3, 5)]) == [call(4, 3, 2), call(16, 3, 10)]
    assert nearby(FUNC, [call(8, 6, 5)]) == [call(4, 3, 2)], "k is 6 at most"
    assert nearby(FUNC, [call(8, 3, 5), call(16, 3, 10)]) == [call(4, 3, 2), call(32, 3, 20)]
    assert nearby(FUNC, [call(3, 3, 3)]) == []
    assert nearby(FUNC, [call(1 << 20, 3, 5)]) == [call(1 << 19, 3, 2)], "twice as many take too long"


def test_sizes_are_told_by_tensors():
    ((func, *_),) = groups(MAP).values()
    square = [Call("k", (("float32", (m, m)),) * 3) for m in (4, 8, 16)]
    assert nearby(func, square[1:2]) == [square[0], square[2]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ratio", [1.05, 1.2])
def test_what_is_slower_nearby_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratio: float):
    """Three races are about the size that is asked for; the next are at half of it and twice as much."""
    races(monkeypatch, lambda number: 0.5 if number < 4 else ratio)
    kept = TuningDatabase(tmp_path / "t.json")
    tune(parse_module(MAP), arrays(8), trials=1, database=kept, progress=None)
    assert len(kept.records()) == (ratio < 1.1)
