"""Choosing tokens from logits, as a kernel: greedy, or drawn by probability among the likeliest ones.

The likeliest tokens are found without sorting: probabilities are counted by their leading bits, and only those of one
count are searched for the bound. All of equal probability are kept or left out together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.builder import Expr, op, tensor
from relax_dialect.builder.emitter import InfoLike
from relax_dialect.nn.config import NONE_ALLOWED, NOT_A_NUMBER
from relax_dialect.nn.module import current_builder, known_shape
from tir_dialect import te

NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "random")
"""The columns of what choosing goes by; the last one is a random number from 0 to 1, excluded, for each token."""
COUNTS = ("top_k", "before")
"""The columns of integers: of how many of the likeliest tokens one is drawn, 0 for all, and how many there were."""

_LOW_BITS = 20
_HIGH = 1 << (30 - _LOW_BITS)
"""Numbers from 0 to 1 have 30 bits that differ; they are counted by the high ones."""


def choosing_types(batch: str | int = "batch") -> dict[str, InfoLike]:
    """The parameters of `choose` after the logits."""
    return {
        "numbers": tensor((batch, len(NUMBERS))),
        "counts": tensor((batch, len(COUNTS)), "i64"),
        "before": tensor((batch, "length"), "i64"),
    }


def choose(logits: Expr, numbers: Expr, counts: Expr, before: Expr) -> Expr:
    """A token for each row of logits, `(batch,)` of `i64`, `NOT_A_NUMBER` or `NONE_ALLOWED`.

    `before` has the different tokens so far in the first columns, whose logits are divided by the penalty if they are
    positive, and multiplied by it otherwise.
    """
    batch, vocabulary = known_shape(logits)
    best = op.argmax(logits, axis=-1)
    rows = te.var("batch") if batch.constant_value is None else batch
    inputs = [
        te.placeholder((rows, vocabulary), "f32", "logits"),
        te.placeholder((rows,), "i64", "best"),
        te.placeholder((rows, len(NUMBERS)), "f32", "numbers"),
        te.placeholder((rows, len(COUNTS)), "i64", "counts"),
        te.placeholder((rows, te.var("length")), "i64", "before"),
    ]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("choose", ("spatial", rows, "i")) as (row,):
            _Row(b, ins, outs[0], row).choose()

    (tokens,) = te.extern([((rows,), "i64")], inputs, body, name="tokens")
    func = te.create_prim_func([*inputs, tokens], name="choose_token")
    return current_builder().call_tir(func, [logits, best, numbers, counts, before], tensor((batch,), "i64"))


class _Row:
    """The statements for a row of logits."""

    def __init__(self, b: te.ExternBuilder, ins: Sequence[te.Tensor], out: te.Tensor, row: te.Expr):
        self._b, self._ins, self._out, self._row = b, ins, out, row
        self._size = ins[0].shape[1]

    def choose(self) -> None:
        """Stores the token."""
        b, row, (logits, best, numbers, counts, _) = self._b, self._row, self._ins
        temperature = b.let(numbers[row, NUMBERS.index("temperature")], "temperature")
        there = b.let(counts[row, COUNTS.index("before")], "there")
        first = b.let(best[row], "first")
        likeliest = b.let(logits[row, self._within(te.cast(first, "index"))], "likeliest")
        is_number = te.logical_not(te.isnan(likeliest))
        with b.if_(te.logical_and(is_number, te.logical_or(temperature > _number("0"), there > 0))):
            self._choose_changed(temperature, te.cast(there, "index"))
        with b.else_():
            allowed = te.select(likeliest > _number("-inf"), first, _token(NONE_ALLOWED))
            b.store(self._out, row, te.select(is_number, allowed, _token(NOT_A_NUMBER)))

    def _choose_changed(self, temperature: te.Expr, there: te.Expr) -> None:
        """The token of logits that are penalised or drawn from."""
        b, row, (logits, _, numbers, _, before) = self._b, self._row, self._ins
        found = b.alloc((self._size,), "f32", "found", scope="global")
        with b.for_range(0, self._size, "j") as j:
            b.store(found, j, logits[row, j])
        penalty = numbers[row, NUMBERS.index("repetition_penalty")]
        with b.for_range(0, there, "k") as k:
            token = b.let(self._within(te.cast(before[row, k], "index")), "token")
            b.store(found, token, te.select(found[token] > 0.0, found[token] / penalty, found[token] * penalty))
        top, first = b.alloc((), "f32", "top"), b.alloc((), "i64", "first")
        b.store(top, (), _number("-inf"))
        b.store(first, (), 0)
        with b.for_range(0, self._size, "j") as j, b.if_(found[j] > top[()]):
            b.store(top, (), found[j])
            b.store(first, (), te.cast(j, "i64"))
        with b.if_(top[()] == _number("-inf")):
            b.store(self._out, row, _token(NONE_ALLOWED))
        with b.else_():
            with b.if_(temperature > 0.0):
                self._draw(found, top, temperature)
            with b.else_():
                b.store(self._out, row, first[()])

    def _draw(self, found: te.Tensor, top: te.Tensor, temperature: te.Expr) -> None:
        """A token drawn by probability; `found` becomes the probabilities, that of the likeliest one being 1."""
        b, row, numbers = self._b, self._row, self._ins[2]
        with b.for_range(0, self._size, "j") as j:
            b.store(found, j, te.exp((found[j] - top[()]) / temperature))
        bound = b.alloc((), "i32", "bound")
        b.store(bound, (), 0)
        top_k = b.let(self._ins[3][row, COUNTS.index("top_k")], "top_k")
        with b.if_(te.logical_and(top_k > 0, top_k < te.cast(self._size, "i64"))):
            self._find_bound(bound, found, te.cast(top_k, "f64"), lambda number: te.const(1.0, "f64"))
        top_p = b.let(numbers[row, NUMBERS.index("top_p")], "top_p")
        with b.if_(top_p < 1.0):
            wanted = self._total(found, bound) * te.cast(top_p, "f64")
            self._find_bound(bound, found, wanted, lambda number: te.cast(number, "f64"))
        least = _bits(numbers[row, NUMBERS.index("min_p")])
        b.store(bound, (), te.select(least > bound[()], least, bound[()]))
        share = te.cast(numbers[row, NUMBERS.index("random")], "f64")
        self._pick(found, bound, b.let(self._total(found, bound) * share, "drawn"))

    def _total(self, found: te.Tensor, bound: te.Tensor) -> te.Expr:
        """The sum of the probabilities from a bound on."""
        b = self._b
        total = b.alloc((), "f64", "total")
        b.store(total, (), 0.0)
        with b.for_range(0, self._size, "j") as j, b.if_(_bits(found[j]) >= bound[()]):
            b.store(total, (), total[()] + te.cast(found[j], "f64"))
        return b.let(total[()], "total")

    def _pick(self, found: te.Tensor, bound: te.Tensor, drawn: te.Expr) -> None:
        """Stores the token at which the sum of the probabilities from a bound on exceeds what is drawn."""
        b = self._b
        total, token, last = b.alloc((), "f64", "sum"), b.alloc((), "i64", "token"), b.alloc((), "i64", "last")
        b.store(total, (), 0.0)
        b.store(token, (), -1)
        b.store(last, (), 0)
        with b.for_range(0, self._size, "j") as j, b.if_(_bits(found[j]) >= bound[()]):
            b.store(total, (), total[()] + te.cast(found[j], "f64"))
            b.store(last, (), te.cast(j, "i64"))
            with b.if_(te.logical_and(token[()] < 0, total[()] > drawn)):
                b.store(token, (), te.cast(j, "i64"))
        b.store(self._out, self._row, te.select(token[()] < 0, last[()], token[()]))

    def _find_bound(
        self, bound: te.Tensor, found: te.Tensor, wanted: te.Expr, weight: Callable[[te.Expr], te.Expr]
    ) -> None:
        """Raises the bound to the greatest one from which on probabilities weigh as much as is wanted.

        First among the bounds that begin a count, then bit by bit within that count.
        """
        b = self._b
        wanted = b.let(wanted, "wanted")
        weights = b.alloc((_HIGH,), "f64", "weights")
        with b.for_range(0, _HIGH, "h") as h:
            b.store(weights, h, 0.0)
        with b.for_range(0, self._size, "j") as j, b.if_(_bits(found[j]) >= bound[()]):
            high = b.let(te.cast(_bits(found[j]) >> _LOW_BITS, "index"), "high")
            at = te.minimum(te.maximum(high, 0), _HIGH - 1)
            b.store(weights, at, weights[at] + weight(found[j]))
        above, high = b.alloc((), "f64", "above"), b.alloc((), "i32", "count")
        b.store(above, (), 0.0)
        b.store(high, (), _HIGH)
        with b.for_range(0, _HIGH, "h") as h:
            upper = b.let(_HIGH - 1 - h, "upper")
            with b.if_(te.logical_and(high[()] == _HIGH, above[()] + weights[upper] >= wanted)):
                b.store(high, (), te.cast(upper, "i32"))
            with b.if_(high[()] == _HIGH):
                b.store(above, (), above[()] + weights[upper])
        self._refine(bound, found, (high, above, wanted), weight)

    def _refine(
        self,
        bound: te.Tensor,
        found: te.Tensor,
        count: tuple[te.Tensor, te.Tensor, te.Expr],
        weight: Callable[[te.Expr], te.Expr],
    ) -> None:
        """Raises the bound to the greatest one in a count: of the count, what weighs above it, and what is wanted."""
        b, (high, above, wanted) = self._b, count
        members, size = b.alloc((self._size,), "f32", "members", scope="global"), b.alloc((), "i64", "size")
        b.store(size, (), 0)
        with b.for_range(0, self._size, "j") as j, b.if_(_bits(found[j]) >> _LOW_BITS == high[()]):
            b.store(members, self._within(te.cast(size[()], "index")), found[j])
            b.store(size, (), size[()] + 1)
        with b.if_(high[()] < _HIGH):
            lowest = b.let(high[()] << _LOW_BITS, "lowest")
            b.store(bound, (), te.select(lowest > bound[()], lowest, bound[()]))
            with b.for_range(0, _LOW_BITS, "step") as step:
                bit = te.const(1, "i32") << (te.const(_LOW_BITS - 1, "i32") - te.cast(step, "i32"))
                higher, total = b.let(bound[()] | bit, "higher"), b.alloc((), "f64", "total")
                b.store(total, (), above[()])
                with (
                    b.for_range(0, self._within(te.cast(size[()], "index") - 1) + 1, "m") as m,
                    b.if_(_bits(members[m]) >= higher),
                ):
                    b.store(total, (), total[()] + weight(members[m]))
                with b.if_(total[()] >= wanted):
                    b.store(bound, (), higher)

    def _within(self, index: te.Expr) -> te.Expr:
        """An index of a logit, whatever it was."""
        return te.maximum(te.minimum(index, self._size - 1), 0)


def _bits(number: te.Expr) -> te.Expr:
    """The bits of a number that is not negative, which are in its order."""
    return te.reinterpret(number, "i32")


def _number(text: str) -> te.Expr:
    return te.const(float(text), "f32")


def _token(token: int) -> te.Expr:
    return te.const(token, "i64")
