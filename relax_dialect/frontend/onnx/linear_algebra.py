"""Products of matrices, and what belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dequantized import dequantized_product
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("MatMul")
def matmul(node: Node) -> Result:
    """The product, batched as NumPy does."""
    made = dequantized_product(node)
    return op.matmul(node[0], node[1]) if made is None else made


@converts("Gemm")
def gemm(node: Node) -> Result:
    """`alpha * a @ b + beta * c`, with matrices transposed if that is asked for."""
    return gemm_of(node)


def gemm_of(node: Node) -> Expr:
    """What a node says as a `Gemm`."""
    made = None if node.integer("transA") else dequantized_product(node, bool(node.integer("transB")))
    product = _scaled(node, _product(node) if made is None else made, node.number("alpha", 1.0))
    c = node.optional(2)
    return product if c is None else op.add(product, _scaled(node, c, node.number("beta", 1.0)))


def _product(node: Node) -> Expr:
    a, b = node[0], node[1]
    if node.integer("transA"):
        a = op.permute_dims(a, [1, 0])
    if node.integer("transB"):
        b = op.permute_dims(b, [1, 0])
    return op.matmul(a, b)


def _scaled(node: Node, x: Expr, factor: float) -> Expr:
    return x if factor == 1.0 else op.multiply(x, node.like(factor))


@converts("Einsum")
def einsum(node: Node) -> Result:
    """A sum of products by subscripts."""
    subscripts = node.text("equation").replace(" ", "")
    if "->" not in subscripts:
        letters = [each for each in subscripts.replace(",", "").replace("...", "")]
        once = "".join(sorted(each for each in set(letters) if letters.count(each) == 1))
        subscripts += "->" + ("..." if "..." in subscripts else "") + once
    ranks = [node.rank(index) for index in range(len(node.inputs))]
    return op.einsum([node[index] for index in range(len(ranks))], without_ellipsis(subscripts, ranks))


def without_ellipsis(subscripts: str, ranks: Sequence[int]) -> str:
    """Subscripts with letters in place of `...`, the last dimensions being the same in all operands."""
    if "..." not in subscripts:
        return subscripts
    free = [letter for letter in ascii_letters if letter not in subscripts]
    left, _, right = subscripts.partition("->")
    terms = left.split(",")
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max(count for count, term in zip(counts, terms, strict=True) if "..." in term)
    letters = "".join(free[:most])
    made = [term.replace("...", letters[most - count :]) for term, count in zip(terms, counts, strict=True)]
    return ",".join(made) + "->" + right.replace("...", letters)


@converts("Det")
def det(node: Node) -> Result:
    """Determinants of a batch of matrices, by elimination with pivots."""
    from relax_dialect.frontend.onnx.kernels.determinant import determinant

    if node.rank() < 2:
        raise Refusal("a determinant needs rank 2 or more")
    return node.te(determinant, node[0])
