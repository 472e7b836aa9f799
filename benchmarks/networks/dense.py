"""Networks without structure: a multilayer perceptron, a chain of tiny operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto

WIDTH, DEPTH, LENGTH = 1024, 4, 200


def mlp() -> ModelProto:
    """Four layers of width 1024 with ReLU between them."""
    rng = np.random.default_rng(1)
    g = Graph()
    x = g.input("x", ("n", WIDTH))
    for index in range(DEPTH):
        w = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / math.sqrt(WIDTH)
        b = rng.standard_normal(WIDTH, dtype=np.float32)
        x = g.op("Add", g.op("MatMul", x, g.weight(w)), g.weight(b))
        x = g.op("Relu", x) if index + 1 < DEPTH else x
    return g.model(x)


def chain() -> ModelProto:
    """200 operators on a vector, every second one with another constant; no two neighbours are the same."""
    g = Graph()
    x = g.input("x", ("n",))
    for index in range(LENGTH // 2):
        x = g.op("Tanh", g.op("Add", x, g.scalar(1 / (index + 1))))
    return g.model(x)
