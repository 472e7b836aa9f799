"""Operators that the standard once had on trial, and ONNX Runtime still has: older converters, of CoreML for one, write
them.
"""

from __future__ import annotations

import numpy as np

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("Affine", "ParametricSoftplus", "Scale", "ScaledTanh")
def with_factors(node: Node) -> Result:
    """Functions of elements with factors that are attributes."""
    x, (alpha, beta, scale) = node[0], (node.like(node.number(name, 1.0)) for name in ("alpha", "beta", "scale"))
    if node.op_type == "Affine":
        return op.add(op.multiply(x, alpha), node.like(node.number("beta")))
    if node.op_type == "Scale":
        return op.multiply(x, scale)
    function = op.tanh if node.op_type == "ScaledTanh" else op.nn.softplus
    return op.multiply(alpha, function(op.multiply(x, beta)))


@converts("ImageScaler")
def image_scaler(node: Node) -> Result:
    """Images times a factor, with a bias for each channel."""
    bias = np.asarray(node.attribute("bias", ()), np.float32).reshape(-1, 1, 1)
    return op.add(op.multiply(node[0], node.like(node.number("scale", 1.0))), node.const(bias, node.dtype()))


@converts("Crop")
def crop(node: Node) -> Result:
    """Images without a border on the left, top, right and bottom; or of a size, from its left and top."""
    border, size = node.integers("border") or (), node.integers("scale")
    if node.rank() != 4 or len(border) != 4 or (size is not None and len(size) != 2):
        raise Refusal("expected images, four widths of the border, and a height and a width if there is a scale")
    left, top, right, bottom = border
    height, width = node.shape()[2:]
    ends = [height - bottom, width - right] if size is None else [top + size[0], left + size[1]]
    return op.strided_slice(node[0], [2, 3], [top, left], ends)
