"""Decompositions of matrices against PyTorch: what is unique, and products where signs are free."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

from lowering import build
from relax_dialect.frontend.torch import from_exported_program
from tests.relax_dialect.frontend.torch.programs import assert_same, export
from vm_dialect import VirtualMachine

Tensor = torch.Tensor
linalg = torch.linalg


def solved(x: Tensor, b: Tensor) -> Any:
    spd = x @ x.mT + torch.eye(4)
    lower = linalg.cholesky(spd)
    return [
        *(linalg.inv(spd), lower, linalg.cholesky(spd, upper=True), linalg.solve(spd, b), linalg.solve(spd, b[..., 0])),
        *(linalg.solve(spd, b.mT, left=False), torch.cholesky_solve(b, lower), linalg.det(x), *linalg.slogdet(x)),
        *(linalg.solve_triangular(lower, b, upper=False), linalg.solve_triangular(lower.mT, b, upper=True)),
        linalg.solve_triangular(lower, b.mT, upper=False, left=False),
        linalg.solve_triangular(x, b, upper=True, unitriangular=True) / 100,
    ]


def factored(x: Tensor, b: Tensor) -> Any:
    symmetric = x + x.mT
    u, s, vh = linalg.svd(b, full_matrices=False)
    full = linalg.svd(b)
    q, r = linalg.qr(b)
    whole = linalg.qr(b, "complete")
    values, vectors = linalg.eigh(symmetric)
    return [
        *(u * s[..., None, :] @ vh, s, full[1], full[0] @ full[0].mT, linalg.svdvals(b), q @ r, whole[0] @ whole[1]),
        *(values, vectors * values[..., None, :] @ vectors.mT, linalg.eigvalsh(symmetric, "U")),
        linalg.matrix_norm(b, 2),
    ]


def test_values():
    torch.manual_seed(0)
    sizes = [(torch.randn(n, 4, 4), torch.randn(n, 4, 3)) for n in (3, 1, 0)]
    assert_same(solved, sizes[0], ({0: Dim.AUTO}, {0: Dim.AUTO}), *sizes[1:])
    assert_same(factored, sizes[0])  # PyTorch fixes the sizes


def test_singular_matrices_are_errors():
    main = VirtualMachine(build(from_exported_program(export(linalg.inv, (torch.eye(3),)))))["main"]
    with pytest.raises(ValueError, match="inv: Singular matrix"):
        main(torch.zeros(3, 3))
