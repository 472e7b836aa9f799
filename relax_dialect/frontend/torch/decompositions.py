"""Decompositions of matrices, and what they solve: by functions of the run-time library, which calls LAPACK.

A matrix that has no decomposition, such as a singular one, is an error there, also where PyTorch says so in `info`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32

from relax_dialect.builder import op, tensor
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, maximum, minimum, to_dim
from tir_dialect.dtypes import epsilon


def _made(node: Node, what: str, operands: Sequence[Expr], *results: Sequence[Dim]) -> list[Expr]:
    """Results of shapes, in the dtype of the node's first one."""
    return called(node, what, operands, [tensor(list(dims), node.out_dtype()) for dims in results])


def called(node: Node, what: str, operands: Sequence[Expr], out: Sequence[TensorType]) -> list[Expr]:
    """Results of types, of the function of the run-time library."""
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


def _solved(node: Node, kind: str, a: Expr, b: Expr, *, left: bool, like: Expr | None = None) -> Expr:
    """With a right-hand side that is a vector, or a matrix; leading dimensions broadcast.

    The shape is that of `like`, or of the node's result.
    """
    dims = node.out_dims() if like is None or like.shape is None else [to_dim(each) for each in like.shape if each]
    is_vector = a.ndim != b.ndim
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


@converts("aten.geqrf.default")
def packed_reflections(node: Node) -> Result:
    """The triangle of `qr`, below which are the vectors of reflections, and the factors of these."""
    return _made(node, "geqrf", [node.tensor("self")], node.out_dims(), node.out_dims(1))


@converts("aten.linalg_polar.default")
def polar(node: Node) -> Result:
    """A matrix with orthonormal columns and a symmetric one whose product each matrix is."""
    *lead, rows, columns = node.shape("A")
    least = minimum(rows, columns)
    shapes = [[*lead, rows, least], [*lead, least], [*lead, least, columns]]
    u, values, vh = _made(node, "svd", [node.tensor("A")], *shapes)
    scaled = op.multiply(_adjoint(vh), op.expand_dims(values, [-2]))
    return [op.matmul(u, vh), op.matmul(scaled, vh)]


@converts("aten.linalg_matrix_sqrth.default")
def symmetric_square_root(node: Node) -> Result:
    """The symmetric matrix whose square each symmetric matrix is, of which the lower triangle is read."""
    dims = node.out_dims()
    values, vectors = _made(node, "eigh lower", [node.tensor("self")], dims[:-1], dims)
    scaled = op.multiply(vectors, op.expand_dims(op.sqrt(values), [-2]))
    return op.matmul(scaled, _adjoint(vectors))


