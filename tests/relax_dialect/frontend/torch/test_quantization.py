"""Quantised numbers against PyTorch: integers exactly."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.export import Dim

from tests.relax_dialect.frontend.torch.programs import assert_same

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch.ao.quantization.fx._decomposed  # the operators

Tensor = torch.Tensor
OPS = torch.ops.quantized_decomposed


def function(x: Tensor, scales: Tensor, zeros: Tensor) -> Any:
    i8, u8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
    scale, zero = OPS.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
    level, middle = OPS.choose_qparams_symmetric.tensor(x, -127, 127, 1e-6, torch.int8)
    one = OPS.quantize_per_tensor.default(x, 0.05, 3, *i8)
    two = OPS.quantize_per_tensor.tensor(x, scale, zero, *u8)
    three = OPS.quantize_per_channel.default(x, scales, zeros, 1, *i8)
    rows = scales[0] + torch.zeros(x.shape[0], 1), torch.zeros(x.shape[0], 1)
    four = OPS.quantize_per_token.default(x, *rows, *i8)
    return [
        *(one, two, three, four, scale, zero, level, middle),
        OPS.dequantize_per_tensor.default(one, 0.05, 3, *i8),
        OPS.dequantize_per_tensor.tensor(two, scale, zero, *u8),
        OPS.dequantize_per_channel.default(three, scales, zeros, 1, *i8),
        OPS.dequantize_per_channel.default(three, scales, None, 1, *i8),
        OPS.dequantize_per_token.default(four, *rows, *i8, torch.float32),
    ]


def test_values():
    torch.manual_seed(0)
    scales, zeros = torch.rand(4) / 9 + 0.01, torch.tensor([0, 1, -2, 3])
    sizes = [(torch.randn(n, 4) * 3, scales, zeros) for n in (7, 2, 1)]
    assert_same(function, sizes[0], ({0: Dim.AUTO}, {}, {}), *sizes[1:])
