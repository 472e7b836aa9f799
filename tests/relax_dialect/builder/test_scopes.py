"""Dataflow regions, branches and loops: what is visible where, and what they give."""

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from lowering.verify import verify_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, Expr, op, tensor
from relax_dialect.interpreter import run
from relax_dialect.struct_info.types import ObjectType

BOOL = tensor((), "i1")


def verified(bb: BlockBuilder) -> str:
    module = bb.get()
    verify_module(module)
    return str(module)


def test_outputs_stand_for_results_after_the_region():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        assert not bb.current_block_is_dataflow()
        with bb.dataflow():
            assert bb.current_block_is_dataflow()
            inner = x + 1
            out = bb.emit_output(inner, "out")
            more = bb.emit_output(out * 2)
        assert bb.lookup_binding(out) is bb.lookup_binding(more)
        with pytest.raises(BuilderError, match=r"operand #0 \(%out\) is not visible in function main"):
            _ = inner + 1
        bb.emit_func_output((out, more))
    text = verified(bb)
    assert "%out, %gv = relax.dataflow {" in text
    assert "relax.output %out_1, %lv" in text


def test_symbols_leave_a_region_with_their_witness():
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(None, "f32")}) as (x,):
        with bb.dataflow():
            y = bb.match_cast(x, ("k", "m"), bounds={"k": (1, None)})
            out = bb.emit_output(y)
            bb.emit_output(bb.symbol("k"))
        assert out.type == tensor(("k", None))
        assert bb.symbol("k").dim == bb.symbol("k").dim
        with pytest.raises(BuilderError, match="the symbol m is not bound"):
            bb.symbol("m")
        again = bb.match_cast(out, ("k", "m"))
        bb.emit_func_output(again)
    verified(bb)


def test_regions_refuse_what_does_not_belong_there():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "c": BOOL}, pure=False) as (x, c):
        for label in ("effect", "nested", "control flow"):
            with pytest.raises((BuilderError, VerifyException), match=r"holds|expected"):
                refused(bb, label, x, c)
        bb.emit_func_output(x)
    verified(bb)


def refused(bb: BlockBuilder, label: str, x: Expr, c: Expr) -> None:
    with bb.dataflow():
        if label == "effect":
            bb.call_packed("effect", x)
        elif label == "nested":
            with bb.dataflow():
                bb.emit_output(x)
        else:
            with bb.if_(c) as branch, branch.then():
                pass


def branch_program(bb: BlockBuilder) -> None:
    with bb.function("main", {"x": ("n",), "c": BOOL}) as (x, c):
        with bb.if_(c) as branch:
            with branch.then():
                bb.yield_(x + 1, x)
            with branch.otherwise():
                bb.yield_(op.concat([x, x]), x * 2)
        first, second = branch.results
        assert (first.type, second.type) == (tensor((None,)), tensor(("n",)))
        with pytest.raises(BuilderError, match="expected one result, got 2"):
            _ = branch.result
        bb.emit_func_output((first, second))


@pytest.mark.parametrize("condition", [True, False])
def test_branches(condition: bool):
    bb = BlockBuilder()
    branch_program(bb)
    verified(bb)
    x = np.array([1, 2], np.float32)
    result = run(bb.get(), "main", [x, np.array(condition)])
    assert isinstance(result, tuple)
    first, second = result
    np.testing.assert_array_equal(first, x + 1 if condition else np.concatenate([x, x]))
    np.testing.assert_array_equal(second, x if condition else 2 * x)


def test_branch_with_given_type_and_without_alternative():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "c": BOOL}, pure=False) as (x, c):
        with bb.if_(c, out=ObjectType()) as branch:
            with pytest.raises(BuilderError, match="results after its end"):
                _ = branch.results
            with branch.then():
                bb.yield_(x)
            with branch.otherwise():
                bb.yield_(x)
        assert branch.result.type == ObjectType()
        with bb.if_(c) as effect, effect.then():
            op.print("{}", [x])
        assert effect.results == ()
        with pytest.raises(BuilderError, match="no `then`"), bb.if_(c):
            pass
        bb.emit_func_output(branch.result)
    verified(bb)


def test_branches_must_agree():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "c": BOOL}) as (x, c):
        branch = bb.if_(c)
        with pytest.raises(VerifyException, match="then region expected 0 values"), branch, branch.then():
            bb.yield_(x)
        bb.emit_func_output(x)


def test_for_loop_carries_values():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with bb.for_(1, "n", {"acc": x}, step=2) as (i, acc):
            assert str(i.type) == "!relax.prim<i64>"
            bb.yield_(acc + x)
        with bb.for_(0, bb.symbol("n"), {"acc": (x[:0], tensor(("m",)))}, symbol="i") as loop:
            assert loop.counter.dim == bb.symbol("i").dim
            row = op.full([1], 1.0, "f32")
            bb.yield_(op.concat([*loop.carried, row]))
        assert loop.result.type == tensor((None,))
        with pytest.raises(BuilderError, match="the symbol m is not bound"):
            bb.symbol("m")
        bb.emit_func_output((loop.result, acc_of(bb, x)))
    verified(bb)
    grown, doubled = results(bb, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(grown, np.ones(4))
    np.testing.assert_array_equal(doubled, np.arange(4) * 4)


def acc_of(bb: BlockBuilder, x: Expr) -> Expr:
    with bb.for_(0, 2, {"acc": x}) as loop:
        (_, acc) = loop
        bb.yield_(acc * 2)
    return loop.result


def results(bb: BlockBuilder, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    found = run(bb.get(), "main", list(arrays))
    assert isinstance(found, tuple)
    return tuple(np.asarray(each) for each in found)


def test_while_loop_with_shapes_that_change():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with bb.while_({"k": bb.const(0), "y": (x, tensor(("m",)))}) as loop:
            with loop.condition() as (k, _):
                bb.yield_(k < 3)
            with loop.body() as (k, y):
                bb.yield_(k + 1, op.concat([y, y]))
        bb.emit_func_output(loop.results)
    verified(bb)
    count, grown = results(bb, np.ones(2, np.float32))
    assert count == 3
    assert grown.shape == (16,)


def test_loops_need_their_parts():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with pytest.raises(BuilderError, match="both `condition` and `body`"), bb.while_({"x": x}):
            pass
        loop = bb.for_(0, 2, {"x": x})
        with pytest.raises(VerifyException, match="expected 1 yielded values, got 0"), loop:
            pass
        bb.emit_func_output(x)
    verified(bb)


def test_what_is_bound_in_a_region_is_not_visible_after_it():
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor((None,)), "c": BOOL}) as (x, c):
        with bb.if_(c) as branch:
            with branch.then():
                inner = bb.match_cast(x, ("m",))
                bb.yield_(inner)
            with branch.otherwise():
                bb.yield_(bb.match_cast(x, ("m",)) * 2)
        assert branch.result.type == tensor((None,))
        with pytest.raises(BuilderError, match="it belongs to another function or to a region that has ended"):
            _ = inner + 1
        bb.emit_func_output(branch.result)
    verified(bb)
