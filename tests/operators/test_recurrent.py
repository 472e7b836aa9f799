"""Recurrent layers against sequences computed one by one, in every mode."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, Tolerance, random, slow_ones

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


BYTES = [("lstm", "i8"), ("lstm", "ui8"), ("gru", "i8"), ("rnn", "ui8")]
"""Cells and dtypes of weights of recurrences of bytes."""


def _bytes_program(kind: str, weights: str) -> tuple[str, str]:
    width = f"{GATES[kind]} * h"
    shapes = {"x": (f"t, b, 2 * ({width})", "f32"), "r": (f"2, h, {width}", weights), "scale": (f"2, {width}", "f32")}
    shapes |= {name: (f"2, {width}", "i32") for name in ("zero", "sums")}
    shapes |= {"bias": (f"2, {width}", "f32"), "l": ("b", "i32"), "h0": ("2, b, h", "f32")}
    if kind == "lstm":
        shapes |= {"c0": ("2, b, h", "f32"), "p": ("2, 3 * h", "f32")}
    results = "%y, %last, %cell" if kind == "lstm" else "%y, %last"
    flags = "linear_before_reset" if kind == "gru" else ""
    operands = ", ".join(f"%{name}" for name in shapes)
    text = f'{results} = relax.nn.quantized_recurrence {operands} cell = "{kind}" direction = "bidirectional" {flags}'
    return ", ".join(f"%{name}: !relax.tensor<[{shape}], {dtype}>" for name, (shape, dtype) in shapes.items()), text


KNOWN = 37
"""Units whose number is known."""


def _with_units(units: int, params: str, text: str) -> tuple[str, str]:
    """A program with so many units."""
    return re.sub(r"\bh\b", str(units), params), text


DIRECTIONS = {"rnn": ["bidirectional"], "gru": ["bidirectional"], "lstm": ["forward", "reverse", "bidirectional"]}
"""How sequences of every length run; other cases have the directions that are not here."""
MANY = (
    'activations = "hard_sigmoid elu softsign affine leaky_relu scaled_tanh" clip = 0.75 '
    "alphas = [0.25, 1.0, 0.0, 0.5, 0.1, 0.9] betas = [0.5, 0.0, 0.0, 0.125, 0.0, 0.8]"
)
SELDOM = (
    *("rnn_first", "lstm_first", "lstm_many", "gru_others", "rnn_relu", "gru_f64"),
    *("bytes_lstm_ui8", "bytes_gru_i8", "bytes_rnn_ui8"),
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
        **{f"bytes_{kind}_{weights}": _bytes_program(kind, weights) for kind, weights in BYTES},
        # Weights of known sizes, with which products are GEMMs.
        "lstm_known": _with_units(KNOWN, *_program("lstm", "bidirectional")),
        "gru_known": _with_units(KNOWN, *_program("gru", "reverse")),
        "bytes_known": _with_units(KNOWN, *_bytes_program("lstm", "i8")),
    },
    SELDOM,
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


@pytest.mark.parametrize("name", slow_ones([f"{kind}_first" for kind in GATES], SELDOM))
def test_batch_first(name: str):
    kind, _, _ = name.partition("_")
    args = _arguments(kind, 2, (4, 3, 2, 5))
    y, *last = _expected(kind, "bidirectional", args)
    moved = [a.swapaxes(0, 1).copy() if at in (0, 5, 6) and a.ndim == 3 else a for at, a in enumerate(args)]
    expected = (y.transpose(2, 0, 1, 3).copy(), *(each.swapaxes(0, 1).copy() for each in last))
    PROGRAMS.check(name, moved, expected, WIDE)


def test_variants():
    for name, kind, direction in (
        ("gru_before", "gru", "bidirectional"),
        ("lstm_coupled", "lstm", "forward"),
    ):
        args = _arguments(kind, 2 if direction == "bidirectional" else 1, (5, 2, 3, 6))
        PROGRAMS.check(name, args, _expected(kind, direction, args, name), WIDE)


def _clipped(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(np.clip(x, -0.75, 0.75))


@pytest.mark.slow
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
    expected = _expected(
        "lstm", "bidirectional", args, functions=[f if at % 3 == 2 else _clipped(f) for at, f in enumerate(many)]
    )
    PROGRAMS.check("lstm_many", args, expected, WIDE)
    args = _arguments("gru", 1, (4, 2, 3, 5))
    others = [lambda x: np.logaddexp(x, 0), lambda x: np.where(x > 1, x, 0)]
    PROGRAMS.check("gru_others", args, _expected("gru", "forward", args, functions=others), Tolerance(1e-4, 1e-4))
    args = _arguments("rnn", 1, (4, 2, 3, 5))
    expected = _expected("rnn", "reverse", args, functions=[lambda x: np.maximum(x, 0)])
    PROGRAMS.check("rnn_relu", args, expected, WIDE)


@pytest.mark.parametrize("name", slow_ones(["lstm_f16", "gru_f64"], SELDOM))
def test_other_dtypes(name: str):
    kind, _, dtype = name.partition("_")
    direction = "forward" if kind == "lstm" else "reverse"
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


@pytest.mark.parametrize("batch", [0, 1, 3, 17, 33])
def test_known_units(batch: int):
    """Products of one row, of few, and of many."""
    for name, kind, direction in (("lstm_known", "lstm", "bidirectional"), ("gru_known", "gru", "reverse")):
        args = _arguments(kind, 2 if kind == "lstm" else 1, (3, batch, 2, KNOWN))
        PROGRAMS.check(name, args, _expected(kind, direction, args), WIDE)
    args = _bytes_arguments("lstm", "i8", 3, batch, KNOWN)
    PROGRAMS.check("bytes_known", args, _bytes_expected("lstm", args), WIDE)


def _bytes_arguments(kind: str, weights: str, t: int, b: int, h: int) -> list[np.ndarray]:
    """Weights with zero points; the states of the first direction, all positive, begin with the point 0.

    All are so small that no function of a gate is saturated: -1 and 1 would be half-way between two integers.
    """
    rng, width = np.random.default_rng(t + b + h), GATES[kind] * h
    low, high = (-128, 128) if weights == "i8" else (0, 256)
    r = rng.integers(low, high, (2, h, width)).astype(DTYPES[weights])
    zero = rng.integers(low, high, (2, width)).astype(np.int32)
    sums = (r.astype(np.int32) - zero[:, None]).sum(1, dtype=np.int32)
    scale, bias = (rng.uniform(0, 0.001, (2, width)).astype(np.float32) for _ in range(2))
    x = rng.normal(0, 0.5, (t, b, 2 * width)).astype(np.float32)
    states = rng.normal(0, 1, (2 if kind == "lstm" else 1, 2, b, h)).astype(np.float32)
    states[0, 0] = abs(states[0, 0])
    peephole = [rng.normal(0, 1, (2, 3 * h)).astype(np.float32)] if kind == "lstm" else []
    lengths = rng.integers(0, t + 1, b).astype(np.int32)
    return [x, r, scale, zero, sums, bias, lengths, *states, *peephole]


def _quantized(h: np.ndarray) -> np.ndarray:
    """What integers stand for, as DynamicQuantizeLinear of ONNX says, by way of its text in f32."""
    low, high = np.float32(min(h.min(initial=0), 0)), np.float32(max(h.max(initial=0), 0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    point = np.rint(np.clip(-low / scale, 0, 255))
    return (np.clip(np.rint(h / scale) + point, 0, 255) - point).astype(np.float64) * np.float64(scale)


def _bytes_expected(kind: str, args: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The recurrence of the real numbers for which bytes stand."""
    x, r, scale, zero, _, bias, lengths, *rest = args
    weights = (r.astype(np.float64) - zero[:, None]) * scale[:, None]
    width, (t, b) = weights.shape[2], x.shape[:2]
    last = [state.astype(np.float64) for state in rest[:2]]
    y = np.zeros((t, 2, b, weights.shape[1]))
    for d in range(2):
        for step in range(t) if d == 0 else reversed(range(t)):
            gates = x[step, :, d * width : (d + 1) * width].astype(np.float64)
            product = _quantized(last[0][d].astype(np.float32)) @ weights[d] + bias[d]
            state = [each[d] for each in last]
            new = _bytes_step(kind, gates, product, state, rest[2][d] if kind == "lstm" else None)
            alive = (step < lengths)[:, None]
            y[step, d] = np.where(alive, new[0], 0)
            for whole, mine in zip(last, new, strict=True):
                whole[d] = np.where(alive, mine, whole[d])
    return tuple(each.astype(np.float32) for each in (y, *last))


