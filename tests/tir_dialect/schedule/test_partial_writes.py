"""Write caches of blocks that write elements on conditions: others keep their values."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule


def conditional(*conditions):
    def body(b, ins, outs):
        (a,), (c,) = ins, outs
        with b.block("B", ("spatial", n, "i"), ("spatial", m, "j")) as (i, j):
            for number, condition in enumerate(conditions):
                with b.if_(condition(a, i, j)):
                    b.store(c, (i, j), a[i, j] + number)

    a = te.placeholder((n, m), "i32", "A")
    return te.create_prim_func([a, *te.extern([((n, m), "i32")], [a], body, name="Y")])


CONDITIONS = {
    "below": lambda a, i, j: i < 4,
    "from": lambda a, i, j: j >= 3,
    "both": lambda a, i, j: te.logical_and(i >= 2, j < n),
}


def is_conditional(sch, name):
    return sch.get_block(name).op.condition is not None


@pytest.mark.parametrize("names", [("below",), ("from", "both"), ("below", "from"), ("both", "below", "from")])
def test_cache_write(names):
    func = conditional(*map(CONDITIONS.get, names))
    sch = scheduled(func, lambda sch: sch.cache_write("B", 0, "local"))
    assert is_conditional(sch, "Y_local")

    def tiled(sch):
        outer, inner = sch.split(sch.get_loops("B")[0], [None, 4])
        sch.reorder(outer, sch.get_loops("B")[-1], inner)
        sch.cache_write("B", 0, "local")

    scheduled(func, tiled)


def test_cache_write_where_one_store_writes_all():
    sch = scheduled(
        conditional(CONDITIONS["below"], lambda a, i, j: i < n), lambda sch: sch.cache_write("B", 0, "local")
    )
    assert not is_conditional(sch, "Y_local")


@pytest.mark.parametrize("condition", [lambda a, i, j: a[i, j] > 0, lambda a, i, j: i + j < 4])
def test_other_conditions(condition):
    sch = Schedule(conditional(CONDITIONS["below"], condition))
    refuses(sch, 'block "B" writes scattered elements of buffer "Y"', "cache_write", "B", 0, "local")
