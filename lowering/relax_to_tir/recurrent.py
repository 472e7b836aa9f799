"""Recurrent layers: one matrix product for the data of all steps, then a kernel that goes through the steps.

Constant weights are transposed outside of the kernel, where they can be folded: `expand-recurrent-layers` does it
before constants are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax_to_tir.elementwise import narrowed, number, wide_dtype, widen
from lowering.relax_to_tir.kernel import Kernel, legalizes, rewrites
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import PermuteDimsOp, ReshapeOp
from relax_dialect.ops.recurrent import (
    CELLS,
    HIGHEST,
    QuantizedRecurrenceOp,
    RecurrenceOp,
    RecurrentLayerOp,
)
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant

Function: TypeAlias = Callable[[te.Expr], te.Expr]


def function(name: str, a: float, b: float, clip: float | None) -> Function:
    """A function of gates, after clipping."""
    found = _FUNCTIONS[name]

    def apply(x: te.Expr) -> te.Expr:
        bounded = x if clip is None else te.maximum(te.minimum(x, number(clip, x)), number(-clip, x))
        return found(bounded, number(a, x), number(b, x))

    return apply


def _hard_sigmoid(x: te.Expr, a: te.Expr, b: te.Expr) -> te.Expr:
    return te.maximum(te.minimum(a * x + b, 1), 0)


_FUNCTIONS: dict[str, Callable[[te.Expr, te.Expr, te.Expr], te.Expr]] = {
    "sigmoid": lambda x, a, b: te.sigmoid(x),
    "tanh": lambda x, a, b: te.tanh(x),
    "relu": lambda x, a, b: te.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leaky_relu": lambda x, a, b: te.select(x < 0, a * x, x),
    "thresholded_relu": lambda x, a, b: te.select(x > a, x, te.const(0, x.dtype)),
    "scaled_tanh": lambda x, a, b: a * te.tanh(b * x),
    "hard_sigmoid": _hard_sigmoid,
    "elu": lambda x, a, b: te.select(x < 0, a * te.expm1(te.minimum(x, 0)), x),
    "softsign": lambda x, a, b: x / (te.abs(x) + 1),
    "softplus": lambda x, a, b: te.maximum(x, 0) + te.log1p(te.exp(-te.abs(x))),
}


@rewrites(RecurrentLayerOp)
def layer(op: RecurrentLayerOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
    """Products, recurrence, and the axes of a batch that comes first; what is not known is left alone."""
    if any(isinstance(each.type, TensorType) and each.type.known_dims is None for each in op.operands):
        return None
    ops: list[Operation] = []
    results = _Layer(op, ops).results()
    rewriter.insert(ops)
    return results


class _Layer:
    """The ops that a layer becomes."""

    def __init__(self, op: RecurrentLayerOp, ops: list[Operation]):
        self.op, self.ops = op, ops
        self.first = op.batch_first is not None

    def add(self, op: Operation) -> SSAValue:
        """One more op; its only result."""
        self.ops.append(op)
        return op.results[0]

    def reshape(self, value: SSAValue, dims: Sequence[Dim]) -> SSAValue:
        """A view of another shape."""
        return self.add(ReshapeOp(value, self.add(ShapeOp(dims))))

    def swapped(self, value: SSAValue) -> SSAValue:
        """Batch and time, or direction, are swapped if batch comes first."""
        return self.add(PermuteDimsOp(value, (1, 0, 2))) if self.first and len(_shape(value)) == 3 else value

    def products(self) -> SSAValue:
        """What the data gives to the gates, with the bias of the weights."""
        op, x = self.op, self.swapped(self.op.x)
        directions, width, features = _shape(op.w)
        length, batch, _ = _shape(x)
        flat = self.reshape(x, (length * batch, features))
        weights = self.add(PermuteDimsOp(self.reshape(op.w, (directions * width, features)), (1, 0)))
        gates = self.add(AddOp(self.add(MatmulOp(flat, weights)), self.reshape(self.half(0), (directions * width,))))
        return self.reshape(gates, (length, batch, directions * width))

    def half(self, part: int) -> SSAValue:
        """The bias of the weights (0) or of the recurrence weights (1)."""
        width = _shape(self.op.w)[1]
        return self.add(StridedSliceOp(self.op.b, [1], [part * width], [(part + 1) * width], assume_inbound=True))

    def results(self) -> Sequence[SSAValue]:
        """The values of the layer's results."""
        op = self.op
        x, r, b = self.products(), self.add(PermuteDimsOp(op.r, (0, 2, 1))), self.half(1)
        states = [self.swapped(state) for state in op.states]
        recurrence = RecurrenceOp(x, r, b, op.lengths, states, op.CELL, op.properties)
        self.ops.append(recurrence)
        y, *last = recurrence.res
        if not self.first:
            return (y, *last)
        return (self.add(PermuteDimsOp(y, (2, 0, 1, 3))), *map(self.swapped, last))


