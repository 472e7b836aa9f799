"""Decompositions of matrices, and what they solve: by functions of the run-time library, which calls LAPACK.

A matrix that has no decomposition, such as a singular one, is an error there, also where PyTorch says so in `info`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32

from relax_dialect.builder import op, tensor
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dims import Dim, to_dim


def _made(node: Node, what: str, operands: Sequence[Expr], *results: Sequence[Dim]) -> list[Expr]:
    """Results of shapes, in the dtype of the node's first one."""
    out = [tensor(list(dims), node.out_dtype()) for dims in results]
    return list(node.bb.call_dps_packed("relax.linalg", [op.string(what), *operands], [*out]))


def _adjoint(x: Expr) -> Expr:
    assert x.ndim is not None
    return op.permute_dims(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _no_info(node: Node, index: int) -> Expr:
    """That all went well: else the function raises an error."""
    return op.full(node.out_dims(index), node.const(0, i32))


@converts("aten.linalg_inv_ex.default")
def inverse(node: Node) -> Result:
    """The inverse of each matrix."""
    return [*_made(node, "inv", [node.tensor("A")], node.out_dims()), _no_info(node, 1)]


@converts("aten.linalg_cholesky_ex.default", "aten.cholesky.default")
def cholesky(node: Node) -> Result:
    """The triangle whose product with its transpose each matrix is."""
    x = node.tensor("self")
    (lower,) = _made(node, "cholesky", [_adjoint(x) if node.flag("upper") else x], node.out_dims())
    made = _adjoint(lower) if node.flag("upper") else lower
    return made if node.name == "cholesky" else [made, _no_info(node, 1)]


@converts("aten._linalg_solve_ex.default")
def solve(node: Node) -> Result:
    """`x` of `A @ x = B`, or of `x @ A = B`."""
    if any(node.wants(index) for index in (1, 2)):
        raise Refusal("the factors of the matrix are not supported")
    made = _solved(node, "solve", node.tensor("A"), node.tensor("B"), left=node.flag("left"))
    return [made, None, None, _no_info(node, 3)]


@converts("aten.linalg_solve_triangular.default")
def solve_triangular(node: Node) -> Result:
    """`x` of `A @ x = B`, or of `x @ A = B`, where `A` is a triangle."""
    upper, left = node.flag("upper"), node.flag("left")
    kind = f"solve {'upper' if upper == left else 'lower'}{' unit' if node.flag('unitriangular') else ''}"
    return _solved(node, kind, node.tensor("self"), node.tensor("B"), left=left)


@converts("aten.cholesky_solve.default")
def cholesky_solve(node: Node) -> Result:
    """`x` of `L @ transpose(L) @ x = B`."""
    factor = node.tensor("input2")
    lower = _adjoint(factor) if node.flag("upper") else factor
    half = _solved(node, "solve lower", lower, node.tensor("self"), left=True)
    return _solved(node, "solve upper", _adjoint(lower), half, left=True)


def _solved(node: Node, kind: str, a: Expr, b: Expr, *, left: bool) -> Expr:
    """With a right-hand side that is a vector, or a matrix; leading dimensions broadcast."""
    dims, is_vector = node.out_dims(), a.ndim != b.ndim
    rows = [*dims, to_dim(1)] if is_vector else dims
    b = op.expand_dims(b, [-1]) if is_vector else b
    if left:
        (found,) = _made(node, kind, [a, b], rows)
    else:
        turned = [*rows[:-2], rows[-1], rows[-2]]
        (found,) = _made(node, kind, [_adjoint(a), _adjoint(b)], turned)
        found = _adjoint(found)
    return op.squeeze(found, [-1]) if is_vector else found


@converts("aten._linalg_det.default")
def determinant(node: Node) -> Result:
    """The determinant of each matrix."""
    return [*_made(node, "det", [node.tensor("A")], node.out_dims()), None, None]


@converts("aten._linalg_slogdet.default")
def log_determinant(node: Node) -> Result:
    """The sign, and the logarithm of the absolute value, of the determinant of each matrix."""
    return [*_made(node, "slogdet", [node.tensor("A")], node.out_dims(), node.out_dims(1)), None, None]


@converts("aten._linalg_svd.default")
def singular_values(node: Node) -> Result:
    """Orthogonal matrices and singular values, in descending order, whose product each matrix is."""
    if not node.flag("compute_uv"):
        return [None, *_made(node, "svdvals", [node.tensor("A")], node.out_dims(1)), None]
    kind = "svd full" if node.flag("full_matrices") else "svd"
    return _made(node, kind, [node.tensor("A")], *(node.out_dims(index) for index in range(3)))


@converts("aten.linalg_qr.default")
def qr(node: Node) -> Result:
    """An orthogonal matrix and a triangle whose product each matrix is."""
    mode = node.text("mode", "reduced")
    if mode not in ("reduced", "complete"):
        raise Refusal(f"the mode {mode} is not supported")
    kind = "qr" if mode == "reduced" else "qr complete"
    return _made(node, kind, [node.tensor("A")], node.out_dims(), node.out_dims(1))


@converts("aten._linalg_eigh.default")
def symmetric_eigenvalues(node: Node) -> Result:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, of which one triangle is read."""
    which = "lower" if node.text("UPLO", "L") == "L" else "upper"
    if not node.flag("compute_v"):
        return [*_made(node, f"eigvalsh {which}", [node.tensor("A")], node.out_dims()), None]
    return _made(node, f"eigh {which}", [node.tensor("A")], node.out_dims(), node.out_dims(1))
