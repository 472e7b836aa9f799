"""Spatial iterators whose instances share elements: what the distance between these forbids."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.handles import ScheduleError
from tir_dialect.schedule.legality.independence import distances
from tir_dialect.schedule.legality.instances import Instances

EXTENTS = (4, 5)


def updating(store, load, rank=2, kinds=("spatial", "spatial")):
    """`A[store] = A[load] + B[i, j]`; each index is (factor of i, factor of j, offset) in a big enough buffer."""
    lines = []
    for name, indices in (("s", store), ("l", load)):
        for axis, (a, b, offset) in enumerate(indices):
            lines += [
                f"%a{name}{axis} = arith.constant {a} : index",
                f"%b{name}{axis} = arith.constant {b} : index",
                f"%c{name}{axis} = arith.constant {offset + 40} : index",
                f"%x{name}{axis} = arith.muli %a{name}{axis}, %vi : index",
                f"%y{name}{axis} = arith.muli %b{name}{axis}, %vj : index",
                f"%z{name}{axis} = arith.addi %x{name}{axis}, %y{name}{axis} : index",
                f"%{name}{axis} = arith.addi %z{name}{axis}, %c{name}{axis} : index",
            ]
    at = {name: ", ".join(f"%{name}{axis}" for axis in range(rank)) for name in "sl"}
    shape = ", ".join(["90"] * rank)
    return parse_prim_func(f"""
