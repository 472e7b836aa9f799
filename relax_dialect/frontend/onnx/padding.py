"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import filled, surrounded
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.manipulation import element_of
from relax_dialect.frontend.onnx.node import Node, from_front
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.range_checks import indices_within
from tir_dialect import te
from tir_dialect.dims import Dim, constant


def full_pads(pads: te.Tensor, axes: te.Tensor, rank: int) -> te.Tensor:
    """Widths before and after every dimension, from those before and then those after some axes."""
    count = axes.shape[0]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        given, named = ins
        with b.for_range(0, 2 * rank, "i") as i:
            b.store(outs[0], i, 0)
        with b.for_range(0, count, "i") as i:
            position = b.let(te.cast(te.floormod(te.cast(named[i], "i64"), rank), "index"), "position")
            b.store(outs[0], position, te.cast(given[i], "i64"))
            b.store(outs[0], position + rank, te.cast(given[i + count], "i64"))

    return te.extern([((2 * rank,), "i64")], [pads, axes], body, name="full_pads")[0]


def ends_and_shape(pads: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """The place in the result behind the last element of the data, by dimension, and then the result's shape.

    Data that ends before the result begins is not there.
    """
    rank = len(shape)

    def number(i: te.Expr) -> te.Expr:
        end = element_of([*shape, *shape], i) + te.cast(pads[i], "i64")
        return te.if_then_else(i < rank, te.maximum(end, 0), end + te.cast(pads[i - rank], "i64"))

    return te.compute((2 * rank,), number, name="padded_shape")


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@converts("Pad")
def pad(node: Node) -> Result:
    """More elements around, or fewer where a number is negative."""
    mode = node.text("mode", "constant")
    if mode not in _MODES:
        raise Refusal(f"the mode {mode} does not exist")
    widths, value = _widths(node), _value(node)
    if widths is None or value is None or (min(widths, default=0) < 0 and mode != "constant"):
        return _at_run_time(node, mode)
    return op.nn.pad(node[0], widths, _MODES[mode], value)


def _widths(node: Node) -> list[int] | None:
    """Two numbers for each dimension, before and after; `None` if they are data."""
    given = node.ints(1) if node.version >= 11 else node.integers("pads")
    axes: tuple[int, ...] | None = tuple(range(node.rank()))
    if node.has(3):
        axes = node.ints(3)
    if given is None or axes is None:
        return None
    widths, count = [0] * (2 * node.rank()), len(axes)
    if len(given) != 2 * count:
        raise Refusal(f"expected {2 * count} pads, got {len(given)}")
    for at, axis in enumerate(axes):
        position = from_front(axis, node.rank())
        widths[2 * position], widths[2 * position + 1] = given[at], given[at + count]
    return widths


def _value(node: Node) -> float | None:
    """The element that is added; `None` if it is data."""
    if node.version < 11:
        return node.number("value")
    if not node.has(2):
        return 0.0
    found = node.numbers(2)
    return None if found is None else found[0]


def _at_run_time(node: Node, mode: str) -> Expr:
    """Padding whose widths or value are data, or which takes elements away before it repeats others."""
    widths = _widths(node)
    if widths is None:
        ends, shape = _read(node)
    else:
        before, after = widths[::2], widths[1::2]
        ends = tuple(own + width for own, width in zip(node.shape(), before, strict=True))
        padded = [end + width for end, width in zip(ends, after, strict=True)]
        shape = node.named(padded, node.hinted_dims(node.rank()))

    def fill(x: te.Tensor, value: te.Tensor) -> te.Tensor:
        return filled(x, shape, _before(x, ends), value[()])

    def surround(x: te.Tensor) -> te.Tensor:
        return surrounded(x, shape, _before(x, ends), _MODES[mode], provable=True)

    if mode != "constant":
        return node.te(surround, node[0], name="pad")
    value = node[2] if node.has(2) and node.version >= 11 else node.like(0)
    return node.te(fill, node[0], value if value.ndim == 0 else op.reshape(value, []), name="pad")


def _before(x: te.Tensor, ends: Sequence[Dim]) -> list[Dim]:
    """How many elements are before data that ends at some positions."""
    return [end - own for end, own in zip(ends, x.shape, strict=True)]


def _read(node: Node) -> tuple[Sequence[Dim], Sequence[Dim]]:
    """Where the data ends in the result, and the result's shape, of widths that are data."""
    shape, rank = node.shape(), node.rank()
    pads = node[1]
    if node.has(3):
        axes = indices_within(node.bb, node[3], [constant(rank)], "'Pad' axes", "the rank")
        pads = node.te(lambda pads, axes: full_pads(pads, axes, rank), pads, axes, name="full_pads")
    numbers = node.te(lambda pads: ends_and_shape(pads, shape), pads, name="padded_shape")
    dims = node.run_time_dims(numbers, (*(None,) * rank, *node.hinted_dims(rank)))
    return dims[:rank], dims[rank:]
