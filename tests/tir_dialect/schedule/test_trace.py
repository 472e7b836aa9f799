"""Traces: as Python, as JSON, replayed on other functions."""

from __future__ import annotations

import inspect
import json
import re

import numpy as np
import pytest

from tests.tir_dialect.schedule.support import check_same, elementwise, matmul, row_sum, scheduled
from tir_dialect import te
from tir_dialect.schedule import Schedule, ScheduleError, Trace, trace
from tir_dialect.schedule.state import PRIMITIVES
from tir_dialect.schedule.trace import KNOWN, fits


def tiled():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, _ = sch.get_loops(block)
    _, j0, _, j1 = sch.tile(i, j, [4, 8])
    sch.vectorize(j1)
    sch.annotate(j0, "note", "a")
    return sch


PYTHON = """\
b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5, l6, l7 = sch.tile(l1, l2, [4, 8])
sch.vectorize(l7)
sch.annotate(l5, "note", "a")
"""


def test_python_text():
    assert tiled().trace.as_python() == PYTHON


def test_python_text_runs():
    sch = Schedule(matmul())
    exec(PYTHON, {"sch": sch})
    assert str(sch.func) == str(tiled().func)


def test_a_single_handle_in_a_tuple():
    sch = Schedule(row_sum())
    sch.get_blocks()
    assert sch.trace.as_python() == "b0, = sch.get_blocks()\n"


def test_json_round_trip():
    text = trace.save({"matmul": tiled().trace})
    (loaded,) = trace.load(text).values()
    again = Schedule(matmul())
    loaded.replay(again)
    assert str(again.func) == str(tiled().func)
    assert again.trace.as_python() == PYTHON
    assert trace.save({"matmul": again.trace}) == text


def test_replay_on_another_function():
    sch = Schedule(elementwise())
    i, j = sch.get_loops(sch.get_block("B"))
    sch.parallel(i)
    sch.vectorize(sch.split(j, [None, 4])[1])
    other = Schedule(elementwise())
    other.func.sym_name = row_sum().sym_name
    sch.trace.replay(other)
    check_same(elementwise(), other.func)


def test_buffers_by_kind_and_number_are_replayed():
    sch = Schedule(matmul())
    sch.reindex("C", ("read", 1))
    sch.cache_read("C", ("read", 0))
    sch.cache_write("C", ("write", 0))
    sch.transform_layout("C", ("write", 0), "(i, j) -> (j, i)")
    again = Schedule(matmul())
    trace.load(trace.save({"matmul": sch.trace}))["matmul"].replay(again)
    assert str(again.func) == str(sch.func)
    check_same(matmul(), again.func)


def test_arguments_by_name_are_replayed():
    sch = Schedule(matmul())
    block = sch.get_block(name="C")
    sch.annotate(block_or_loop=block, ann_key="note", ann_val=1)
    again = Schedule(matmul())
    trace.load(trace.save({"matmul": sch.trace}))["matmul"].replay(again)
    assert str(again.func) == str(sch.func)


def test_replay_where_a_primitive_cannot_be_applied():
    sch = Schedule(elementwise())
    i, j = sch.get_loops(sch.get_block("B"))
    sch.fuse(i, j)
    renamed = [call | {"args": ["C"]} if call["call"] == "get_block" else call for call in sch.trace.as_json()]
    for_blocks_called_c = Trace.from_json(renamed)
    other = Schedule(matmul())
    with pytest.raises(ScheduleError, match="replay: get_loops gave 3 handles, the trace has 2"):
        for_blocks_called_c.replay(other)
    other = Schedule(matmul())
    with pytest.raises(ScheduleError, match='expected the name of a block, got "B"'):
        sch.trace.replay(other)


def test_refused_calls_are_not_recorded():
    sch = Schedule(matmul())
    i, _, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError):
        sch.split(i, [None, 0])
    assert "split" not in sch.trace.as_python()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("[]", "must be a JSON object"),
        ("{\n1}", "expected JSON, got other text in line 2, column 1"),
        ('{"version": 2, "functions": {}}', "must have version 1"),
        ('{"version": 1, "functions": {"f": 1}}', "must be a list of calls"),
        ('{"version": 1, "functions": {"f": [1]}}', "must have call, args and kwargs, got 1"),
        ('{"version": 1, "functions": {"f": [{"call": "split", "args": [{"x": 1}]}]}}', "expected a handle"),
    ],
)
def test_files_that_are_none(data, message):
    with pytest.raises(ValueError, match=message):
        trace.load(data)


