"""Layers that do little in inference."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.random import seed_of
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("Dropout")
def dropout(node: Node) -> Result:
    """The data as they are, unless in training; the mask is true everywhere."""
    training = node.known(2)
    if node.has(2) and training is None:
        raise Refusal("whether dropout is in training is not known while importing")
    if training is not None and training.any():
        return _training_dropout(node)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return node.value(0)
    one = node.bb.const(True) if node.version >= 10 else node.like(1)
    return node.value(0), op.full(list(node.shape()), one)


def _training_dropout(node: Node) -> Result:
    """Zeros at random places, as many as the ratio says; the others are scaled, so that the mean stays."""
    ratio = op.astype(node[1], node.dtype()) if node.has(1) else node.like(0.5)
    random = op.random.uniform(shape=list(node.shape()), dtype=node.dtype(), **seed_of(node))
    mask, scaled = op.greater_equal(random, ratio), op.divide(node[0], op.subtract(node.like(1), ratio))
    return op.where(mask, scaled, node.like(0)), mask


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
