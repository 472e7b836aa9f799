"""Optimizers: steps of several parameters at once, as the onnx package computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, info, reference, run

DOMAIN = "ai.onnx.preview.training"
OPTIMIZERS: dict[str, tuple[int, dict[str, Any]]] = {
    "Adagrad": (1, {"decay_factor": 0.1, "epsilon": 1e-5, "norm_coefficient": 0.01}),
    "Adam": (2, {"alpha": 0.95, "beta": 0.99, "epsilon": 1e-6, "norm_coefficient": 0.01, "norm_coefficient_post": 0.1}),
    "Momentum": (1, {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.01, "mode": "standard"}),
}
"""How many tensors each keeps for a parameter, and attributes."""
NESTEROV = {**OPTIMIZERS["Momentum"][1], "mode": "nesterov"}
CASES = [(name, kept, attributes) for name, (kept, attributes) in OPTIMIZERS.items()] + [("Momentum", 1, NESTEROV)]


def _model(name: str, attributes: dict[str, Any], feeds: dict[str, Array], results: int) -> Any:
    """One step; the first dimension of the first parameter is not known."""
    inputs = [info(key, value, ["n", 3] if value.ndim == 2 else None) for key, value in feeds.items()]
    outputs = [f"y{index}" for index in range(results)]
    kept = [key for key in feeds if key not in ("rate", "step")]
    infos = [
        info(output, feeds[kept[index % 2]], ["n", 3] if not index % 2 else None)
        for index, output in enumerate(outputs)
    ]
    node = helper.make_node(name, list(feeds), outputs, domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "graph", inputs, infos)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize(("name", "kept", "attributes"), CASES)
def test_steps(name: str, kept: int, attributes: dict[str, Any], step: int):
    random = np.random.default_rng(step)
    feeds: dict[str, Array] = {"rate": np.array(0.1, np.float32), "step": np.array(step, np.int64)}
    for number in range(2 + kept):
        feeds[f"x{number}"] = random.uniform(0.1, 1, (4, 3)).astype(np.float32)
        feeds[f"w{number}"] = random.uniform(0.1, 1, 5).astype(np.float32)
    proto = _model(name, attributes, feeds, 2 + 2 * kept)
    for found, expected in zip(run(proto, *feeds.values()), reference(proto, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_lists_of_unequal_length():
    feeds: dict[str, Array] = {"rate": np.array(0.1, np.float32), "step": np.array(0, np.int64)}
    feeds |= {name: np.ones(3, np.float32) for name in ("x", "gradient")}
    with pytest.raises(
        OnnxImportError, match="expected a learning rate, a step and 3 lists of tensors, got 4 operands"
    ):
        import_model(_model("Momentum", OPTIMIZERS["Momentum"][1], feeds, 2))
