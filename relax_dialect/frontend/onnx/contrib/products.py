"""Products of matrices with what is fused into them."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.activation import activated
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.linear_algebra import gemm_of
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul(node: Node) -> Result:
    """`alpha * a @ b`, with matrices transposed, or batches behind them, if that is asked for."""
    product = op.matmul(_arranged(node, 0, "A"), _arranged(node, 1, "B"))
    alpha = node.number("alpha", 1.0)
    scaled = product if alpha == 1.0 else op.multiply(product, node.like(alpha))
    return activated(node, scaled, node.text("activation"), _parameters(node))


def _arranged(node: Node, index: int, name: str) -> Expr:
    rank = node.rank(index)
    order = list(range(rank))
    if rank > 2 and node.integer(f"transBatch{name}"):
        order = [*order[1:-1], 0, rank - 1]
    if rank > 1 and node.integer(f"trans{name}"):
        order[-2:] = [order[-1], order[-2]]
    return node[index] if order == sorted(order) else op.permute_dims(node[index], order)


@converts("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Node) -> Result:
    """`alpha * a @ b + beta * c`, and an activation."""
    return activated(node, gemm_of(node), node.text("activation"), _parameters(node))


@converts("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: Node) -> Result:
    """The product with a bias, and the approximated unit of it."""
    product = op.matmul(node[0], node[1])
    return op.nn.gelu_tanh(op.add(product, node[2]) if node.has(2) else product)


def _parameters(node: Node) -> list[float]:
    """The parameters of the activation that are given."""
    given = [node.attributes.get(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return [float(each) for each in given if each is not None]