def test_unknown_primitives_and_handles():
    with pytest.raises(ScheduleError, match='there is no primitive "explode"'):
        Trace.from_json([{"call": "explode"}]).replay(Schedule(matmul()))
    with pytest.raises(ScheduleError, match="handle l7 is used before it is defined"):
        Trace.from_json([{"call": "parallel", "args": [{"l": 7}]}]).replay(Schedule(matmul()))


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("split", [], "missing a required argument: 'loop'"),
        ("split", [{"l": 1}, [4], 1, 2], "too many positional arguments"),
        ("split", [{"b": 0}, [4]], 'expected "loop" to be Loop, got Block(C)'),
        ("split", [{"l": 1}, 4], 'expected "factors" to be Sequence[Factor], got 4'),
        ("split", [{"l": 1}, [None, ""]], "split: expected a dimension"),
        ("split", [{"l": 1}, [None, True]], 'expected "factors" to be Sequence[Factor], got [None, True]'),
        ("fuse", [{"l": 1}, None], 'expected "loops" to be Loop, got None'),
        ("reindex", [{"b": 0}, 1.5], 'expected "buffer" to be Which, got 1.5'),
        ("reindex", [{"b": 0}, ["read"]], "expected \"buffer\" to be Which, got ['read']"),
        ("reindex", [{"b": 0}, 0, "both"], "expected \"access\" to be Literal['read', 'write'] | None, got 'both'"),
        ("transform_layout", [{"b": 0}, 0, 3], 'expected "index_map" to be IndexMapLike, got 3'),
        ("cache_read", [{"b": 0}, 0, "local", [2]], 'expected "consumer_blocks" to be Sequence[Block | str], got [2]'),
    ],
)
def test_arguments_that_a_primitive_does_not_take(name, args, message):
    steps = [
        {"call": "get_block", "args": ["C"], "outputs": {"b": 0}},
        {"call": "get_loops", "args": [{"b": 0}], "outputs": [{"l": 1}, {"l": 2}, {"l": 3}]},
        {"call": name, "args": args},
    ]
    with pytest.raises(ScheduleError, match=re.escape(message)):
        Trace.from_json(steps).replay(Schedule(matmul()))


def test_every_annotation_is_understood():
    """No primitive takes just anything."""
    for name, primitive in PRIMITIVES.items():
        for parameter in list(inspect.signature(primitive).parameters.values())[1:]:
            known = {**KNOWN, **primitive.__globals__}
            assert not fits(object(), str(parameter.annotation), known), f"{name}({parameter.name})"


