"""The operators of torchvision, which is needed to make the programs only."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim
from torchvision import ops

from tests.relax_dialect.frontend.torch.programs import assert_same

AUTO = Dim.AUTO
Tensor = torch.Tensor


def _boxes(count: int) -> Tensor:
    corners = torch.rand(count, 2) * 6
    return torch.cat([corners, corners + 0.5 + torch.rand(count, 2) * 3], 1)


def test_boxes():
    def function(boxes: Tensor, scores: Tensor) -> Any:
        return ops.nms(boxes, scores, 0.3), ops.batched_nms(boxes, scores, (scores > 0.5).long(), 0.2)

    data = [(_boxes(n), torch.rand(n)) for n in (9, 2, 1)]
    assert_same(function, data[0], ({0: AUTO}, {0: AUTO}), *data[1:])
    none = torch.zeros(0, 4), torch.zeros(0)
    assert_same(lambda boxes, scores: ops.nms(boxes, scores, 0.5), data[0], ({0: AUTO}, {0: AUTO}), none)


def test_regions():
    def function(x: Tensor, rois: Tensor) -> Any:
        return [
            *(ops.roi_align(x, rois, 2), ops.roi_align(x, rois, (3, 2), 0.5, 2, aligned=True)),
            ops.roi_pool(x, rois, 2, 0.75),
        ]

    data = [(torch.randn(2, 3, 9, 8), torch.cat([torch.arange(n)[:, None] % 2, _boxes(n)], 1)) for n in (5, 1)]
    assert_same(function, data[0], ({}, {0: AUTO}), *data[1:])


def test_deformed_convolution():
    def function(x: Tensor, w: Tensor, b: Tensor, offset: Tensor, mask: Tensor) -> Any:
        return [
            ops.deform_conv2d(x, offset, w, b, padding=1, mask=mask),
            ops.deform_conv2d(x, offset[:, :, ::2, ::2], w, None, 2, 1),
        ]

    def data(n: int) -> Any:
        moved = torch.randn(n, 36, 6, 7)
        return torch.randn(n, 4, 6, 7), torch.randn(3, 4, 3, 3), torch.randn(3), moved, torch.rand(n, 18, 6, 7)

    assert_same(function, data(3), ({0: AUTO}, {}, {}, {0: AUTO}, {0: AUTO}), data(1))