def _shape(value: SSAValue) -> tuple[Dim, ...]:
    info = value.type
    if not isinstance(info, TensorType) or info.known_dims is None:
        raise ValueError(f"expected a tensor of known dimensions, got {info}")
    return info.known_dims


Update: TypeAlias = Callable[["_Steps", te.ExternBuilder, int, te.Expr, te.Expr], None]
"""Makes the states of a batch element at a time, after the products with the last states."""


@legalizes(RecurrenceOp)
def recurrence(kernel: Kernel, op: RecurrenceOp) -> Sequence[te.Tensor]:
    """All steps of all directions."""
    inputs = [kernel.tensor(operand) for operand in op.operands]
    wide = wide_dtype(inputs[0].dtype)
    shapes = [kernel.shape(result) for result in op.res]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        steps = _Steps(b, op, inputs, outs, wide)
        for direction, reverse in enumerate(op.directions):
            steps.run(b, direction, reverse)

    outputs = te.extern([(shape, wide) for shape in shapes], list(dict.fromkeys(inputs)), body, name="recurrence")
    return [narrowed(output, inputs[0].dtype) for output in outputs]


@legalizes(QuantizedRecurrenceOp)
def quantized_recurrence(kernel: Kernel, op: QuantizedRecurrenceOp) -> Sequence[te.Tensor]:
    """All steps of all directions, with products of bytes."""
    inputs = [kernel.tensor(operand) for operand in op.operands]
    shapes = [kernel.shape(result) for result in op.res]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        x, r, *parameters = inputs[:5]
        steps = _QuantizedSteps(b, op, [x, r, *inputs[5:]], outs, "f32", parameters)
        for direction, reverse in enumerate(op.directions):
            steps.run(b, direction, reverse)

    return te.extern([(shape, "f32") for shape in shapes], list(dict.fromkeys(inputs)), body, name="recurrence")


