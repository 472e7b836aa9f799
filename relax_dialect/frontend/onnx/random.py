"""Random numbers: functions of a seed, which a node gives, or of the model's and a stream of the node's own."""

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
