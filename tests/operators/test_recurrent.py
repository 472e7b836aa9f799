"""Recurrent layers against sequences computed one by one, in every mode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, Tolerance, random

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def _params(kind: str, directions: int, dtype: str = "f32", batch_first: bool = False) -> str:
    width = f"{GATES[kind]} * h"
    data, state = ("b, t", f"b, {directions}") if batch_first else ("t, b", f"{directions}, b")
    shapes = {
        "x": f"{data}, i",
        "w": f"{directions}, {width}, i",
        "r": f"{directions}, {width}, h",
        "bias": f"{directions}, {2 * GATES[kind]} * h",
        "l": "b",
        "h0": f"{state}, h",
    }
    if kind == "lstm":
        shapes |= {"c0": f"{state}, h", "p": f"{directions}, 3 * h"}
    return ", ".join(
        f"%{name}: !relax.tensor<[{shape}], {'i32' if name == 'l' else dtype}>" for name, shape in shapes.items()
    )


def _program(kind: str, direction: str, extra: str = "", dtype: str = "f32") -> tuple[str, str]:
    directions = 2 if direction == "bidirectional" else 1
    operands = "%x, %w, %r, %bias, %l, %h0" + (", %c0, %p" if kind == "lstm" else "")
    results = "%y, %last, %cell" if kind == "lstm" else "%y, %last"
    text = f'{results} = relax.nn.{kind} {operands} direction = "{direction}" {extra}'
    return _params(kind, directions, dtype, "batch_first" in extra), text


DIRECTIONS = {"rnn": ["bidirectional"], "gru": ["bidirectional"], "lstm": ["forward", "reverse", "bidirectional"]}
"""How sequences of every length run; other cases have the directions that are not here."""
MANY = (
    'activations = "hard_sigmoid elu softsign affine leaky_relu scaled_tanh" clip = 0.75 '
    "alphas = [0.25, 1.0, 0.0, 0.5, 0.1, 0.9] betas = [0.5, 0.0, 0.0, 0.125, 0.0, 0.8]"
)
PROGRAMS = Programs(
    {
        **{f"{kind}_{d}": _program(kind, d) for kind, directions in DIRECTIONS.items() for d in directions},
        **{f"{kind}_first": _program(kind, "bidirectional", "batch_first") for kind in GATES},
        "gru_before": _program("gru", "bidirectional", "linear_before_reset"),
        "lstm_coupled": _program("lstm", "forward", "input_forget"),
        "lstm_many": _program("lstm", "bidirectional", MANY),
        "gru_others": _program("gru", "forward", 'activations = "softplus thresholded_relu"'),
        "rnn_relu": _program("rnn", "reverse", 'activations = "relu"'),
        "lstm_f16": _program("lstm", "forward", dtype="f16"),
        "steps": (
            "%x: !relax.tensor<[t, b, 3 * h], f32>, %r: !relax.tensor<[1, h, 3 * h], f32>, "
            "%bias: !relax.tensor<[1, 3 * h], f32>, %l: !relax.tensor<[b], i64>, %h0: !relax.tensor<[1, b, h], f32>",
            '%y, %last = relax.nn.recurrence %x, %r, %bias, %l, %h0 cell = "gru"',
        ),
        "gru_f64": _program("gru", "reverse", dtype="f64"),
    }
)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


STANDARD: dict[str, list[Callable[[Any], Any]]] = {
    "rnn": [np.tanh],
    "gru": [_sigmoid, np.tanh],
    "lstm": [_sigmoid, np.tanh, np.tanh],
}


def _arguments(kind: str, directions: int, sizes: tuple[int, int, int, int], dtype: str = "f32") -> list[np.ndarray]:
    t, b, i, h = sizes
    width = GATES[kind] * h
    shapes = [(t, b, i), (directions, width, i), (directions, width, h), (directions, 2 * width)]
    tensors = [random(dtype, *shape, seed=at, low=-1, high=1) for at, shape in enumerate(shapes)]
    lengths = np.random.default_rng(5).integers(0, t + 1, b).astype(np.int32)
    if b:
        lengths[0] = t
    states = [random(dtype, directions, b, h, seed=9 + at) for at in range(2 if kind == "lstm" else 1)]
    peephole = [random(dtype, directions, 3 * h, seed=20)] if kind == "lstm" else []
    return [*tensors, lengths, *states, *peephole]


def _step(kind: str, f: list[Any], x: Any, w: Any, r: Any, b: Any, s: list[Any], p: Any, flags: str) -> list[Any]:
    """One element, one step, as ONNX writes it."""
    h, n = s[0], len(s[0])
    wb, rb = np.split(b, 2)

    def gate(at: int, state: Any = h) -> Any:
        rows = slice(at * n, (at + 1) * n)
        return w[rows] @ x + wb[rows] + r[rows] @ state + rb[rows]

    if kind == "rnn":
        return [f[0](gate(0))]
    if kind == "gru":
        z, reset = f[0](gate(0)), f[0](gate(1))
        rows = slice(2 * n, None)
        if "before" in flags:
            new = f[1](w[rows] @ x + wb[rows] + reset * (r[rows] @ h + rb[rows]))
        else:
            new = f[1](gate(2, reset * h))
        return [(1 - z) * new + z * h]
    pi, po, pf = np.split(p, 3)
    i = f[0](gate(0) + pi * s[1])
    keep = 1 - i if "coupled" in flags else f[0](gate(2) + pf * s[1])
    c = keep * s[1] + i * f[1](gate(3))
    return [f[0](gate(1) + po * c) * f[2](c), c]


def _expected(kind: str, direction: str, args: list[Any], flags: str = "", functions: Any = None) -> tuple[Any, ...]:
    dtype = args[0].dtype
    x, w, r, b, lengths, *rest = [a.astype(np.float64) if a.dtype.kind != "i" else a for a in args]
    (t, batch, _), (d, _, n) = x.shape, r.shape
    y, last = np.zeros((t, d, batch, n)), [state.copy() for state in rest[:2]]
    functions = functions or STANDARD[kind] * d
    per = len(functions) // d
    for at in range(d):
        backward = direction == "reverse" or at == 1
        for element in range(batch):
            state = [each[at, element] for each in last]
            order = range(lengths[element])
            for step in reversed(order) if backward else order:
                peephole = rest[2][at] if kind == "lstm" else None
                mine = functions[at * per : (at + 1) * per]
                state = _step(kind, mine, x[step, element], w[at], r[at], b[at], state, peephole, flags)
                y[step, at, element] = state[0]
            for whole, part in zip(last, state, strict=True):
                whole[at, element] = part
    return tuple(each.astype(dtype) for each in (y, *last))


SIZES = [(0, 1, 2, 3), (1, 1, 1, 1), (5, 3, 2, 6), (3, 0, 2, 2), (4, 2, 0, 5), (7, 2, 3, 4)]
WIDE = Tolerance(2e-5, 2e-5)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("sizes", SIZES)
def test_directions(kind: str, sizes: tuple[int, int, int, int]):
    for direction in DIRECTIONS[kind]:
        args = _arguments(kind, 2 if direction == "bidirectional" else 1, sizes)
        PROGRAMS.check(f"{kind}_{direction}", args, _expected(kind, direction, args), WIDE)


@pytest.mark.parametrize("kind", GATES)
def test_batch_first(kind: str):
    args = _arguments(kind, 2, (4, 3, 2, 5))
    y, *last = _expected(kind, "bidirectional", args)
    moved = [a.swapaxes(0, 1).copy() if at in (0, 5, 6) and a.ndim == 3 else a for at, a in enumerate(args)]
    expected = (y.transpose(2, 0, 1, 3).copy(), *(each.swapaxes(0, 1).copy() for each in last))
    PROGRAMS.check(f"{kind}_first", moved, expected, WIDE)


def test_variants():
    for name, kind, direction in (
        ("gru_before", "gru", "bidirectional"),
        ("lstm_coupled", "lstm", "forward"),
    ):
        args = _arguments(kind, 2 if direction == "bidirectional" else 1, (5, 2, 3, 6))
        PROGRAMS.check(name, args, _expected(kind, direction, args, name), WIDE)


def _clipped(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(np.clip(x, -0.75, 0.75))


def test_functions():
    many: list[Callable[[Any], Any]] = [
        lambda x: np.clip(0.25 * x + 0.5, 0, 1),
        lambda x: np.where(x < 0, np.expm1(x), x),
        lambda x: x / (1 + np.abs(x)),
        lambda x: 0.5 * x + 0.125,
        lambda x: np.where(x < 0, 0.1 * x, x),
        lambda x: 0.9 * np.tanh(0.8 * x),
    ]
    args = _arguments("lstm", 2, (4, 2, 3, 5))
    expected = _expected("lstm", "bidirectional", args, functions=[_clipped(f) for f in many])
    PROGRAMS.check("lstm_many", args, expected, WIDE)
    args = _arguments("gru", 1, (4, 2, 3, 5))
    others = [lambda x: np.logaddexp(x, 0), lambda x: np.where(x > 1, x, 0)]
    PROGRAMS.check("gru_others", args, _expected("gru", "forward", args, functions=others), Tolerance(1e-4, 1e-4))
    args = _arguments("rnn", 1, (4, 2, 3, 5))
    expected = _expected("rnn", "reverse", args, functions=[lambda x: np.maximum(x, 0)])
    PROGRAMS.check("rnn_relu", args, expected, WIDE)


@pytest.mark.parametrize(
    ("name", "kind", "direction"), [("lstm_f16", "lstm", "forward"), ("gru_f64", "gru", "reverse")]
)
def test_other_dtypes(name: str, kind: str, direction: str):
    dtype = name[-3:]
    args = _arguments(kind, 1, (5, 3, 4, 3), dtype)
    tolerance = Tolerance(1e-2, 4e-3) if dtype == "f16" else Tolerance(1e-12, 1e-12)
    PROGRAMS.check(name, args, _expected(kind, direction, args), tolerance)
    assert args[0].dtype == DTYPES[dtype]


def test_the_recurrence_alone():
    """Products of the data that are the data: weights of ones on the diagonal."""
    x, w, r, bias, lengths, h0 = _arguments("gru", 1, (5, 3, 12, 4))
    w, halves = np.eye(12, dtype=np.float32)[None], np.split(bias, 2, axis=1)
    bias = np.concatenate([np.zeros_like(halves[0]), halves[1]], 1)
    expected = _expected("gru", "forward", [x, w, r, bias, lengths, h0])
    args = [x, r.swapaxes(1, 2).copy(), halves[1].copy(), lengths.astype(np.int64), h0]
    PROGRAMS.check("steps", args, expected, WIDE)