@converts("aten._linalg_eigh.default")
def symmetric_eigenvalues(node: Node) -> Result:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, of which one triangle is read."""
    which = "lower" if node.text("UPLO", "L") == "L" else "upper"
    if not node.flag("compute_v"):
        return [*_made(node, f"eigvalsh {which}", [node.tensor("A")], node.out_dims()), None]
    return _made(node, f"eigh {which}", [node.tensor("A")], node.out_dims(), node.out_dims(1))


@converts("aten.linalg_pinv.atol_rtol_tensor")
def pseudo_inverse(node: Node) -> Result:
    """The inverse on what is not mapped to 0: singular values up to a bound count as 0."""
    x = node.tensor("self")
    if node.flag("hermitian"):
        x = op.add(op.tril(x), _adjoint(op.tril(x, -1)))
    *lead, rows, columns = node.shape()
    least = minimum(rows, columns)
    if least.constant_value == 0:
        return op.zeros(node.out_dims(), node.out_dtype())
    u, values, vh = _made(node, "svd", [x], [*lead, rows, least], [*lead, least], [*lead, least, columns])
    largest = op.max(values, [-1], keepdims=True)
    least_kept = op.multiply(_relative_bound(node), largest)
    if node.has("atol"):
        least_kept = op.maximum(op.expand_dims(node.tensor("atol", node.dtype()), [-1]), least_kept)
    inverses = op.where(op.greater(values, least_kept), op.reciprocal(values), node.like(0, values))
    return op.matmul(op.multiply(_adjoint(vh), op.expand_dims(inverses, [-2])), _adjoint(u))


def _relative_bound(node: Node) -> Expr:
    """The argument `rtol`; else rounding errors of the matrix, or 0 where there is an absolute bound."""
    dtype, zero = node.dtype(), node.const(0, node.dtype())
    if node.has("rtol"):
        return op.expand_dims(node.tensor("rtol", dtype), [-1])
    found = op.multiply(node.graph.dimension(maximum(*node.shape()[-2:]), dtype), node.const(epsilon(dtype), dtype))
    if not node.has("atol"):
        return found
    absolute = op.expand_dims(node.tensor("atol", dtype), [-1])
    return op.where(op.greater(absolute, zero), zero, found)


# Triangles


@converts("aten.linalg_lu.default")
def triangles(node: Node) -> Result:
    """A permutation and two triangles, whose product each matrix is."""
    _need_pivots(node)
    return _made(node, "lu", [node.tensor("A")], *(node.out_dims(at) for at in range(3)))


@converts("aten.linalg_lu_factor_ex.default")
def packed_triangles(node: Node) -> Result:
    """Both triangles in one matrix, and the rows that were swapped in turn."""
    _need_pivots(node)
    out = [tensor(node.out_dims(at), node.out_dtype(at)) for at in range(2)]
    return [*called(node, "lu_factor", [node.tensor("A")], out), _no_info(node, 2)]


@converts("aten.lu_unpack.default")
def unpacked_triangles(node: Node) -> Result:
    """The permutation and the triangles of a matrix that has both."""
    operands = [node.tensor("LU_data"), node.tensor("LU_pivots")]
    return _unpacked(node, operands, [node.out_dims(at) for at in range(3)])


def _unpacked(node: Node, operands: Sequence[Expr], dims: Sequence[Sequence[Dim]]) -> list[Expr]:
    return _made(node, "lu_unpack", operands, *dims)


@converts("aten.linalg_lu_solve.default")
def solve_by_triangles(node: Node) -> Result:
    """`x` of `A @ x = B`, or of `x @ A = B`, of the triangles and row swaps of `A`; `A` may be transposed."""
    square = node.shape("LU")
    permutation, lower, upper = _unpacked(node, [node.tensor("LU"), node.tensor("pivots")], [square] * 3)
    left, turned = node.flag("left"), node.flag("adjoint")
    b = node.tensor("B") if left else _adjoint(node.tensor("B"))
    if left != turned:
        half = _solved(node, "solve lower unit", lower, op.matmul(_adjoint(permutation), b), left=True, like=b)
        found = _solved(node, "solve upper", upper, half, left=True, like=b)
    else:
        half = _solved(node, "solve lower", _adjoint(upper), b, left=True, like=b)
        found = op.matmul(permutation, _solved(node, "solve upper unit", _adjoint(lower), half, left=True, like=b))
    return found if left else _adjoint(found)


def _need_pivots(node: Node) -> None:
    if not node.flag("pivot"):
        raise Refusal("factors without row swaps are not supported: nor are they by PyTorch on CPUs")


@converts("aten.triangular_solve.default")
def old_solve_triangular(node: Node) -> Result:
    """`x` of `A @ x = b`, where `A` is a triangle, which may be transposed; and `A`."""
    a, upper = node.tensor("A"), node.flag("upper")
    if node.flag("transpose"):
        a, upper = _adjoint(a), not upper
    kind = f"solve {'upper' if upper else 'lower'}{' unit' if node.flag('unitriangular') else ''}"
    return [_solved(node, kind, a, node.tensor("self"), left=True), node.tensor("A")]


@converts("aten.cholesky_inverse.default")
def inverse_by_cholesky(node: Node) -> Result:
    """The inverse of the matrix whose triangle is given."""
    lower = _adjoint(node.tensor("self")) if node.flag("upper") else node.tensor("self")
    dims = node.out_dims()
    ones = op.broadcast_to(op.eye(dims[-1], dims[-1], dtype=node.out_dtype()), dims)
    half = _solved(node, "solve lower", lower, ones, left=True)
    return _solved(node, "solve upper", _adjoint(lower), half, left=True)


@converts("aten.linalg_matrix_exp.default")
def exponential(node: Node) -> Result:
    """The exponential function of each matrix."""
    return _made(node, "expm", [node.tensor("self")], node.out_dims())[0]


@converts("aten.linalg_householder_product.default")
def reflections(node: Node) -> Result:
    """The first columns of the matrix of reflections, whose vectors are below the diagonal."""
    *_, rows, columns = node.shape("input")
    ones = op.broadcast_to(op.eye(rows, columns, dtype=node.out_dtype()), node.out_dims())
    return _reflected(node, "input", "tau", ones, turned=False)


@converts("aten.ormqr.default")
def multiplied_by_reflections(node: Node) -> Result:
    """A matrix multiplied by that of reflections, from the left or the right; that may be transposed."""
    left, turned, x = node.flag("left"), node.flag("transpose"), node.tensor("input3")
    if left:
        return _reflected(node, "self", "input2", x, turned=turned)
    return _adjoint(_reflected(node, "self", "input2", _adjoint(x), turned=not turned))


def _reflected(node: Node, vectors: str, factors: str, x: Expr, *, turned: bool) -> Expr:
    """A matrix multiplied from the left by that of reflections, whose vectors are below the diagonal of a matrix."""
    below, tau = op.tril(node.tensor(vectors), -1), node.tensor(factors)
    shape = list(node.shape(vectors))
    count = node.shape(factors)[-1].constant_value
    if count is None:
        raise Refusal("a number of reflections that depends on sizes is not supported")
    whole = op.add(below, op.broadcast_to(op.eye(shape[-2], shape[-1], dtype=node.out_dtype()), shape))
    for at in range(count) if turned else reversed(range(count)):
        v = op.strided_slice(whole, [-1], [at], [at + 1])
        factor = op.expand_dims(op.strided_slice(tau, [-1], [at], [at + 1]), [-1])
        x = op.subtract(x, op.multiply(factor, op.matmul(v, op.matmul(_adjoint(v), x))))
    return x