def _bytes_step(kind: str, x: Any, product: Any, s: list[Any], p: Any) -> list[Any]:
    if kind == "rnn":
        return [np.tanh(x + product)]
    xs, rs = np.split(x, GATES[kind], axis=1), np.split(product, GATES[kind], axis=1)
    if kind == "gru":
        z, reset = _sigmoid(xs[0] + rs[0]), _sigmoid(xs[1] + rs[1])
        return [(1 - z) * np.tanh(xs[2] + reset * rs[2]) + z * s[0]]
    i, o, f, c = (a + b for a, b in zip(xs, rs, strict=True))
    pi, po, pf = np.split(p, 3)
    cell = _sigmoid(f + pf * s[1]) * s[1] + _sigmoid(i + pi * s[1]) * np.tanh(c)
    return [_sigmoid(o + po * cell) * np.tanh(cell), cell]


BYTES_SIZES = [(0, 1, 3), (1, 1, 1), (3, 0, 2), (3, 2, 0), (4, 3, 5), (2, 1, 37), (3, 17, 8)]


@pytest.mark.parametrize("name", slow_ones([f"bytes_{kind}_{weights}" for kind, weights in BYTES], SELDOM))
def test_bytes(name: str):
    _, kind, weights = name.split("_")
    for t, b, h in BYTES_SIZES:
        args = _bytes_arguments(kind, weights, t, b, h)
        PROGRAMS.check(name, args, _bytes_expected(kind, args), WIDE)
