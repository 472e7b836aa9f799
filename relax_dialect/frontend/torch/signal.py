"""Windows of signals."""

from __future__ import annotations

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
