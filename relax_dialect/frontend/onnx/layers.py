"""Layers that do little in inference.

Random numbers: functions of a seed, which a node gives, or of the model's and a stream of the node's own.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_float


@converts("RandomUniform", "RandomUniformLike")
def random_uniform(node: Node) -> Result:
    """Numbers between two others, all equally likely."""
    low, high = node.number("low"), node.number("high", 1.0)
    return op.random.uniform(shape=_shape(node), low=low, high=high, dtype=_dtype(node), **seed_of(node))


@converts("RandomNormal", "RandomNormalLike")
def random_normal(node: Node) -> Result:
    """Normally distributed numbers."""
    mean, scale = node.number("mean"), node.number("scale", 1.0)
    return op.random.normal(shape=_shape(node), mean=mean, scale=scale, dtype=_dtype(node), **seed_of(node))


@converts("Bernoulli")
def bernoulli(node: Node) -> Result:
    """One with the probability that an element says, else zero; the function of the standard has them reversed."""
    random = op.random.uniform(shape=list(node.shape()), dtype=node.dtype(), **seed_of(node))
    return op.astype(op.less(random, node[0]), node.element_type("dtype") or node.dtype())


@converts("Multinomial")
def multinomial(node: Node) -> Result:
    """Samples from distributions that are given by the logarithms of probabilities, up to a constant."""
    (rows, _), count = node.shape(), node.integer("sample_size", 1)
    uniform = op.random.uniform(shape=[rows * count, 1], dtype=node.dtype(), **seed_of(node))
    row_of = op.reshape(op.floor_divide(op.arange(0, rows * count, 1), count), [rows * count, 1])
    dtype = node.element_type("dtype") or i32
    samples = op.multinomial_from_uniform(op.nn.softmax(node[0], axis=-1), uniform, row_of, dtype=dtype)
    return op.reshape(samples, [rows, count])


def seed_of(node: Node) -> dict[str, Any]:
    """The seed and stream of a node's numbers.

    The seed is that of its attribute; or else that of the model, and the stream one that no other node has. The body of
    a loop would have the same numbers in each turn: `Refusal`.
    """
    graph = node.graph
    if graph.is_repeated:
        raise Refusal("random numbers within a loop would be the same in each turn; compute them before it")
    if "seed" in node.attributes:
        return {"seed": int(np.float32(node.number("seed")).view(np.int32))}
    stream = zlib.crc32((graph.prefix + node.outputs[0]).encode())
    return {"seed": 0 if graph.seed is None else graph.seed, "stream": stream}


def _shape(node: Node) -> list[Dim | int]:
    """The shape that an attribute says, or that of the operand."""
    given = node.integers("shape")
    return list(node.shape() if given is None else given)


def _dtype(node: Node) -> Attribute:
    dtype = node.element_type("dtype") or node.dtype()
    if not is_float(dtype):
        raise Refusal(f"random numbers are floating-point, not {dtype}")
    return dtype


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
