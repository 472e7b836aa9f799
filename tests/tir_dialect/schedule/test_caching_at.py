"""read_at and write_at."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import matmul, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import Schedule


@pytest.mark.parametrize("which", [0, "B"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_copies_of_what_is_read_in_a_loop(which, position):
    def transform(sch):
        i, j, _ = sch.get_loops("C")
        sch.tile(i, j, [4, 8])
        copy = sch.read_at(sch.get_loops("C")[position], "C", which, "local")
        assert copy.name == ("A_local" if which == 0 else "B_local")
        assert len(sch.get_loops(copy)) > position + 1

    scheduled(matmul(), transform)


@pytest.mark.parametrize("position", [0, 1])
def test_copies_of_what_is_written_in_a_loop(position):
    def transform(sch):
        copy = sch.write_at(sch.get_loops("C")[position], "C", 0, "local")
        assert sch.get_loops(copy)[position] is sch.get_loops("C")[position]

    sch = scheduled(matmul(), transform)
    assert list(allocations(sch)) == ["C_local"]


def test_copies_in_loops_are_refused_as_a_whole():
    sch = Schedule(matmul())
    *_, r = sch.get_loops("C")
    refuses(sch, 'buffer "C_local" is complete only after loop "r"', "write_at", r, "C", 0, "local")
    refuses(sch, 'expected a buffer that block "C" reads, got 7', "read_at", r, "C", 7, "local")
