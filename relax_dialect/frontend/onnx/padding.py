"""Padding."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.kernels.padding import full_pads, pad_at_run_time, padded_shape
from relax_dialect.frontend.onnx.node import Node, from_front
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te

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
    given = node.ints(1) if node.version >= 11 else node.integers("pads") or node.integers("paddings")
    axes: tuple[int, ...] | None = tuple(range(node.rank()))
    if node.has(3):
        axes = node.ints(3)
    if given is None or axes is None:
        return None
    widths, count = [0] * (2 * node.rank()), len(axes)
    if len(given) != 2 * count:
        raise Refusal(f"expected {2 * count} pads, got {len(given)}")
    for at, axis in enumerate(axes):
        place = from_front(axis, node.rank())
        widths[2 * place], widths[2 * place + 1] = given[at], given[at + count]
    return widths


def _value(node: Node) -> float | None:
    """The element that is added; `None` if it is data."""
    if node.version < 11:
        return node.number("value")
    if not node.has(2):
        return 0.0
    found = node.floats(2)
    return None if found is None or 1 << 53 <= abs(found[0]) < float("inf") else found[0]


def _at_run_time(node: Node, mode: str) -> Expr:
    """Padding whose widths or value are data."""
    rank = node.rank()
    widths = _widths(node)
    given = node.bb.const(widths, "i64") if widths is not None else _full(node)
    shape = node.te(lambda pads: padded_shape(pads, node.shape()), given, name="padded_shape")
    dims = node.run_time_dims(shape, node.hinted_dims(rank))
    value = node[2] if node.has(2) and node.version >= 11 else node.like(0)
    scalar = value if value.ndim == 0 else op.reshape(value, [])

    def kernel(x: te.Tensor, pads: te.Tensor, value: te.Tensor) -> te.Tensor:
        return pad_at_run_time(x, pads, value, dims, mode)

    return node.te(kernel, node[0], given, scalar)


def _full(node: Node) -> Expr:
    """The widths of all dimensions as a tensor, before and after each."""
    axes = node[3] if node.has(3) else node.bb.const(list(range(node.rank())), "i64")
    return node.te(lambda pads, axes: full_pads(pads, axes, node.rank()), node[1], axes, name="full_pads")
