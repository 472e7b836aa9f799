"""Layers that do little in inference."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("Dropout")
def dropout(node: Node) -> Result:
    """The data as they are; the mask is true everywhere."""
    training = node.known(2)
    if node.has(2) and (training is None or training.any()):
        raise Refusal("dropout in training is not supported")
    if len(node.outputs) < 2 or not node.outputs[1]:
        return node.value(0)
    one = node.bb.const(True) if node.version >= 10 else node.like(1)
    return node.value(0), op.full(list(node.shape()), one)


@converts("DepthToSpace")
def depth_to_space(node: Node) -> Result:
    """Blocks of channels as blocks of rows and columns."""
    (n, c, h, w), size = node.shape(), node.integer("blocksize")
    depth = c // (size * size)
    if node.text("mode", "DCR") == "DCR":
        x = op.permute_dims(op.reshape(node[0], [n, size, size, depth, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        x = op.permute_dims(op.reshape(node[0], [n, depth, size, size, h, w]), [0, 1, 4, 2, 5, 3])
    return op.reshape(x, [n, depth, h * size, w * size])


@converts("SpaceToDepth")
def space_to_depth(node: Node) -> Result:
    """Blocks of rows and columns as blocks of channels."""
    (n, c, h, w), size = node.shape(), node.integer("blocksize")
    x = op.reshape(node[0], [n, c, h // size, size, w // size, size])
    order = [0, 3, 5, 1, 2, 4] if node.text("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return op.reshape(op.permute_dims(x, order), [n, c * size * size, h // size, w // size])
