"""Networks as ONNX models, so that every system gets the same: random weights, dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks import convolutional, dense, quantized, recurrent, transformers

if TYPE_CHECKING:
    from onnx import ModelProto

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A model and the inputs it is run on."""

    model: Callable[[], ModelProto]
    cases: Mapping[str, Callable[[], Inputs]]
    """Inputs by a short name."""
    tolerance: float = 1e-3
    """The largest difference from the reference that is rounding, relative to the largest value."""


def _images(batch: int) -> Callable[[], Inputs]:
    return lambda: {"x": np.random.default_rng(0).standard_normal((batch, 3, 224, 224), dtype=np.float32)}


def _rows(*shape: int) -> Callable[[], Inputs]:
    return lambda: {"x": np.random.default_rng(0).standard_normal(shape, dtype=np.float32)}


QUANTIZED = 0.1
"""The tolerance where rounding may give the next integer, and layers follow."""


def _sequences(units: int, *shapes: tuple[int, int]) -> Mapping[str, Callable[[], Inputs]]:
    return {f"{t} x {b}": _rows(t, b, units) for t, b in shapes}


_BERT_CASES = {
    f"{b} x {n}": _rows(b, n, transformers.BERT.hidden_size) for b, n in ((1, 16), (1, 128), (4, 37), (1, 384))
}
_IMAGE = (1, 3, 224, 224)
_LENGTHS = ((1, 1), (10, 1), (100, 1), (1000, 1), (100, 4), (100, 32))

NETWORKS: Mapping[str, Network] = {
    "mlp": Network(dense.mlp, {f"batch {n}": _rows(n, 1024) for n in (1, 32, 57)}),
    "chain": Network(dense.chain, {"16 elements": _rows(16)}),
    "bert": Network(
        transformers.bert,
        {f"{b} x {n}": _rows(b, n, transformers.BERT.hidden_size) for b, n in ((1, 128), (4, 37), (1, 384))},
    ),
    "llama": Network(transformers.llama, {f"past {n}": lambda n=n: transformers.llama_inputs(n) for n in (63, 512)}),
    "mobilenet": Network(convolutional.mobilenet_v2, {f"batch {n}": _images(n) for n in (1, 4)}),
    "efficientnet": Network(convolutional.efficientnet_b0, {f"batch {n}": _images(n) for n in (1, 4)}),
    "resnet": Network(convolutional.resnet50, {f"batch {n}": _images(n) for n in (1, 4)}),
    "vgg": Network(convolutional.vgg19, {f"batch {n}": _images(n) for n in (1, 4)}),
    "unet": Network(convolutional.unet, {f"batch {n}": _images(n) for n in (1, 4)}),
    "lstm": Network(partial(recurrent.layer, "LSTM", 128), _sequences(128, *_LENGTHS)),
    "lstm-512": Network(partial(recurrent.layer, "LSTM", 512), _sequences(512, *_LENGTHS)),
    "gru": Network(partial(recurrent.layer, "GRU", 256), _sequences(256, *_LENGTHS)),
    "lstm-bytes": Network(
        partial(quantized.with_dynamic_scales, partial(recurrent.layer, "LSTM", 256), ["LSTM"]),
        _sequences(256, *_LENGTHS),
        QUANTIZED,
    ),
    "bert-bytes": Network(partial(quantized.with_dynamic_scales, transformers.bert), _BERT_CASES, QUANTIZED),
    "mobilenet-bytes": Network(
        partial(quantized.with_known_scales, convolutional.mobilenet_v2, _IMAGE),
        {f"batch {n}": _images(n) for n in (1, 4)},
        QUANTIZED,
    ),
    "efficientnet-bytes": Network(
        partial(quantized.with_known_scales, convolutional.efficientnet_b0, _IMAGE),
        {f"batch {n}": _images(n) for n in (1, 4)},
        QUANTIZED,
    ),
    "resnet-bytes": Network(
        partial(quantized.with_known_scales, convolutional.resnet50, _IMAGE),
        {f"batch {n}": _images(n) for n in (1, 4)},
        QUANTIZED,
    ),
}