tir.prim_func @f(%A: !tir.buffer<[{shape}], i32>, %B: !tir.buffer<[4, 5], i32>) {{
  %n = arith.constant 4 : index
  %m = arith.constant 5 : index
  tir.for (%i, %j) in (%n, %m) {{
    tir.block "S" (%vi = {kinds[0]} %i in %n, %vj = {kinds[1]} %j in %m) {{
      {chr(10).join(lines)}
      %a = tir.load %A[{at["l"]}]
      %b = tir.load %B[%vi, %vj]
      %c = arith.addi %a, %b : i32
      tir.store %c, %A[{at["s"]}]
    }}
  }}
}}""")


def found(func):
    (block,) = (op for op in func.walk() if isinstance(op, BlockOp))
    return [
        {number: int(step) for number, step in each.steps.items()}
        for each in distances(Instances(Schedule(func), block))
    ]


ONE = (1, 0, 0)


@pytest.mark.parametrize(
    ("store", "load", "steps"),
    [
        ([ONE, (0, 1, 0)], [ONE, (0, 1, 0)], []),
        ([(1, 0, 1), (0, 1, 0)], [ONE, (0, 1, 0)], [{0: -1}]),
        ([ONE, (0, 1, 0)], [(1, 0, -2), (0, 1, 3)], [{0: -2, 1: 3}]),
        ([(2, 0, 0), (0, 1, 0)], [(2, 0, 1), (0, 1, 0)], []),
        ([(2, 0, 0), (0, 3, 0)], [(2, 0, -2), (0, 3, 6)], [{0: -1, 1: 2}]),
        ([(-1, 0, 0), (0, 1, 0)], [(-1, 0, 1), (0, 1, 0)], [{0: -1}]),
        ([(1, 1, 0), (0, 1, 0)], [(1, 1, 0), (0, 1, 1)], [{0: -1, 1: 1}]),
        ([ONE, (0, 1, 0)], [(0, 1, 0), ONE], [{0: -3, 1: 3}]),
        ([ONE, (0, 1, 0)], [(-1, 0, 3), (0, 1, 0)], [{0: 3}, {0: -3}]),
        ([ONE, (0, 1, 0)], [(0, 0, 2), (0, 0, 3)], [{0: 2, 1: 3}, {0: 2, 1: -1}, {0: -1, 1: 3}, {0: -1, 1: -1}]),
        ([(1, 0, 1), (0, 1, 0)], [(0, 0, 0), (0, 1, 0)], []),
    ],
)
def test_distances_of_one_store_and_one_load(store, load, steps):
    assert found(updating(store, load)) == steps


@pytest.mark.parametrize(
    ("factors", "step"), [((1, 1), {0: 1, 1: -1}), ((4, 6), {0: 3, 1: -2}), ((5, 1), {0: 1, 1: -5})]
)
def test_distances_of_a_store_with_itself(factors, step):
    assert step in found(updating([(*factors, 0)], [(*factors, 0)], rank=1))


def test_accesses_under_conditions_have_no_distance():
    text = str(updating([(1, 0, 1), (0, 1, 0)], [ONE, (0, 1, 0)]))
    first, stored = text.index("%a = tir.load"), text.index("tir.store")
    end = text.index("\n", stored)
    condition = "%equal = arith.cmpi eq, %vi, %vj : index\ntir.if %equal {\n"
    assert found(parse_prim_func(f"{text[:first]}{condition}{text[first:end]}\n}}{text[end:]}")) == []


MAPS = [[(1, 0), (0, 1)], [(1, 1), (0, 1)], [(1, 0), (-1, 1)], [(2, 0), (0, 1)], [(0, -1), (1, 0)]]
OTHERS = [[(0, 0), (0, 0)], [(0, 1), (0, 1)], [(0, 0), (0, 1)], [(-1, 0), (0, 1)]]
factors = st.sampled_from(MAPS)
offsets = st.tuples(st.integers(-2, 2), st.integers(-2, 2))
accesses = st.one_of(
    st.tuples(factors, offsets).map(lambda drawn: (moved(drawn[0], (0, 0)), moved(*drawn))),
    st.sampled_from(OTHERS).map(lambda load: (moved(MAPS[0], (0, 0)), moved(load, (0, 0)))),
)


def moved(factors, offsets):
    return [(a, b, offset) for (a, b), offset in zip(factors, offsets, strict=True)]


@given(factors, offsets, offsets)
def test_instances_at_a_distance_meet(factors, here, there):
    for steps in found(updating(moved(factors, here), moved(factors, there))):
        i, j = steps.get(0, 0), steps.get(1, 0)
        assert [a * i + b * j for a, b in factors] == [there - here for here, there in zip(here, there, strict=True)]


STEPS = st.sampled_from(["reorder", "tile", "split", "parallel", "transform_block_layout"])


@given(accesses, st.lists(STEPS, min_size=1, max_size=3), st.data())
def test_steps_that_are_accepted_keep_the_result(accesses, steps, data):
    def transform(sch):
        for step in steps:
            chosen = data.draw(st.permutations(sch.get_loops("S")))
            arguments = {
                "reorder": chosen,
                "tile": [*chosen[:2], [2, 3]],
                "split": [chosen[0], [None, 2]],
                "transform_block_layout": ["S", lambda i, j: [i, 4 - j]],
            }
            with suppress(ScheduleError):
                getattr(sch, step)(*arguments.get(step, chosen[:1]))

    scheduled(updating(*accesses), transform, [{}])


def test_what_parallel_refuses():
    sch = Schedule(updating([(1, 0, 1), (0, 1, 0)], [ONE, (0, 1, 0)]))
    i, j = sch.get_loops("S")
    shared = 'instances of block "S" that are 1 in "vi" apart share elements of buffer "A"'
    refuses(sch, f'the iterations of loop "i" are not independent: {shared}', "parallel", i)
    sch.parallel(j)
    i0, i1 = sch.split(i, [None, 2])
    for loop in (i0, i1):
        refuses(sch, "are not independent", "parallel", loop)


def test_lanes_between_instances_that_meet():
    def transform(sch):
        i, _ = sch.get_loops("S")
        _, i1 = sch.split(i, [None, 2])
        sch.vectorize(i1)

    scheduled(updating([(1, 0, 2), (0, 1, 0)], [ONE, (0, 1, 0)]), transform, [{}])


def test_what_reorder_refuses():
    sch = Schedule(updating([(1, 0, 1), (0, 1, -1)], [ONE, (0, 1, 0)]))
    i, j = sch.get_loops("S")
    shared = 'instances of block "S" that are 1 in "vi" and 1 in "vj" apart share elements of buffer "A"'
    refuses(sch, f"the order of loops matters: {shared}", "reorder", j, i)
    refuses(sch, "the order of loops matters", "tile", i, j, [2, 2])
    refuses(sch, "the order of loops matters", "transform_block_layout", "S", lambda i, j: [3 - i, j])


@pytest.mark.parametrize("load", [[(1, 0, -1), (0, 1, 0)], [(1, 0, -1), (0, 1, -1)], [ONE, (0, 1, 2)]])
def test_interchange_that_keeps_the_order_of_instances(load):
    def transform(sch):
        i, j = sch.get_loops("S")
        sch.reorder(j, i)

    scheduled(updating([ONE, (0, 1, 0)], load), transform, [{}])
