"""Networks as ONNX models, so that every system gets the same: random weights, dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks import convolutional, dense, transformers

if TYPE_CHECKING:
    from onnx import ModelProto

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A model and the inputs it is run on."""

    model: Callable[[], ModelProto]
    cases: Mapping[str, Callable[[], Inputs]]
    """Inputs by a short name."""


def _images(batch: int) -> Callable[[], Inputs]:
    return lambda: {"x": np.random.default_rng(0).standard_normal((batch, 3, 224, 224), dtype=np.float32)}


def _rows(*shape: int) -> Callable[[], Inputs]:
    return lambda: {"x": np.random.default_rng(0).standard_normal(shape, dtype=np.float32)}


NETWORKS: Mapping[str, Network] = {
    "mlp": Network(dense.mlp, {f"batch {n}": _rows(n, 1024) for n in (1, 32, 57)}),
    "chain": Network(dense.chain, {"16 elements": _rows(16)}),
    "bert": Network(
        transformers.bert,
        {f"{b} x {n}": _rows(b, n, transformers.BERT.hidden_size) for b, n in ((1, 128), (4, 37), (1, 384))},
    ),
    "llama": Network(transformers.llama, {f"past {n}": lambda n=n: transformers.llama_inputs(n) for n in (63, 512)}),
    "mobilenet": Network(convolutional.mobilenet_v2, {f"batch {n}": _images(n) for n in (1, 4)}),
    "resnet": Network(convolutional.resnet50, {f"batch {n}": _images(n) for n in (1, 4)}),
}
