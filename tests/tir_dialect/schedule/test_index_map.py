"""Index maps by themselves: what they make of shapes, and back."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.tir_dialect.schedule.support import scheduled
from tir_dialect import te
from tir_dialect.dims import to_dim
from tir_dialect.schedule.index_map import IndexMap

TILED = "(i, j) -> (floordiv(i, 4), j, mod(i, 4))"
SIZES = {"n": 3, "m": 5, "i0": 2}


@pytest.mark.parametrize(
    ("text", "shape", "back", "free"),
    [
        (TILED, ["4 * n", "m"], "(i0, i1, i2) -> (i2 + 4 * i0, i1)", False),
        (TILED, ["n", "m"], "(i0, i1, i2) -> (i2 + 4 * i0, i1)", True),
        ("(i) -> (floordiv(i, 4), mod(i, 4))", [14], "(i0, i1) -> (i1 + 4 * i0)", True),
        ("(i) -> (floordiv(i, 4), mod(i, 4))", [16], "(i0, i1) -> (i1 + 4 * i0)", False),
        ("(i, j) -> (j, i)", ["n", "i0"], "(j0, j1) -> (j1, j0)", False),
        ("(i, j) -> (i * 8 + j)", [3, 8], "(i0) -> (floordiv(i0, 8), mod(i0, 8))", False),
        ("(i, j) -> (i * m + j)", ["n", "m"], "(i0) -> (floordiv(i0, m), mod(i0, m))", False),
        ("(i) -> (n - 1 - i)", ["n"], "(i0) -> (n - 1 - i0)", False),
        (
            "(i, j) -> (n * m - 1 - i * m - j)",
            ["n", "m"],
            "(i0) -> (n - 1 - floordiv(i0, m), m - 1 - mod(i0, m))",
            False,
        ),
        ("(i) -> (floordiv(i, 4), 3 - mod(i, 4))", [14], "(i0, i1) -> (4 * i0 + 3 - i1)", True),
        ("(i) -> (floordiv(15 - i, 4), mod(15 - i, 4))", [16], "(i0, i1) -> (15 - 4 * i0 - i1)", False),
        ("(i) -> (floordiv(13 - i, 4), mod(13 - i, 4))", [14], "(i0, i1) -> (mod(13 - 4 * i0 - i1, 16))", True),
        (
            "(i) -> (floordiv(n - 1 - i, 4), mod(n - 1 - i, 4))",
            ["n"],
            "(i0, i1) -> (mod(n - 1 - 4 * i0 - i1, 4 * floordiv(n + 3, 4)))",
            True,
        ),
        ("() -> ()", [], "() -> ()", False),
    ],
)
def test_inverse(text: str, shape: list[str | int], back: str, free: bool):
    """Old indices come back, other positions are told, and where there are none there is an inverse."""
    index_map = IndexMap.parse(text) if text != "() -> ()" else IndexMap((), ())
    made, conditions = index_map.non_surjective_inverse(shape)
    assert made == (IndexMap.parse(back) if made.inputs else made)
    if free:
        with pytest.raises(ValueError, match=r"leaves elements of \[.*\] unused: use non_surjective_inverse"):
            index_map.inverse(shape)
    else:
        assert index_map.inverse(shape) == made
    old_shape = [to_dim(dim).evaluate(SIZES) for dim in shape]
    new_shape = [dim.evaluate(SIZES) for dim in index_map.map_shape(shape)]
    used = set[tuple[int, ...]]()
    for old in itertools.product(*map(range, old_shape)):
        place = _applied(index_map, old)
        assert _applied(made, place) == old
        used.add(place)
    for place in itertools.product(*map(range, new_shape)):
        values = SIZES | dict(zip(made.inputs, place, strict=True))
        is_free = any(index.evaluate(values) >= end.evaluate(values) for index, end in conditions)
        assert is_free is (place not in used)


def _applied(index_map: IndexMap, indices: tuple[int, ...]) -> tuple[int, ...]:
    values = SIZES | dict(zip(index_map.inputs, indices, strict=True))
    return tuple(output.evaluate(values) for output in index_map.outputs)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("(i, j) -> (i + j)", [3, 8], "index map (i, j) -> (i + j) may map two elements of [3, 8] to the same index"),
        ("(i) -> (i + 1)", [4], "the old indices of [4] cannot be computed from those of index map (i) -> (i + 1)"),
        ("(i) -> (4 - i)", [4], "the old indices of [4] cannot be computed from those of index map (i) -> (4 - i)"),
        ("(i) -> (i - 1)", [4], "gives an index that is not known to be at least 0 and bounded"),
        ("(i, j) -> (j, i)", [4], "index map (i, j) -> (j, i) expected 2 dimensions, got [4]"),
    ],
)
def test_what_has_no_inverse(text: str, shape: list[int], message: str):
    for inverse in (IndexMap.parse(text).inverse, IndexMap.parse(text).non_surjective_inverse):
        with pytest.raises(ValueError, match=re.escape(message)):
            inverse(shape)


def test_index_maps_of_tensor_expressions():
    size = te.floordiv(te.var("n"), 2) * 2
    assert str(IndexMap.of(lambda i: size - 1 - i)) == str(IndexMap.of(lambda i: "2 * floordiv(n, 2) - i - 1"))
    assert str(IndexMap.of(lambda i, j: (te.indexdiv(i, 4), te.const(0, "int32"), te.indexmod(i, 4), j)))
    with pytest.raises(ValueError, match=r"expected an index of \+, -, \*, // and % on indices and sizes, got "):
        IndexMap.of(lambda i: te.const(1.5, "f32"))
    with pytest.raises(ValueError, match="expected a function that gives an index, or several, got None"):
        IndexMap.of(lambda i: None)


def test_layouts_of_compound_sizes():
    size = te.floordiv(te.var("n"), 2) * 2
    a = te.placeholder((size,), "i32", "A")
    b = te.compute((size,), lambda i: a[i] * 2, name="B")
    c = te.compute((size,), lambda i: b[i] + 1, name="C")
    sch = scheduled(te.create_prim_func([a, c]), lambda sch: sch.transform_layout("B", "B", lambda i: size - 1 - i))
    assert "transform_layout" in str(sch.trace)
