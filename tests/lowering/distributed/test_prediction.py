"""Predictions: operations are divided among workers, messages grow with them."""

import numpy as np
import pytest

from lowering.distributed.program import shard
from lowering.distributed.report import Machine, operations, predict
from lowering.parsing import parse_module

LAYER = """relax.func @main[%n](%x: !relax.tensor<[n, 64], f32>,
    %up: !relax.tensor<[64, 256], f32, sharding<x = 2: S[1]>>,
    %down: !relax.tensor<[256, 64], f32>) -> !relax.object {
  %0 = relax.matmul %x, %up
  %1 = relax.matmul %0, %down
  relax.return %1
}"""


def test_operations():
    module = parse_module(LAYER)
    assert str(operations(module, "main")) == "32768 * n"
    assert str(operations(shard(module, {"x": 4}), "main")) == "8192 * n"


def test_layer():
    """An all-reduce of `256 * n` bytes: a ring sends `2 (p - 1) / p` of it in `2 (p - 1)` messages."""
    machine = Machine(latency=1e-6, bandwidth=1e9, rate=1e9)
    for found in predict(parse_module(LAYER), "x", (1, 2, 8, 64), {"n": 10}, machine):
        workers = found.workers
        assert found.computing == pytest.approx(327680 / workers / 1e9)
        assert found.sending == pytest.approx(2 * (workers - 1) * (1e-6 + 2560 / workers / 1e9))
    assert np.isfinite(found.seconds)
