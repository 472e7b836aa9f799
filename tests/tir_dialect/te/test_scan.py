"""Scans: values against loops of NumPy, in interpreter and native code, and what does not fit together."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from tests.support.te_values import evaluate
from tir_dialect import Schedule, te
from tir_dialect.interpreter import run_prim_func
from vm_dialect import VirtualMachine

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), "f32", "X")
W = te.placeholder((n, n), "f32", "W")
STATE = te.placeholder((m, n), "f32", "state")
FIRST = te.compute((1, n), lambda _, i: X[0, i], name="first")


def cumulative():
    added = te.compute((m, n), lambda t, i: STATE[t - 1, i] + X[t, i], name="add")
    return te.scan(FIRST, added, STATE, [X], "C")


def recurrent():
    """Two states, a matrix product and a value that both updates use, in each step."""
    h, c = te.placeholder((m, n), "f32", "h"), te.placeholder((m, n), "f32", "c")
    k = te.reduce_axis(n, "k")
    product = te.compute((m, n), lambda t, i: te.sum(W[i, k] * h[t - 1, k], k), name="product")
    gate = te.compute((m, n), lambda t, i: te.tanh(product[t, i] + X[t, i]), name="gate")
    cell = te.compute((m, n), lambda t, i: c[t - 2, i] * 0.5 + gate[t, i], name="cell")
    hidden = te.compute((m, n), lambda t, i: gate[t, i] * cell[t, i], name="hidden")
    start = te.compute((2, n), lambda t, i: X[t, i] * 2.0, name="start")
    return te.scan([start, start], [hidden, cell], [h, c], name="rnn")


def by_hand(x, w):
    h, c = x * 2, x * 2
    for t in range(2, len(x)):
        gate = np.tanh(w @ h[t - 1] + x[t])
        c[t] = c[t - 2] * np.float32(0.5) + gate
        h[t] = gate * c[t]
    return h, c


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_values(steps):
    x = np.random.default_rng(steps).random((steps, 3), np.float32)
    w = np.random.default_rng(7).random((3, 3), np.float32)
    np.testing.assert_allclose(evaluate([X], cumulative(), x, m=steps, n=3), np.cumsum(x, 0), rtol=1e-5)
    for got, want in zip(evaluate([X, W], recurrent(), x, w, m=steps, n=3), by_hand(x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_native():
    funcs = [te.create_prim_func([X, cumulative()], "sums"), te.create_prim_func([X, W, *recurrent()], "rnn")]
    machine = VirtualMachine(build(ModuleOp(funcs)))
    w = np.random.default_rng(7).random((3, 3), np.float32)
    for steps in (0, 1, 6):
        x = np.random.default_rng(steps).random((steps, 3), np.float32)
        got = [np.zeros_like(x) for _ in range(3)]
        machine["sums"](x, got[0])
        machine["rnn"](x, w, *got[1:])
        for result, want in zip(got, (np.cumsum(x, 0), *by_hand(x, w)), strict=True):
            np.testing.assert_allclose(result, want, rtol=1e-5)


def test_steps_can_be_scheduled():
    func = te.create_prim_func([X, cumulative()])
    schedule = Schedule(func)
    _, i = schedule.get_loops("add")
    outer, _ = schedule.split(i, [None, 2])
    schedule.parallel(outer)
    x = np.random.default_rng(1).random((4, 3), np.float32)
    got = np.zeros_like(x)
    run_prim_func(func, [x, got])
    np.testing.assert_allclose(got, np.cumsum(x, 0), rtol=1e-5)


def update(body):
    return te.compute((m, n), body, name="next")


def test_names_are_no_inputs():
    with pytest.raises(TypeError, match='expected tensors as inputs, got "C"; pass the name as name='):
        te.scan(FIRST, update(lambda t, i: STATE[t - 1, i]), STATE, "C")


WRONG = {
    "expected as many inits, updates and states": lambda: te.scan([FIRST], [], [STATE]),
    'state "first" of scan "scan" is computed': lambda: te.scan(FIRST, update(lambda t, i: X[t, i]), FIRST),
    'update "X" of scan "scan" is not the result of te.compute': lambda: te.scan(FIRST, X, STATE),
    "of one shape": lambda: te.scan(te.compute((1, m), lambda _, i: X[i, 0]), update(lambda t, i: X[t, i]), STATE),
    "of one dtype": lambda: te.scan(FIRST, update(lambda t, i: X[t, i] > 0), STATE),
    'reads a slice of "state" that the step has not computed': lambda: te.scan(
        FIRST, update(lambda t, i: STATE[t, i] + 1.0), STATE
    ),
    "expected m as its first dimension": lambda: te.scan(
        FIRST, update(lambda t, i: te.compute((n, m), lambda i, t: STATE[t, i])[i, t - 1]), STATE
    ),
    "has a part that depends on its state and is not the result of te.compute": lambda: te.scan(
        FIRST,
        update(lambda t, i: te.extern([((m, n), "f32")], [STATE], lambda b, x, y: b.store(y[0], (0, 0), 0.0))[0][t, i]),
        STATE,
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_fit(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()
