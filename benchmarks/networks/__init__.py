"""Networks as ONNX models, so that every system gets the same: random weights, dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks import (
    attention,
    classifiers,
    convolutional,
    dense,
    dense_prediction,
    quantized,
    recurrent,
    transformers,
)

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


def _named(**shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    """Random inputs by name."""

    def draw() -> Inputs:
        rng = np.random.default_rng(1)
        return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}

    return draw


QUANTIZED = 0.1
"""The tolerance, of the root of the mean square, where rounding may give the next integer, and layers follow."""


def _sequences(units: int, *shapes: tuple[int, int]) -> Mapping[str, Callable[[], Inputs]]:
    return {f"{t} x {b}": _rows(t, b, units) for t, b in shapes}


_BERT_CASES = {
    f"{b} x {n}": _rows(b, n, transformers.BERT.hidden_size) for b, n in ((1, 16), (1, 128), (4, 37), (1, 384))
}
_IMAGE = (1, 3, 224, 224)
_IMAGES = {f"batch {n}": _images(n) for n in (1, 4)}
_LENGTHS = ((1, 1), (10, 1), (100, 1), (1000, 1), (100, 4), (100, 32))

_FLOATS: Mapping[str, Network] = {
    "mlp": Network(dense.mlp, {f"batch {n}": _rows(n, 1024) for n in (1, 32, 57)}),
    "chain": Network(dense.chain, {"16 elements": _rows(16)}),
    "bert": Network(
        transformers.bert,
        {f"{b} x {n}": _rows(b, n, transformers.BERT.hidden_size) for b, n in ((1, 128), (4, 37), (1, 384))},
    ),
    "llama": Network(transformers.llama, {f"past {n}": lambda n=n: transformers.llama_inputs(n) for n in (63, 512)}),
    "mobilenet": Network(convolutional.mobilenet_v2, _IMAGES),
    "efficientnet": Network(convolutional.efficientnet_b0, _IMAGES),
    "resnet": Network(convolutional.resnet50, _IMAGES),
    "vgg": Network(convolutional.vgg19, _IMAGES),
    "unet": Network(convolutional.unet, _IMAGES),
    "squeezenet": Network(classifiers.squeezenet, _IMAGES),
    "densenet": Network(classifiers.densenet121, _IMAGES),
    "inception": Network(classifiers.inception_v3, {f"batch {n}": _rows(n, 3, 299, 299) for n in (1, 4)}),
    "shufflenet": Network(classifiers.shufflenet_v2, _IMAGES),
    "mobilenet-v3": Network(classifiers.mobilenet_v3, _IMAGES),
    "convnext": Network(classifiers.convnext, _IMAGES),
    "deeplab": Network(dense_prediction.deeplab, {f"batch {n}": _rows(n, 3, 257, 257) for n in (1, 4)}),
    "yolo": Network(dense_prediction.yolo, {f"batch {n}": _rows(n, 3, 320, 320) for n in (1, 4)}),
    "diffusion": Network(
        dense_prediction.diffusion, {f"batch {n}": _named(x=(n, 320, 32, 32), time=(n, 1280)) for n in (1, 4)}
    ),
    "vocoder": Network(dense_prediction.vocoder, {f"{n} frames": _rows(1, 80, n) for n in (50, 200)}),
    "voice-activity": Network(dense_prediction.voice_activity, {f"{n} samples": _rows(1, 1, n) for n in (512, 16000)}),
    "vit": Network(attention.vit, _IMAGES),
    "swin": Network(attention.swin, {f"batch {n}": _rows(n, 3136, 96) for n in (1, 4)}),
    "whisper-encoder": Network(attention.whisper_encoder, {f"{n} frames": _rows(1, 80, n) for n in (300, 3000)}),
    "whisper-decoder": Network(
        attention.whisper_decoder,
        {f"past {n}": _named(x=(1, 1, 512), past=(1, n, 512), y=(1, 1500, 512)) for n in (4, 200)},
    ),
    "experts": Network(attention.experts, {f"{n} tokens": _rows(n, 512) for n in (1, 64)}),
    "lstm": Network(partial(recurrent.layer, "LSTM", 128), _sequences(128, *_LENGTHS)),
    "lstm-512": Network(partial(recurrent.layer, "LSTM", 512), _sequences(512, *_LENGTHS)),
    "gru": Network(partial(recurrent.layer, "GRU", 256), _sequences(256, *_LENGTHS)),
}
_SHAPES = {
    **dict.fromkeys(
        ("mobilenet", "mobilenet-v3", "efficientnet", "resnet", "unet", "squeezenet", "shufflenet", "densenet", "vit"),
        _IMAGE,
    ),
    "inception": (1, 3, 299, 299),
    "deeplab": (1, 3, 257, 257),
    "yolo": (1, 3, 320, 320),
    "whisper-encoder": (1, 80, 300),
}
"""The inputs that the scales of quantised networks are found with."""

NETWORKS: Mapping[str, Network] = {
    **_FLOATS,
    "lstm-bytes": Network(
        partial(quantized.with_dynamic_scales, partial(recurrent.layer, "LSTM", 256), ["LSTM"]),
        _sequences(256, *_LENGTHS),
        QUANTIZED,
    ),
    "bert-bytes": Network(partial(quantized.with_dynamic_scales, transformers.bert), _BERT_CASES, QUANTIZED),
    **{
        f"{name}-bytes": Network(
            partial(quantized.with_known_scales, _FLOATS[name].model, shape),
            _FLOATS[name].cases,
            QUANTIZED,
        )
        for name, shape in _SHAPES.items()
    },
}
