"""Windows of signals, and frequencies."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts

_COSINES = {"hann_window": [0.5, 0.5], "blackman_window": [0.42, 0.5, 0.08]}


@converts(
    *(f"aten.{name}.{overload}" for name in _COSINES for overload in ("default", "periodic")),
    *(f"aten.hamming_window.{overload}" for overload in ("default", "periodic", "periodic_alpha")),
    "aten.hamming_window.periodic_alpha_beta",
)
def window(node: Node) -> Result:
    """A sum of cosines with alternating signs; it is periodic unless it is said not to be."""
    hamming = [node.number("alpha", 0.54), node.number("beta", 0.46)]
    periodic = node.value("periodic") is not False
    coefficients = _COSINES.get(node.name, hamming)
    return op.cosine_window(node.dim("window_length"), coefficients, periodic=periodic, dtype=node.out_dtype())


@converts("aten.fft_fftfreq.default", "aten.fft_rfftfreq.default")
def frequencies(node: Node) -> Result:
    """The frequencies of a Fourier transform; above the half, negative ones."""
    (length,), dtype, n = node.out_dims(), node.out_dtype(), node.dim("n")
    index = op.arange(0, length, 1, dtype=i64)
    if node.name == "fft_fftfreq":
        size, half = node.graph.dimension(n, i64), node.graph.dimension((n + 1) // 2, i64)
        index = op.where(op.less(index, half), index, op.subtract(index, size))
    step = op.multiply(node.graph.dimension(n, dtype), node.const(node.number("d", 1.0), dtype))
    return op.divide(node.matched(index, dtype), step)
