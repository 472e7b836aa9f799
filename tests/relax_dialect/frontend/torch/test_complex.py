"""Complex tensors as pairs of reals, and Fourier transforms, against PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim

from tests.relax_dialect.frontend.torch.programs import assert_same

Tensor = torch.Tensor
AUTO = Dim.AUTO


class Arithmetic(torch.nn.Module):
    """Complex inputs, buffers and outputs are given and taken as `view_as_real`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4.0)))

    def forward(self, pairs: Tensor, x: Tensor) -> Any:
        z = torch.view_as_complex(pairs)
        w = torch.complex(x, x.cos())
        wide = torch.complex(x[:, :1], x.cos())
        results = [
            *(
                z * self.turns,
                z + x,
                x - z,
                z * 2,
                z / w,
                1j * z,
                z.reciprocal(),
                -z,
                z**3,
                z.exp(),
                z.conj() @ w.mT,
                wide,
            ),
            *(
                torch.where(x > 0, z, w),
                torch.cat([z, w], 1),
                z[:, 1:].flip(1),
                z.sum(0),
                z.mean(1),
                z.to(torch.complex128),
            ),
            *(torch.stack([z, w]).transpose(0, 1).reshape(-1, 8), torch.einsum("bi,i->bi", z, self.turns), z.square()),
            *(
                torch.zeros_like(z) + 1,
                torch.full((2,), 1 + 2j),
                x.to(torch.complex64),
                z.expand(2, -1, -1),
                z.T.conj(),
            ),
        ]
        real = [z.abs(), z.angle(), z.real, w.imag, (z * w.conj()).real, (z * 1e25).abs(), (z * 0).abs()]
        return [*(torch.view_as_real(each.resolve_conj()) for each in results), *real]


def test_arithmetic():
    sizes = [(torch.randn(n, 4, 2), torch.randn(n, 4)) for n in (5, 1, 0)]
    assert_same(Arithmetic(), sizes[0], ({0: AUTO}, {0: AUTO}), *sizes[1:])


def test_complex_parameters_and_results_are_pairs():
    class Turn(torch.nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return torch.view_as_real(torch.view_as_complex(z) * 1j)

    class Complex(torch.nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z * 1j

    from relax_dialect.frontend.torch import from_exported_program
    from tests.relax_dialect.frontend.torch.programs import export

    z = torch.randn(3, dtype=torch.complex64)
    module = assert_same(Turn(), (torch.view_as_real(z),))
    header = str(module).splitlines()[1]
    assert header == str(from_exported_program(export(Complex(), (z,)))).splitlines()[1]


def transforms(x: Tensor) -> Any:
    n, fft = x.shape[-1], torch.fft
    z = fft.fft(x)
    spectra = [
        *(
            z,
            fft.rfft(x),
            fft.rfft2(x, norm="ortho"),
            fft.fftn(x, dim=(0, 1), norm="forward"),
            fft.ifft(z, norm="ortho"),
        ),
        *(fft.rfft(x, dim=0), fft.ifft2(z), fft.rfft(x, n=8), fft.fftshift(z), fft.ihfft(x)),
        *(fft.ihfft2(x), fft.ihfftn(x), z.conj_physical()),
    ]
    return [
        *(torch.view_as_real(each.resolve_conj()) for each in spectra),
        *(fft.irfft(fft.rfft(x), n), fft.irfft2(fft.rfft2(x, norm="ortho"), x.shape[-2:], norm="ortho"), fft.hfft(z)),
        *(fft.irfft(z), fft.rfft(x).abs(), fft.rfftfreq(6), fft.rfft(x.double(), norm="forward").real),
    ]


def test_transforms():
    assert_same(transforms, (torch.randn(2, 5, 6),), ({0: AUTO},), (torch.randn(1, 5, 6),))
    spectrum = lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, x.shape[1])  # noqa: E731
    assert_same(spectrum, (torch.randn(2, 9),), ({0: AUTO, 1: AUTO},), (torch.randn(1, 8),), (torch.randn(3, 2),))


def test_spectrograms():
    window = torch.hann_window(16)

    def function(x: Tensor) -> Any:
        there = torch.stft(x, 16, 4, window=window, return_complex=True)
        back = torch.istft(there, 16, 4, window=window, length=64)
        return there.abs(), back

    assert_same(function, (torch.randn(2, 64),), ({0: AUTO},), (torch.randn(1, 64),))
