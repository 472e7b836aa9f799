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


def inverted(x: Tensor, a: Tensor, b: Tensor) -> Any:
    spd = x @ x.mT + torch.eye(4)
    lower, (lu, rows) = linalg.cholesky(spd), linalg.lu_factor(a)
    return [
        *(linalg.pinv(b), linalg.pinv(b.mT), linalg.pinv(spd, hermitian=True), linalg.pinv(b, rtol=0.4)),
        *(linalg.pinv(b, atol=0.5), linalg.matrix_rank(b), linalg.cond(a), linalg.matrix_exp(8 * x)),
        *(lu, rows, *linalg.lu(b), *linalg.lu(b.mT), *torch.lu_unpack(*linalg.lu_factor(b))),
        *(linalg.lu_solve(lu, rows, b, adjoint=turned) for turned in (False, True)),
        *(linalg.lu_solve(lu, rows, b.mT, left=False, adjoint=turned) for turned in (False, True)),
        *(torch.cholesky_inverse(lower), torch.cholesky_inverse(lower.mT, upper=True)),
        torch.triangular_solve(b, spd, upper=False, transpose=True)[0],
        torch.triangular_solve(b, spd, unitriangular=True)[0] / 100,
        linalg.householder_product(b, b[..., 0, :2]),
    ]


def reflected(a: Tensor, c: Tensor) -> Any:
    """Matrices of reflections, and what `svd` and `eigh` give."""
    packed, factors = torch.geqrf(a)
    products = [
        torch.ormqr(packed, factors, c, left, transpose) for left in (False, True) for transpose in (False, True)
    ]
    roots = [linalg.matrix_sqrth(c @ c.mT), linalg.pinv(a[..., :0]), linalg.pinv(a[:, :0])]
    return [packed, factors, *products, *linalg.polar(a), *roots]


def eigenvalues(x: Tensor) -> Any:
    """Vectors are unique up to a factor, and the order of values is free."""
    values, vectors = linalg.eig(x)
    difference = vectors * values[..., None, :] - x.to(vectors.dtype) @ vectors
    lengths = (vectors * vectors.conj()).sum(-2)
    return torch.view_as_real(difference), torch.view_as_real(lengths), linalg.eigvals(x).abs().sort(-1)[0]


def test_values():
    torch.manual_seed(0)
    sizes = [(torch.randn(n, 4, 4), torch.randn(n, 4, 3)) for n in (3, 1, 0)]
    assert_same(solved, sizes[0], ({0: Dim.AUTO}, {0: Dim.AUTO}), *sizes[1:])
    assert_same(factored, sizes[0])  # PyTorch fixes the sizes
    three = [(x, torch.randn(len(x), 4, 4), b) for x, b in sizes[:2]]
    assert_same(inverted, three[0], ({0: Dim.AUTO},) * 3, three[1])
    assert_same(reflected, (torch.randn(2, 4, 3), torch.randn(2, 4, 4)))
    assert_same(eigenvalues, sizes[0][:1], ({0: Dim.AUTO},), sizes[1][:1])


def test_singular_matrices_are_errors():
    for function, kind in ((linalg.inv, "inv"), (linalg.lu_factor, "lu_factor")):
        main = VirtualMachine(build(from_exported_program(export(function, (torch.eye(3),)))))["main"]
        with pytest.raises(ValueError, match=f"{kind}: Singular matrix"):
            main(torch.zeros(3, 3))
