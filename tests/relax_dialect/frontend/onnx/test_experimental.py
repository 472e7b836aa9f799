"""Operators that were on trial in the standard against formulas in NumPy, which give what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, info, model, run, unknown

X = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).astype(np.float32)
BIAS = [1.0, 2.0, 3.0]

CASES: dict[str, tuple[dict[str, Any], Callable[[Array], Array]]] = {
    "Affine": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * x + 0.5),
    "ParametricSoftplus": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.log1p(np.exp(x / 2))),
    "ScaledTanh": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.tanh(x / 2)),
    "Scale": ({"scale": 3.0}, lambda x: 3 * x),
    "ImageScaler": ({"scale": 0.5, "bias": BIAS}, lambda x: x / 2 + np.reshape(BIAS, (3, 1, 1))),
    "Crop": ({"border": [1, 2, 1, 0]}, lambda x: x[:, :, 2:, 1:-1]),
    "Crop to a size": ({"border": [1, 2, 1, 0], "scale": [3, 2]}, lambda x: x[:, :, 2:5, 1:3]),
}


def test_values():
    names = [f"y{at}" for at in range(len(CASES))]
    nodes = [
        helper.make_node(case.split()[0], ["x"], [name], **attributes)
        for name, (case, (attributes, _)) in zip(names, CASES.items(), strict=True)
    ]
    given = info("x", X, ["n", 3, "h", "w"])
    for x in (X, X[:1, :, 1:]):
        made = run(model(nodes, [given], unknown(names, *[4] * len(names)), opset=9), x)
        for found, (name, (_, formula)) in zip(made, CASES.items(), strict=True):
            np.testing.assert_allclose(found, formula(x), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("attributes", [{}, {"border": [1, 2]}, {"border": [1, 2, 1, 0], "scale": [3]}])
def test_a_border_that_is_none(attributes: dict[str, Any]):
    node = helper.make_node("Crop", ["x"], ["y"], **attributes)
    with pytest.raises(OnnxImportError, match="four widths of the border"):
        import_model(model([node], [info("x", X)], unknown(["y"], 4), opset=9))