class _Steps:
    """The buffers and statements of the steps."""

    SUMS: ClassVar[str] = ""
    """The dtype of sums of products, if it is not that of the states."""

    def __init__(
        self,
        b: te.ExternBuilder,
        op: RecurrenceOp | QuantizedRecurrenceOp,
        ins: Sequence[te.Tensor],
        outs: Sequence[te.Tensor],
        wide: str,
    ):
        self.op, self.kind = op, op.cell.data
        self.x, self.r, self.b, self.lengths, *self.states = ins
        self.y, *self.last = outs
        self.length, self.batch = self.x.shape[:2]
        self.units, self.width = self.r.shape[1], self.r.shape[2]
        self.products = b.alloc((self.batch, self.width), self.SUMS or wide, "products", "global")
        self.scaled = b.alloc((self.batch, self.units), wide, "scaled", "global") if self.kind == "gru" else None
        self.functions = [function(*each) for each in op.functions(self.kind)]

    def f(self, direction: int, number: int, x: te.Expr) -> te.Expr:
        """A function of gates of a direction."""
        return self.functions[direction * len(CELLS[self.kind][1].split()) + number](x)

    def run(self, b: te.ExternBuilder, direction: int, reverse: bool) -> None:
        """All steps of a direction."""
        for state, initial in zip(self.last, self.states, strict=False):
            with b.for_range(0, self.batch, "n") as n, b.for_range(0, self.units, "u") as u:
                b.store(state, (direction, n, u), widen(initial[direction, n, u]))
        with b.for_range(0, self.length, "step") as step:
            time = b.let(te.cast(self.length - 1, "index") - step if reverse else step, "time")
            if self.kind == "gru" and self.op.linear_before_reset is None:
                self.multiply(b, direction, self.last[0], (direction,), constant(0), 2 * self.units)
                self.reset(b, direction, time)
            else:
                self.multiply(b, direction, self.last[0], (direction,), constant(0), self.width)
            with b.for_range(0, self.batch, "n") as n:
                with b.if_(te.cast(time, "i64") < te.cast(self.lengths[n], "i64")):
                    _UPDATES[self.kind](self, b, direction, time, n)
                with b.else_(), b.for_range(0, self.units, "u") as u:
                    b.store(self.y, (time, direction, n, u), te.const(0, self.y.dtype))

    def gate(self, direction: int, time: te.Expr, n: te.Expr, j: te.Expr) -> te.Expr:
        """A gate before its function: what data and states give to it, and the bias."""
        return self.from_states(direction, n, j) + self.product(direction, time, n, j)

    def from_states(self, direction: int, n: te.Expr, j: te.Expr) -> te.Expr:
        """What the states give to a gate, and the bias of their weights."""
        return self.products[n, j] + widen(self.b[direction, j])

    def product(self, direction: int, time: te.Expr, n: te.Expr, j: te.Expr) -> te.Expr:
        """What the data gives to a gate."""
        return widen(self.x[time, n, self.width * direction + j])

    def multiply(
        self, b: te.ExternBuilder, direction: int, h: te.Tensor, at: tuple[int, ...], low: Dim, high: Dim
    ) -> None:
        """The products `h @ r` for the gates from `low` to `high`."""
        with self.product_block(b, high - low) as (n, k, gate):
            j = gate if low is constant(0) else gate + low
            with b.init():
                b.store(self.products, (n, j), te.const(0, self.products.dtype))
            b.store(self.products, (n, j), self.products[n, j] + h[(*at, n, k)] * widen(self.r[direction, k, j]))

    def product_block(self, b: te.ExternBuilder, width: Dim) -> AbstractContextManager[tuple[te.Expr, ...]]:
        """A block over the batch, the units that are summed over, and so many gates: without a schedule lanes are along
        these.
        """
        return b.block("products", ("spatial", self.batch, "n"), ("reduce", self.units, "k"), ("spatial", width, "j"))

    def reset(self, b: te.ExternBuilder, direction: int, time: te.Expr) -> None:
        """The hidden gate of a GRU whose states are scaled before the product."""
        if self.scaled is None:
            raise ValueError("only a GRU has a reset gate")
        with b.for_range(0, self.batch, "n") as n, b.for_range(0, self.units, "u") as u:
            gate = self.f(direction, 0, self.gate(direction, time, n, u + self.units))
            b.store(self.scaled, (n, u), gate * self.last[0][direction, n, u])
        self.multiply(b, direction, self.scaled, (), 2 * self.units, self.width)

    def rnn(self, b: te.ExternBuilder, direction: int, time: te.Expr, n: te.Expr) -> None:
        """One function."""
        with b.for_range(0, self.units, "u") as u:
            self.emit(b, direction, time, (n, u), self.f(direction, 0, self.gate(direction, time, n, u)))

    def gru(self, b: te.ExternBuilder, direction: int, time: te.Expr, n: te.Expr) -> None:
        """Between the state and a new one."""
        with b.for_range(0, self.units, "u") as u:
            at = u + 2 * self.units
            hidden = self.gate(direction, time, n, at)
            if self.op.linear_before_reset is not None:
                gate = self.f(direction, 0, self.gate(direction, time, n, u + self.units))
                # A reset gate that comes after the product does not touch what the data gives.
                hidden = self.product(direction, time, n, at) + gate * self.from_states(direction, n, at)
            update = b.let(self.f(direction, 0, self.gate(direction, time, n, u)), "update")
            new = (1 - update) * self.f(direction, 1, hidden) + update * self.last[0][direction, n, u]
            self.emit(b, direction, time, (n, u), new)

    def lstm(self, b: te.ExternBuilder, direction: int, time: te.Expr, n: te.Expr) -> None:
        """A cell that forgets and takes in, seen through the output gate."""
        with b.for_range(0, self.units, "u") as u:
            i, o, forget, c = (self.gate(direction, time, n, u + at * self.units) for at in range(4))
            cell, index = self.last[1], (direction, n, u)
            pi, po, pf = (widen(self.states[2][direction, u + at * self.units]) for at in range(3))
            old = b.let(cell[index], "old")
            gate = b.let(self.f(direction, 0, i + pi * old), "input")
            keeps = 1 - gate if self.op.input_forget is not None else self.f(direction, 0, forget + pf * old)
            new = b.let(keeps * old + gate * self.f(direction, 1, c), "cell")
            b.store(cell, index, new)
            output = self.f(direction, 0, o + po * new) * self.f(direction, 2, new)
            self.emit(b, direction, time, (n, u), output)

    def emit(self, b: te.ExternBuilder, direction: int, time: te.Expr, at: tuple[te.Expr, te.Expr], h: te.Expr) -> None:
        """The output of a step, which is the new state too."""
        value = b.let(h, "out")
        b.store(self.y, (time, direction, *at), value)
        b.store(self.last[0], (direction, *at), value)


