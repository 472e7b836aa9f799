"""Random nodes of old versions: each kind makes models that are computed, and a wrong value is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.fuzz import onnx_versions
from tests.fuzz.onnx_versions import KINDS, checked, made


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_node_is_computed(kind: str):
    assert {checked(seed, "interpret", [kind]) for seed in range(4)} <= {"right", "left out"}


def test_a_seed_makes_the_same_graph():
    first, again = made(7), made(7)
    assert first.model() == again.model()
    assert all(np.array_equal(first.feeds[name], again.feeds[name]) for name in first.feeds)


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch):
    right: Any = onnx_versions.computed
    monkeypatch.setattr(onnx_versions, "computed", lambda *given: [each + 1 for each in right(*given)])
    monkeypatch.setattr(onnx_versions, "answers", lambda *given: {"other": right(*given, "interpret")})
    with pytest.raises(AssertionError, match="WRONG"):
        checked(1, "interpret", ["variadic"])