@pytest.mark.parametrize(
    ("call", "outputs", "message"),
    [
        ("get_block", [{"b": 0}, {"b": 1}], "get_block gave 1 handles, the trace has 2"),
        ("get_block", {"l": 0}, "get_block gave Block(C), the trace has handle l0"),
        ("get_loops", {"l": 0}, "get_loops gave (Loop(i), Loop(j), Loop(r)), the trace has handle l0"),
    ],
)
def test_outputs_that_a_primitive_does_not_give(call, outputs, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        Trace.from_json([{"call": call, "args": ["C"], "outputs": outputs}]).replay(Schedule(matmul()))


def test_json_is_plain():
    data = json.loads(trace.save({"matmul": tiled().trace}))
    assert data["functions"]["matmul"][0] == {"call": "get_block", "args": ["C"], "outputs": {"b": 0}}


def test_numbers_of_numpy_and_dictionaries_are_saved():
    def transform(sch):
        i, j, _ = sch.get_loops("C")
        sch.split(i, [None, np.int64(4)])
        sch.annotate(j, "notes", {"depth": np.int32(3), "pads": [1, 2.5], "name": "a", "more": {"x": True}})
        sch.annotate(j, "share", np.float32(0.5))

    sch = scheduled(matmul(), transform)
    data = json.loads(trace.save({"matmul": sch.trace}))
    assert data["functions"]["matmul"][2]["args"][2] == {
        "map": {"depth": 3, "pads": [1, 2.5], "name": "a", "more": {"map": {"x": True}}}
    }
    again = Schedule(matmul())
    trace.load(trace.save({"matmul": sch.trace}))["matmul"].replay(again)
    assert str(again.func) == str(sch.func)


def test_calls_are_added_and_taken_off():
    steps = tiled().trace
    last = steps.pop()
    assert (last.primitive, str(steps)) == ("annotate", PYTHON[: PYTHON.index("sch.annotate")])
    steps.append(last)
    assert str(steps) == PYTHON
    assert Trace().pop() is None


def test_what_comes_behind_the_mark_is_left_out():
    sch = Schedule(elementwise())
    sch.compute_inline("B")
    sch.enter_postproc()
    sch.parallel(sch.get_loops("C")[0])
    whole, first = (Schedule(elementwise()) for _ in range(2))
    sch.trace.apply_to_schedule(whole)
    sch.trace.apply_to_schedule(first, remove_postproc=True)
    assert str(whole.func) == str(sch.func)
    assert "parallel" not in str(first.func)
    assert str(sch.trace.simplified(remove_postproc=True)) == 'sch.compute_inline("B")\n'
    assert len(sch.trace.as_json(remove_postproc=True)) == 1
    Trace.apply_json_to_schedule(sch.trace.as_json(), again := Schedule(elementwise()))
    assert str(again.func) == str(sch.func)


def test_what_is_drawn_may_be_said_when_a_trace_is_applied():
    sch = Schedule(matmul())
    choice = sch.sample_categorical([2, 4, 8], [0.2, 0.3, 0.5], decision=0)
    sch.split(sch.get_loops("C")[0], [None, choice])
    drawing = sch.trace.insts[0]
    assert [sch.trace.get_decision(call) for call in sch.trace.insts[:2]] == [0, None]
    again = Schedule(matmul())
    sch.trace.apply_to_schedule(again, decision_provider=lambda call, args, named, drawn: drawn + (call == drawing))
    assert [choice, list(again.trace.decisions.values())] == [2, [1]]
    assert sch.trace.decisions == {drawing: 0}
    assert "constant 4" in str(again.func)
    sch.trace.append(drawing, decision=2)
    assert sch.trace.decisions == {drawing: 0, sch.trace.insts[3]: 2}


def test_a_handle_that_was_removed():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    sch.remove_rv(block)
    with pytest.raises(ScheduleError, match='the handle of "C" was removed'):
        sch.get_loops(block)
    assert sch.get(sch.get_block("C")) is block.op


def test_expressions_that_are_sizes_are_factors():
    def transform(sch):
        i, j, _ = sch.get_loops("C")
        sch.split(i, [None, te.const(4, "i64")])
        sch.split(j, [te.const(2, "index") * te.const(4, "index"), None])

    sch = scheduled(matmul(), transform)
    assert "split(l0, [None, 4])" in sch.trace.as_python()
    with pytest.raises(ScheduleError, match='expected "factors" to be'):
        sch.split(sch.get_loops("C")[0], [None, te.const(4.0, "f32")])


def test_queries_whose_results_nobody_uses_are_left_out():
    sch = tiled()
    sch.get_block("C")
    sch.get_loops("C")
    assert sch.trace.simplified().as_python() == PYTHON
    assert sch.trace.insts[-1].primitive == "get_loops"
    again = Schedule(matmul())
    sch.trace.simplified().replay(again)
    assert str(again.func) == str(sch.func)


def test_a_trace_is_shown(capsys):
    tiled().trace.show()
    assert capsys.readouterr().out == PYTHON


def test_copies_go_their_own_way_with_the_same_handles():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    other = sch.copy()
    assert other.get(block) is not sch.get(block)
    assert str(other.get(block)) == str(sch.get(block))
    outer, _ = other.split(i, [None, 4])
    third = other.copy()
    sch.parallel(j)
    third.decompose_reduction(block, r)
    third.parallel(outer)
    assert sch.trace.as_python().splitlines()[2:] == ["sch.parallel(l2)"]
    assert len(other.trace.instructions) == 3
    check_same(matmul(), third.func, [{"n": 5, "m": 3, "k": 2}])
    again = Schedule(matmul())
    third.trace.replay(again)
    assert str(again.func) == str(third.func)
    with pytest.raises(ScheduleError, match="no longer in the function"):
        third.unroll(i)


def test_arguments_of_other_types_are_named():
    sch = Schedule(elementwise())
    block = sch.get_block("B")
    loop = sch.get_loops(block)[0]
    for message, call in (
        ('split: expected "loop" to be Loop, got Block(B)', lambda: sch.split(block, [2, None])),
        ("split: expected \"loop\" to be Loop, got 'i'", lambda: sch.split("i", [2, None])),
        ('compute_inline: expected "block" to be Block, got Loop(i)', lambda: sch.compute_inline(loop)),
        ('compute_at: expected "loop" to be Loop, got Block(B)', lambda: sch.compute_at("B", block)),
        ('split: expected "factors" to be Sequence[Factor], got 4', lambda: sch.split(loop, 4)),
        ('cache_read: expected "storage_scope" to be str, got 3', lambda: sch.cache_read("B", 0, 3)),
        ("split: missing a required argument: 'factors'", lambda: sch.split(loop)),
        ('add_unit_loop: expected "block_or_loop" to be Block | Loop, got [None]', lambda: sch.add_unit_loop([None])),
        ("get_blocks: too many positional arguments", lambda: sch.get_blocks("B")),
        ('cache_read: expected "block" to be Block, got [1]', lambda: sch.cache_read([1], [None])),
    ):
        before = str(sch.func)
        with pytest.raises(ScheduleError, match=f"^{re.escape(message)}$"):
            call()
        assert str(sch.func) == before
    sch.annotate("B", "note", 1)
