"""Recurrent layers, over sequences of any length and batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto

GATES = {"LSTM": 4, "GRU": 3}


def layer(kind: str, units: int) -> ModelProto:
    """One layer with as many features as units, on (t, b, units)."""
    g, rng, bound = Graph(), np.random.default_rng(5), 1 / math.sqrt(units)
    rows = GATES[kind] * units
    weights = [rng.uniform(-bound, bound, (1, rows, units)).astype(np.float32) for _ in range(2)]
    bias = rng.uniform(-bound, bound, (1, 2 * rows)).astype(np.float32)
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    operands = map(g.weight, (*weights, bias))
    y, *_ = g.ops(kind, 1, g.input("x", ("t", "b", units)), *operands, hidden_size=units, **more)
    return g.model(y)
