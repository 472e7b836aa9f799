"""Random heavy ONNX nodes: each kind makes models that are computed, and a wrong value is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.fuzz import onnx_nodes
from tests.fuzz.onnx_nodes import KINDS, checked, made, same


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_node_is_computed(kind: str):
    assert {checked(seed, ["host"], [kind]) for seed in range(2)} <= {"right", "left out"}


def test_a_seed_makes_the_same_graph():
    first, again = made(7), made(7)
    assert first.model() == again.model()
    assert all(np.array_equal(first.feeds[name], again.feeds[name]) for name in first.feeds)
    assert len({made(seed, ["gemm"]).model().SerializeToString() for seed in range(10)}) == 10


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch):
    def wrong(*_: Any) -> Any:
        return lambda *_: np.zeros((3, 3), np.float32)

    monkeypatch.setattr(onnx_nodes, "VirtualMachine", lambda _: {"main": wrong()})
    monkeypatch.setattr(onnx_nodes, "to_numpy", lambda each: each)
    with pytest.raises(AssertionError, match="WRONG for host"):
        checked(0, ["host"], ["gemm"])


def test_rounding_is_as_large_as_the_largest_element():
    exact = np.array([1000.0, 0.0], np.float32)
    assert same(exact + np.float32(0.05), exact)
    assert not same(exact + np.float32(0.5), exact)
    assert not same(exact.astype(np.float64), exact)
    assert same(np.array([7], np.uint8), np.array([8], np.uint8))
    assert not same(np.array([7], np.int32), np.array([8], np.int32))
