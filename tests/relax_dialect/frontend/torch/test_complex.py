"""Complex tensors as pairs of reals, and Fourier transforms, against PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim
from torch.nn import functional as F

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


def functions(pairs: Tensor, x: Tensor, mask: Tensor, weights: Tensor) -> Any:
    """Elementary functions, what is linear, and what takes complex and real operands together."""
    z, y, k = torch.view_as_complex(pairs), torch.complex(x, x.sin()), torch.view_as_complex(weights)
    made = [
        *(z**0.5, z**y, z**-2, (z * 0) ** 0, z.log(), z.log2(), z.log10(), torch.log1p(z), z.sgn(), (z * 0).sgn()),
        *(z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh(), z.sqrt(), (0j - z.real).sqrt(), z.rsqrt()),
        *(
            z.exp2(),
            torch.lerp(z, y, 0.25),
            torch.lerp(z, y, z),
            z.sigmoid(),
            F.silu(z),
            torch.addcmul(z, y, z, value=2j),
            torch.addcdiv(z, y, y + 3),
        ),
        torch.addmm(z[:, :1] / 0, z, y.mT, beta=0),
        *(torch.addmm(z[:, :1], z, y.mT, beta=2, alpha=1 - 2j), torch.addr(z[:, :3], z[:, 0], y[:, 1])),
        *(torch.baddbmm(z[None], z[None], y.mT[None] @ y[None]), torch.outer(z[0], y[1]), torch.vdot(z[0], y[0])),
        *(
            F.linear(z, y, z[:, 0]),
            F.conv1d(z[None], k),
            F.conv1d(z[None], k, z[0, :3]),
            F.conv2d(z[None], k[:, :1, None], z[0, :3]),
        ),
        F.conv_transpose1d(z[None], k.transpose(0, 1), z[0, :3]),
        *(F.pad(z, (1, 1), value=2.0), torch.cat([z, x]), z.masked_fill(mask, 3.0), z.masked_fill(mask, 3j)),
        *(torch.slice_scatter(z, y[:, :1], 1, 0, 1), z.index_put((torch.tensor([0]),), y[:1]), torch.diff(z)),
        *(z.index_add(0, torch.tensor([1]), y[:1]), torch.linspace(0, 1 + 2j, 5), z.fliplr()),
        *(torch.gather(z, 0, mask.long()), z.masked_select(mask), torch.var_mean(z, 1)[1], torch.std_mean(z, 0)[1]),
    ]
    real = [
        *(z == y, z != z, z.real == z, torch.logical_not(z * 0), torch.logical_and(z, mask), z.isnan(), z.isfinite()),
        *(
            torch.linalg.vector_norm(z),
            torch.linalg.vector_norm(z, 1, 1),
            torch.dist(z, y),
            z.norm(dim=1),
            torch.var(z, 1),
            z.std(),
        ),
        *(torch.var_mean(z, 1)[0], torch.std_mean(z, 0)[0], F.normalize(z).abs()),
    ]
    return [*(torch.view_as_real(each.resolve_conj()) for each in made), *real]


def test_functions():
    torch.manual_seed(0)
    assert_same(functions, (torch.randn(3, 4, 2), torch.randn(3, 4), torch.rand(3, 4) > 0.5, torch.randn(3, 3, 2, 2)))


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
