"""The kinds of memory that buffers are put into."""

from __future__ import annotations

from tests.tir_dialect.schedule.support import matmul, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import Schedule


def test_scopes_are_those_that_there_are():
    sch = Schedule(matmul())
    message = 'expected a scope of global, local, or shared, which is global here, got "texture"'
    for primitive in ("cache_read", "cache_write", "set_scope"):
        refuses(sch, message, primitive, "C", 0, "texture")


def test_scopes_of_gpus_are_global():
    def transform(sch):
        copy = sch.cache_read("C", 0, "shared.dyn")
        assert copy.name == "A_shared_dyn"
        sch.compute_at(copy, sch.get_loops("C")[0])
        sch.cache_write("C", 0, "local")
        sch.set_scope("C", 0, "shared")

    sch = scheduled(matmul(), transform)
    assert len(allocations(sch)) == 2
    assert not any("scope" in type_ for type_ in allocations(sch).values())
