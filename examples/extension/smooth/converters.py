"""Operators of ONNX and PyTorch that become ours."""

from __future__ import annotations

from typing import Any

from smooth.ops import SoftSignOp
from xdsl_relax.extend import function_of, onnx_converter, torch_converter

softsign = function_of(SoftSignOp)
"""Emits the op where a builder stands: `softsign(x, bias=2.0)`."""


@onnx_converter("SmoothSign", domain="smooth")
def smooth_sign(node: Any) -> Any:
    """A node of an own domain, with an attribute."""
    return softsign(node[0], node.number("bias", 1.0))


@torch_converter("aten.softsign.default", "smooth.softsign.default")
def torch_softsign(node: Any) -> Any:
    """A custom operator of PyTorch."""
    return softsign(node.value("self"))
