"""Products of matrices, and what belongs to them; attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.manipulation import spatial
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.quantization import dequantized_product
from relax_dialect.frontend.onnx.values import Refusal, UseFunction, onnx_type
from tir_dialect import te
from tir_dialect.dtypes import is_bool


def determinant(x: te.Tensor) -> te.Tensor:
    """The determinants of a batch of matrices: elimination, with the greatest element of a column as pivot."""
    batch, size = x.shape[:-2], x.shape[-1]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("det", *spatial(batch)) as at:
            a = b.alloc((size, size), x.dtype, "a")
            pivot, found = b.alloc((), "i64", "pivot"), b.alloc((), x.dtype, "found")
            with b.for_range(0, size, "i") as i, b.for_range(0, size, "j") as j:
                b.store(a, (i, j), ins[0][(*at, i, j)])
            b.store(found, (), te.const(1, x.dtype))
            with b.for_range(0, size, "k") as k:
                _pivot(b, a, k, pivot)
                position = b.let(te.cast(pivot[()], "index"), "position")
                with b.if_(te.logical_not(te.cast(position, "i64") == te.cast(k, "i64"))):
                    b.store(found, (), te.const(0, x.dtype) - found[()])
                    with b.for_range(0, size, "j") as j:
                        swapped = b.let(a[(k, j)], "swapped")
                        b.store(a, (k, j), a[(position, j)])
                        b.store(a, (position, j), swapped)
                b.store(found, (), found[()] * a[(k, k)])
                with b.if_(te.logical_or(a[(k, k)] > 0, a[(k, k)] < 0)), b.for_range(k + 1, size, "i") as i:
                    factor = b.let(a[(i, k)] / a[(k, k)], "factor")
                    with b.for_range(k, size, "j") as j:
                        b.store(a, (i, j), a[(i, j)] - factor * a[(k, j)])
            b.store(outs[0], at, found[()])

    return te.extern([(batch, x.dtype)], [x], body, name="det")[0]


def _pivot(b: te.ExternBuilder, a: te.Tensor, k: te.Expr, pivot: te.Tensor) -> None:
    """Stores the row, from `k` on, with the greatest element in column `k`."""
    b.store(pivot, (), te.cast(k, "i64"))
    with b.for_range(k + 1, a.shape[-1], "i") as i:
        best = a[(te.cast(pivot[()], "index"), k)]
        with b.if_(te.abs(a[(i, k)]) > te.abs(best)):
            b.store(pivot, (), te.cast(i, "i64"))


@converts("MatMul")
def matmul(node: Node) -> Result:
    """The product, batched as NumPy does."""
    made = dequantized_product(node)
    return op.matmul(node[0], node[1]) if made is None else made


@converts("Gemm")
def gemm(node: Node) -> Result:
    """`alpha * a @ b + beta * c`, with matrices transposed if that is asked for; without `c` if `beta` is 0."""
    return gemm_of(node)


def gemm_of(node: Node) -> Expr:
    """What a node says as a `Gemm`."""
    made = None if node.integer("transA") else dequantized_product(node, bool(node.integer("transB")))
    product = _scaled(node, _product(node) if made is None else made, node.number("alpha", 1.0))
    c, beta = node.optional(2), node.number("beta", 1.0)
    return product if c is None or beta == 0 else op.add(product, _scaled(node, c, beta))


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
    if node.rank() < 2:
        raise Refusal("a determinant needs rank 2 or more")
    return node.te(determinant, node[0])


MASK, PAST_KEY, PAST_VALUE, LENGTHS = 3, 4, 5, 6


@converts("Attention", since=23)
def attention(node: Node) -> Result:
    """Scaled dot-product attention with caches of keys and values; the rarer forms by the body of the function."""
    dtype = node.dtype()
    precision = node.integer("softmax_precision")
    if not isinstance(dtype, Float32Type | Float64Type) or precision not in (0, onnx_type(dtype)):
        raise UseFunction
    windows = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if any(size != -1 for size in windows) or node.has(LENGTHS) or "".join(node.outputs[3:]) or not _have_rank(node):
        raise UseFunction
    heads = node.integer("q_num_heads"), node.integer("kv_num_heads")
    q, k, v = (_with_heads(node, index, count) for index, count in enumerate((heads[0], heads[1], heads[1])))
    if node.has(PAST_KEY):
        k, v = op.concat([node[PAST_KEY], k], axis=2), op.concat([node[PAST_VALUE], v], axis=2)
    result = _attention(node, q, k, v)
    if node.rank() == 3:
        batch, length = node.shape()[:2]
        features = node.shape(2)[-1] // heads[1] * heads[0]
        result = op.reshape(op.permute_dims(result, [0, 2, 1, 3]), (batch, length, features))
    return [result, k, v]


def _have_rank(node: Node) -> bool:
    """Whether queries, keys and values all have heads, as many or a known number of them, or none."""
    ranks = {node.rank(index) for index in range(3)}
    if ranks == {3}:
        return node.integer("q_num_heads") > 0 and node.integer("kv_num_heads") > 0
    if ranks != {4}:
        return False
    q, k = node.shape(0)[1], node.shape(1)[1]
    return q is k or None not in (q.constant_value, k.constant_value)


def _with_heads(node: Node, index: int, heads: int) -> Expr:
    """An operand by batch, head, position and feature."""
    if node.rank(index) == 4:
        return node[index]
    batch, length, features = node.shape(index)
    split = op.reshape(node[index], (batch, length, heads, features // heads))
    return op.permute_dims(split, [0, 2, 1, 3])


def _attention(node: Node, q: Expr, k: Expr, v: Expr) -> Expr:
    scale = node.attributes.get("scale")
    given = None if scale is None else float(scale)
    order = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")
    causal, bound = _causal(node), node.number("softcap")
    softcap = bound if bound > 0 else None
    if not node.has(MASK):
        return op.nn.attention(q, k, v, scale=given, softcap=softcap, causal_mask=causal, **order)
    lengths = [node.shape(index)[-2] for index in (1, PAST_KEY) if node.has(index)]
    if node.shape(MASK)[-1] is not sum(lengths[1:], lengths[0]):
        raise UseFunction  # a short mask is filled up
    is_given = is_bool(node.dtype(MASK)) or node.dtype(MASK) == node.dtype()
    bias = node[MASK] if is_given else op.astype(node[MASK], node.dtype())
    result = op.nn.attention_bias(q, k, v, bias, scale=given, softcap=softcap, causal_mask=causal, **order)
    return result if is_bool(node.dtype(MASK)) else _with_zeros(node, result, causal)


def _is_integer(node: Node) -> bool:
    return isinstance(node.dtype(MASK), IntegerType) and not is_bool(node.dtype(MASK))


def _causal(node: Node) -> str | None:
    """Where a causal mask starts: what is in the cache is before the queries."""
    if not node.integer("is_causal"):
        return None
    if not node.has(PAST_KEY):
        return "TopLeft"
    if node.shape(0)[-2] is not node.shape(1)[-2]:
        raise UseFunction
    return "BottomRight"


def _with_zeros(node: Node, result: Expr, causal: str | None) -> Expr:
    """Zeros for queries whose biases are all minus infinity."""
    known = node.known(MASK)
    if _is_integer(node) or (known is not None and bool(np.all(known > -math.inf))):
        return result
    if causal is not None:
        raise UseFunction
    greatest = op.max(node[MASK], axes=[-1], keepdims=True)
    return op.where(op.equal(greatest, node.like(-math.inf, MASK)), node.like(0.0), result)
