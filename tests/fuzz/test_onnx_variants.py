"""Variants of tests of single ONNX operators: what they are made of, and that a wrong value is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.fuzz import onnx_variants
from tests.fuzz.onnx_variants import Variant, checked, model, variants

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SOFTMAX = Variant("softmax", helper.make_node("Softmax", ["x"], ["y"], axis=1), 13, (X,))
CLIP = Variant("clip", helper.make_node("Clip", ["x", "low", "high"], ["y"]), 13, (X, np.float32(1), np.float32(4)))


def said(base: Variant, kind: str) -> list[str]:
    return [each.said.removeprefix(f"{base.said} ") for each in variants(base, kind)]


def test_variants_of_an_operator():
    assert said(SOFTMAX, "dtype") == ["T=bfloat16", "T=double", "T=float16"]
    assert said(SOFTMAX, "size")[:4] == ["2->0", "2->1", "3->0", "3->1"]
    assert said(SOFTMAX, "axis") == ["axis=[-1]"]
    assert said(SOFTMAX, "attribute") == ["no axis", "axis=0", "axis=2", "axis=-1"]
    assert said(CLIP, "input") == ["no min", "no max"]
    assert "T=int64" in said(CLIP, "dtype")
    assert not np.isfinite(variants(SOFTMAX, "special")[0].inputs[0]).all()


def test_an_input_that_is_left_out_is_no_input_of_the_model():
    proto, feeds = model(variants(CLIP, "input")[0])
    assert list(proto.graph.node[0].input) == ["x", "", "high"]
    assert list(feeds) == ["x", "high"]


def test_outcomes():
    chosen = [*variants(SOFTMAX, "axis"), *variants(SOFTMAX, "dtype"), *variants(CLIP, "input")]
    seen = {checked(each, "interpret") for each in chosen}
    assert "right" in seen
    assert seen <= {"right", "left out"}


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch):
    def wrong(*_: Any) -> list[np.ndarray[Any, Any]]:
        return [X]

    monkeypatch.setattr(onnx_variants, "computed", wrong)
    with pytest.raises(AssertionError, match="WRONG"):
        checked(SOFTMAX, "interpret")