class _QuantizedSteps(_Steps):
    """Steps whose products are of bytes."""

    SUMS: ClassVar[str] = "i32"

    def __init__(
        self,
        b: te.ExternBuilder,
        op: QuantizedRecurrenceOp,
        ins: Sequence[te.Tensor],
        outs: Sequence[te.Tensor],
        wide: str,
        parameters: Sequence[te.Tensor],
    ):
        super().__init__(b, op, ins, outs, wide)
        self.scale, self.zero, self.sums = parameters
        self.bytes = b.alloc((self.batch, self.units), "ui8", "bytes", "global")
        self.totals = b.alloc((self.batch,), "i32", "totals", "global")
        self.low, self.high = (b.alloc((), wide, name) for name in ("low", "high"))
        self.step, self.point = b.alloc((), wide, "step"), b.alloc((), wide, "point")

    def multiply(
        self, b: te.ExternBuilder, direction: int, h: te.Tensor, at: tuple[int, ...], low: Dim, high: Dim
    ) -> None:
        """Quantises `h`, and makes the products of its integers with the weights as they are, and their sums."""
        self.find_range(b, h, at)
        with b.block("quantize", ("spatial", self.batch, "n"), ("spatial", self.units, "k")) as (n, k):
            scaled = te.round(h[(*at, n, k)] / self.step[()]) + self.point[()]
            bounded = te.minimum(te.maximum(scaled, te.const(0, "f32")), te.const(HIGHEST, "f32"))
            b.store(self.bytes, (n, k), te.cast(bounded, "ui8"))
        with b.block("totals", ("spatial", self.batch, "n"), ("reduce", self.units, "k")) as (n, k):
            with b.init():
                b.store(self.totals, (n,), te.const(0, "i32"))
            b.store(self.totals, (n,), self.totals[n] + te.cast(self.bytes[n, k], "i32"))
        with self.product_block(b, self.width) as (n, k, j):
            with b.init():
                b.store(self.products, (n, j), te.const(0, "i32"))
            product = te.cast(self.bytes[n, k], "i32") * te.cast(self.r[direction, k, j], "i32")
            b.store(self.products, (n, j), self.products[n, j] + product)

    def find_range(self, b: te.ExternBuilder, h: te.Tensor, at: tuple[int, ...]) -> None:
        """The distance of two integers, and the integer for 0, so that they reach from the least to the greatest."""
        for extreme, combine, first in ((self.low, te.minimum, math.inf), (self.high, te.maximum, -math.inf)):
            with b.block("range", ("reduce", self.batch, "n"), ("reduce", self.units, "k")) as (n, k):
                with b.init():
                    b.store(extreme, (), te.const(first, "f32"))
                b.store(extreme, (), combine(extreme[()], h[(*at, n, k)]))
        zero, highest = te.const(0, "f32"), te.const(HIGHEST, "f32")
        low = b.let(te.minimum(self.low[()], zero), "least")
        spread = b.let((te.maximum(self.high[()], zero) - low) / highest, "spread")
        b.store(self.step, (), te.select(spread > 0, spread, te.const(1, "f32")))
        b.store(self.point, (), te.round(te.minimum(te.maximum(-low / self.step[()], zero), highest)))

    def from_states(self, direction: int, n: te.Expr, j: te.Expr) -> te.Expr:
        """`sum (q - p) * (w - z) = sum q * w - z * sum q - p * sum (w - z)`, scaled, and the bias."""
        total = self.products[n, j] - self.zero[direction, j] * self.totals[n]
        total = total - te.cast(self.point[()], "i32") * self.sums[direction, j]
        scale = self.step[()] * self.scale[direction, j]
        return te.cast(total, "f32") * scale + self.b[direction, j]


_UPDATES: dict[str, Update] = {"rnn": _Steps.rnn, "gru": _Steps.gru, "lstm": _Steps.lstm}


class ExpandRecurrentLayersPass(Pass):
    """Splits a recurrent layer into one matrix product for the inputs of all steps, and a recurrence.

    Before:

    ```mlir
    %y, %h = relax.nn.rnn %x, %w, %r, %b, %lengths, %h0
    ```

    After:

    ```mlir
    %0 = relax.permute_dims %w2                   // %w2 : the weights of both directions as rows
    %1 = relax.matmul %x2, %0
    %2 = relax.add %1, %b2
    %3 = relax.permute_dims %r axes = [0, 2, 1]
    %y, %h = relax.nn.recurrence %2, %3, ...
    ```

    Layers with dimensions that have no names are left to `legalize-ops`, which does the same later. Idempotent.
    """

    name = "expand-recurrent-layers"
    requires = ("relax.nn.rnn", "relax.nn.gru", "relax.nn.lstm", "relax.nn.recurrence")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ExpandRecurrentLayer()])


class ExpandRecurrentLayer(RewritePattern):
    """A layer is matrix products over the whole sequence, and the recurrence that is left of each direction."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RecurrentLayerOp, rewriter: PatternRewriter) -> None:
        # Brings tensor expressions with it, which few programs need here.

        values = layer(op, rewriter)
        if values is not None:
            rewriter.replace(op, [], values)
