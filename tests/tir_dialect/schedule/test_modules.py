"""Schedules of modules with several functions."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.tir_dialect.schedule.support import check_same, elementwise, matmul
from tir_dialect.schedule import Schedule, ScheduleError, Trace, trace


def both() -> ModuleOp:
    return ModuleOp([matmul(), elementwise()])


def transform(sch: Schedule) -> None:
    """The functions in turns, by handles, by name and by what is worked on."""
    sch.work_on("matmul")
    i, j, _ = sch.get_loops("C")
    _, column = sch.get_loops(sch.get_block("C", func_name="elementwise"))
    sch.vectorize(sch.split(column, [None, 4])[1])
    sch.tile(i, j, [2, 8])
    sch.parallel(sch.get_loops("C")[0])
    sch.work_on("elementwise")
    sch.compute_inline("B")


def check(module: ModuleOp) -> None:
    product, other = module.ops
    check_same(matmul(), product)
    check_same(elementwise(), other)
    assert str(product).count("parallel") == 1
    assert str(other).count("vectorized") == 1
    assert "alloc_buffer" not in str(other)


def test_functions_in_turns():
    sch = Schedule(both())
    transform(sch)
    check(sch.mod)
    assert ' = sch.get_block("C", func_name="elementwise")' in sch.trace.as_python()


def test_a_trace_of_several_functions_is_replayed():
    sch, again = Schedule(both()), Schedule(both())
    transform(sch)
    Trace.from_json(sch.trace.as_json()).replay(again)
    assert str(again.mod) == str(sch.mod)
    exec(sch.trace.as_python(), {"sch": (by_hand := Schedule(both()))})
    assert str(by_hand.mod) == str(sch.mod)


def test_copies_of_a_schedule_of_a_module():
    sch = Schedule(both())
    sch.work_on("matmul")
    i, *_ = sch.get_loops("C")
    before, copy = str(sch.mod), sch.copy()
    copy.parallel(i)
    copy.split(copy.get_loops("C")[1], [None, 4])
    assert str(sch.mod) == before
    check_same(matmul(), copy.func)
    again = Schedule(both())
    copy.trace.replay(again)
    assert str(again.mod) == str(copy.mod)


def test_which_function_is_meant():
    sch = Schedule(both())
    with pytest.raises(
        ScheduleError, match="expected a function to be selected by work_on; there are @matmul, @element"
    ):
        sch.get_block("C")
    with pytest.raises(
        ScheduleError, match="expected the name of a function, got @other; there are @matmul, @elementwise"
    ):
        sch.work_on("other")
    with pytest.raises(ScheduleError, match="expected the name of a function, got @other"):
        sch.get_block("C", func_name="other")
    sch.work_on("elementwise")
    assert [block.name for block in sch.get_blocks()] == ["B", "C"]
    block = sch.get_block("C", func_name="matmul")
    assert len(sch.get_loops(block)) == 3
    assert len(sch.get_loops("C")) == 2, "one call changes nothing for the next"
    main = matmul()
    main.sym_name = type(main.sym_name)("main")
    assert len(Schedule(ModuleOp([elementwise(), main])).get_loops("C")) == 3
    assert len(Schedule(ModuleOp([elementwise()])).get_loops("C")) == 2


def test_what_handles_stand_for(capsys):
    sch = Schedule(matmul())
    block = sch.get_block("C")
    assert sch.get(block) is block.op
    (func,) = sch.mod.ops
    assert str(func) == str(sch.func)
    assert func is not sch.func
    loop = sch.get_loops(block)[0]
    sch.split(loop, [None, 4])
    with pytest.raises(ScheduleError, match="no longer in the function"):
        sch.get(loop)
    sch.show()
    assert capsys.readouterr().out == f"{sch.func!s}\n{sch.trace.as_python()}"


def test_the_function_that_is_worked_on_by_name():
    sch = Schedule(both())
    assert sch.func_working_on is None
    sch.work_on("matmul")
    assert sch.func_working_on == "matmul"
    assert Schedule(matmul()).func_working_on == "matmul"


def test_a_file_with_a_trace_of_the_module():
    sch, again = Schedule(both()), Schedule(both())
    transform(sch)
    text = trace.save({}, sch.trace)
    assert trace.load(text) == {}
    trace.load_module(text).replay(again)
    assert str(again.mod) == str(sch.mod)
    assert trace.load_module(trace.save({"matmul": Trace()})) is None


def test_seeds():
    draws = []
    for seed in (1, 1, 2):
        sch = Schedule(matmul())
        sch.seed(seed)
        draws.append([sch.fork_seed(), *(sch.sample_categorical(range(99), [1 / 99] * 99) for _ in range(5))])
    assert draws[0] == draws[1] != draws[2]
