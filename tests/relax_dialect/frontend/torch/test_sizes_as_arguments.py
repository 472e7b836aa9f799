"""Operators whose repeats, widths and counts depend on sizes or data, against PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim
from torch.nn import functional as F

from tests.relax_dialect.frontend.torch.programs import assert_same

Tensor = torch.Tensor


def test_repeats():
    def function(x: Tensor, q: Tensor) -> Any:
        n = x.shape[0]
        return [
            *(q.repeat(n, 1, 1), q.repeat(1, n), torch.tile(q, (n, 1, 2)), torch.tile(q, (n,)), x.repeat(2, n, 3)),
            *(q.repeat_interleave(n, 0), q.repeat_interleave(2, 1), q.repeat_interleave(n), x.repeat_interleave(n, -1)),
        ]

    q = torch.randn(2, 3)
    sizes = [(torch.randn(n, 2), q) for n in (5, 2, 1, 0)]
    assert_same(function, sizes[0], ({0: Dim.AUTO}, {}), *sizes[1:])


def test_repeats_that_are_data():
    def function(x: Tensor, times: Tensor) -> Any:
        return x.repeat_interleave(times, 1), torch.repeat_interleave(times)

    data = [(torch.randn(2, n), torch.arange(n) % 3) for n in (5, 2, 1, 0)]
    assert_same(function, data[0], ({1: Dim.AUTO}, {0: Dim.AUTO}), *data[1:])


def test_widths():
    def function(x: Tensor) -> Any:
        n = x.shape[0]
        some = (4 - n % 4) % 4
        return [
            *(F.pad(x, (0, 0, 0, some)), F.pad(x, (n, 1, 0, some), value=2.5), F.pad(x, (0, 0, -n // 2, n))),
            *(F.pad(x[None], (n % 3, n % 3), mode=mode) for mode in ("reflect", "replicate", "circular")),
            F.pad(x.long(), (n % 3, 0), value=7),
        ]

    assert_same(function, (torch.randn(5, 3),), ({0: Dim.AUTO},), *((torch.randn(n, 3),) for n in (2, 8, 11)))


def test_histograms():
    def function(x: Tensor, i: Tensor) -> Any:
        return [
            *(torch.histc(x, 4, 0, 3), torch.histc(x, 3), torch.histc(i.float(), 5, 0, 4)),
            *(torch.bincount(i, minlength=4), torch.bincount(i), torch.bincount(i, x, minlength=2)),
        ]

    data = [(torch.randn(n) * 2, torch.arange(n) * 3 % 7) for n in (9, 2, 1)]
    assert_same(function, data[0], ({0: Dim.AUTO}, {0: Dim.AUTO}), *data[1:])
