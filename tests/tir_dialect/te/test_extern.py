"""Extern bodies: what the builder refuses."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import DictionaryAttr, StringAttr

from tir_dialect import te
from tir_dialect.ops.blocks import BlockOp

n = te.var("n")
X = te.placeholder((n,), "f32", "X")
HIDDEN = te.placeholder((n,), "f32", "hidden")


def store_to_input(b, x, y):
    b.store(x, 0, 1.0)


def store_other_dtype(b, x, y):
    b.store(y, 0, te.const(1, "i32"))


def use_of_hidden(b, x, y):
    b.store(y, 0, HIDDEN[0])


def escaping_loop_variable(b, x, y):
    with b.for_range(0, n, name="i") as i:
        b.store(y, i, x[i])
    b.store(y, i, x[i])


def escaping_let(b, x, y):
    with b.if_(x[0] > 0):
        kept = b.let(x[0], name="kept")
    b.store(y, 0, kept)


def escaping_local(b, x, y):
    with b.if_(x[0] > 0):
        tmp = b.alloc((), "f32", name="tmp")
    b.store(y, 0, tmp[()])


def lonely_else(b, x, y):
    with b.else_():
        b.store(y, 0, 1.0)


def second_else(b, x, y):
    with b.if_(x[0] > 0):
        b.store(y, 0, 1.0)
    with b.else_():
        b.store(y, 0, 2.0)
    with b.else_():
        b.store(y, 0, 3.0)


def reduction_inside(b, x, y):
    r = te.reduce_axis(n, "r")
    b.store(y, 0, te.sum(x[r], r))


def init_of_a_loop(b, x, y):
    with b.for_range(0, n, name="i") as i, b.init():
        b.store(y, i, x[i])


def late_init(b, x, y):
    with b.block("sum", ("spatial", n, "i"), ("reduce", n, "r")) as (i, r):
        b.store(y, i, y[i] + x[r])
        with b.init():
            b.store(y, i, 0.0)


def hidden_argument(b, x, y):
    b.call_extern("f", HIDDEN)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (store_to_input, 'te: extern "E" stores to "X", which is no output and not allocated'),
        (store_other_dtype, 'te: extern "E" stores i32 to "E" of f32, use te.cast'),
        (use_of_hidden, 'te: extern "E" uses "hidden", which is not among its inputs'),
        (escaping_loop_variable, 'te: extern "E" uses "i" outside of the region that binds it'),
        (escaping_let, 'te: extern "E" uses "kept" outside of the region that binds it'),
        (escaping_local, 'te: extern "E" uses "tmp", which is not among its inputs'),
        (lonely_else, 'te: extern "E" has an else_ that does not follow an if_'),
        (second_else, 'te: extern "E" has an else_ that does not follow an if_'),
        (reduction_inside, 'te: extern "E" contains a reduction, write it as a loop or a compute'),
        (init_of_a_loop, 'te: extern "E" has an init that is not the first statement of a block'),
        (late_init, 'te: extern "E" has an init that is not the first statement of a block'),
        (hidden_argument, 'te: extern "E" uses "hidden", which is not among its inputs'),
    ],
)
def test_refusals(body, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        te.extern([((n,), "f32")], [X], lambda b, ins, outs: body(b, *ins, *outs), name="E")


def test_scalar_parameters_are_allowed_in_bodies():
    scale = te.scalar("scale", "f32")

    def body(b, ins, outs):
        with b.for_range(0, n) as i:
            b.store(outs[0], i, ins[0][i] * scale)

    (out,) = te.extern([((n,), "f32")], [X], body)
    te.create_prim_func([X, scale, out]).verify()


@pytest.mark.parametrize(("shapes", "count"), [((n, 2), 1), ([(n, 2), n], 2)])
def test_shapes_of_one_dtype(shapes, count):
    made = te.extern(shapes, [X], lambda b, ins, outs: b.store(outs[0], (0, 0), 1.0), dtype="f32")
    assert [str(out.dtype) for out in made] == ["f32"] * count
    assert [str(extent) for extent in made[0].shape] == ["n", "2"]


@pytest.mark.parametrize("outputs", [(4, 2), [(4,)], [4]])
def test_outputs_need_dtypes(outputs):
    with pytest.raises(TypeError, match='outputs of extern "C" are pairs of shape and dtype, or shapes with dtype='):
        te.extern(outputs, [], lambda b, ins, outs: None, name="C")


def test_outputs_of_several_dtypes():
    def both(b, ins, outs):
        (x,), (y, z) = ins, outs
        with b.for_range(0, n) as i:
            b.store(y, i, x[i] + 1)
            b.store(z, i, te.cast(x[i], "f32"))

    x = te.placeholder((n,), "i32", "X")
    y, z = te.extern([(n,), (n,)], [x], both, dtype=["i32", "f32"])
    assert [str(each.dtype) for each in (y, z)] == ["i32", "f32"]
    with pytest.raises(TypeError, match='extern "extern" has 2 shapes, got 1 dtypes'):
        te.extern([(n,), (n,)], [x], both, dtype=["i32"])


def test_tags_and_attributes():
    x = te.placeholder((n,), "i32", "X")
    y = te.extern((n,), [x], lambda ins, outs: te.call_packed("f", ins[0], outs[0]), tag="sort", attrs={"like": x})
    assert (y.op.tag, dict(y.op.attrs)) == ("sort", {"like": "X"})
    (block,) = (op for op in te.create_prim_func([x, y]).walk() if isinstance(op, BlockOp))
    assert block.annotations == DictionaryAttr({"like": StringAttr("X")})


def test_functions_of_other_parameters_or_results():
    message = 'te: extern "E" expected a function of builder, inputs and outputs, or of inputs and outputs'
    for function in (lambda x: None, lambda b, x, y, z: None, 5):
        with pytest.raises(TypeError, match=message):
            te.extern([((n,), "f32")], [X], function, name="E")
    assert te.extern([((n,), "f32")], [X], lambda b, x, y, unused=0: None)
    message = 'te: extern "E" expected te.call_packed or te.call_extern from its function, got None'
    for result in (None, [None]):
        with pytest.raises(TypeError, match=message.replace("None", re.escape(str(result)))):
            te.extern((n,), [X], _giving(result), name="E")


def _giving(result):
    return lambda ins, outs: result
