"""Linear algebra, and attention with its gradients."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, f64, i1, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import extreme
from relax_dialect.frontend.torch.creation import kept
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.search import where_true
from tir_dialect import te
from tir_dialect.dims import Dim, product
from tir_dialect.dtypes import is_bool


@converts("aten.linear.default")
def linear(node: Node) -> Result:
    """`x @ transpose(w) + b`."""
    weight = node.tensor("weight")
    made = op.matmul(node.tensor("input"), op.permute_dims(weight) if weight.ndim == 2 else weight)
    return op.add(made, node.tensor("bias")) if node.has("bias") else made


@converts("aten.matmul.default", "aten.linalg_matmul.default")
def matmul(node: Node) -> Result:
    """The matrix product; vectors are rows or columns."""
    return op.matmul(node.tensor("self"), node.tensor("other"))


@converts("aten.mm.default", "aten.bmm.default")
def mm(node: Node) -> Result:
    """The product of matrices, or of batches of them."""
    return op.matmul(node.tensor("self"), node.tensor("mat2"))


@converts("aten.mv.default", "aten.dot.default", "aten.vdot.default")
def mv(node: Node) -> Result:
    """The product of a matrix, or a vector, and a vector."""
    name = {"mv": "vec", "dot": "tensor", "vdot": "other"}[node.name]
    return op.matmul(node.tensor("self"), node.tensor(name))


@converts("aten.addmm.default", "aten.addmv.default", "aten.baddbmm.default", "aten.addbmm.default")
def addmm(node: Node) -> Result:
    """`beta * x + alpha * a @ b`, summed over the batch by `addbmm`; without `x`, be it NaN, if `beta` is 0."""
    names = {"addmm": ("mat1", "mat2"), "addmv": ("mat", "vec")}.get(node.name, ("batch1", "batch2"))
    dtype = node.out_dtype()
    made = op.matmul(node.tensor(names[0]), node.tensor(names[1]))
    if node.name == "addbmm":
        made = op.sum(made, [0])
    made = _times(node, made, "alpha", dtype)
    return made if node.value("beta") == 0 else op.add(made, _times(node, node.tensor("self"), "beta", dtype))


def _times(node: Node, x: Expr, factor: str, dtype: Attribute) -> Expr:
    return x if node.value(factor) == 1 else op.multiply(x, node.tensor(factor, dtype))


@converts("aten._int_mm.default")
def int_mm(node: Node) -> Result:
    """The product of matrices of small integers, in `i32`."""
    return op.matmul(node.tensor("self"), node.tensor("mat2"), out_dtype=node.out_dtype())


@converts("aten._grouped_mm.default", "transformers.grouped_mm_fallback.default")
def grouped_mm(node: Node) -> Result:
    """Products of matrices that lie one after the other. `offs` says where each ends along the dimension that they
    share: rows of the left one, columns of the right one, or what is summed over.
    """
    one, other = ("self", "mat2") if node.has("self") else ("input", "weight")
    a, b = node.tensor(one), node.tensor(other)
    if a.ndim == b.ndim == 3:
        return node.matched(op.matmul(a, b), node.out_dtype())
    rows, depth = node.shape(one)[-2:]
    columns, left = node.shape(other)[-1], a.ndim == 3
    summed = a.ndim == b.ndim
    lengths = depth if summed else columns if left else rows
    ends = node.tensor("offs", i32)
    groups = node.shape("offs")[0]
    which = op.bucketize(op.arange(0, lengths, 1, dtype=i32), ends, right=True, out_int32=True)
    last = node.graph.dimension(groups - 1, i32)
    inside = op.less_equal(which, last)
    which = which if summed else op.minimum(which, last)

    def kernel(a: te.Tensor, b: te.Tensor, which: te.Tensor) -> te.Tensor:
        k = te.reduce_axis(depth, "k")

        def element(*i: te.Expr) -> te.Expr:
            group = i[0] if summed else te.cast(which[i[-1] if left else i[0]], "index")
            x = a[(group, i[0], k)] if left else a[(i[-2], k)]
            y = b[(k, i[-1])] if left or summed else b[(group, k, i[-1])]
            product = te.cast(x, "f32") * te.cast(y, "f32")
            return te.sum(te.if_then_else(te.cast(which[k], "index") == group, product, 0.0) if summed else product, k)

        return te.compute(node.out_dims(), element, name="grouped_mm")

    made = node.te(kernel, a, b, which, name="grouped_mm")
    if not summed:  # what is after the last group is 0
        made = op.where(inside if left else op.expand_dims(inside, [1]), made, node.like(0, made))
    return node.matched(made, node.out_dtype())


@converts("aten._cdist_forward.default")
def cdist(node: Node) -> Result:
    """The distances of all rows of one matrix from all rows of another, by a norm."""
    return _distances(node, node.tensor("x1"), node.tensor("x2"))


@converts("aten._pdist_forward.default")
def pdist(node: Node) -> Result:
    """The distances of all pairs of rows of a matrix, by a norm."""
    x, rows = node.tensor("self"), node.shape()[0]
    pairs = op.flatten(op.triu(op.ones([rows, rows], node.dtype()), 1))
    return op.take(op.flatten(_distances(node, x, x)), where_true(node, pairs), 0)


def _distances(node: Node, x: Expr, y: Expr) -> Expr:
    x, y = op.expand_dims(x, [-2]), op.expand_dims(y, [-3])
    apart, p = op.abs(op.subtract(x, y)), node.number("p")
    if p == 0:
        return op.sum(op.astype(op.not_equal(apart, node.like(0, apart)), node.out_dtype()), [-1])
    if p == float("inf"):
        return op.max(apart, [-1])
    if p in (1, 2):
        return op.sum(apart, [-1]) if p == 1 else op.sqrt(op.sum(op.square(apart), [-1]))
    return op.power(op.sum(op.power(apart, node.like(p, apart)), [-1]), node.like(1 / p, apart))


@converts("aten.outer.default", "aten.ger.default")
def outer(node: Node) -> Result:
    """The products of all elements of two vectors."""
    x, y = node.tensor("self", node.out_dtype()), node.tensor("vec2", node.out_dtype())
    return op.logical_and(op.expand_dims(x, [1]), y) if x.dtype == i1 else op.outer(x, y)


@converts("aten.einsum.default")
def einsum(node: Node) -> Result:
    """Products summed over subscripts; PyTorch sums elements of one tensor that are integers as `i64`."""
    operands, dtype = node.tensors("tensors" if node.has("tensors") else "operands"), node.out_dtype()
    same = [each if each.dtype == dtype else op.astype(each, dtype) for each in operands]
    return summed_products(node.text("equation"), same)


def summed_products(equation: str, operands: list[Expr]) -> Expr:
    """Products of tensors, summed over the subscripts that the result does not have."""
    equation = equation.replace(" ", "")
    if "..." in equation:
        equation = _without_ellipsis(equation, [operand.ndim or 0 for operand in operands])
    return op.einsum(operands, equation)


def _without_ellipsis(equation: str, ranks: list[int]) -> str:
    """The subscripts with letters for the dimensions that an ellipsis stands for."""
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    free = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    counts = [rank - len(term) + 3 if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)]
    if max(counts) > len(free):
        raise Refusal("there are not enough letters for the dimensions of an ellipsis")
    letters = "".join(free[: max(counts)])
    written = [term.replace("...", letters[len(letters) - count :]) for term, count in zip(terms, counts, strict=True)]
    if not arrow:
        single = sorted(c for c in set(inputs) - set(".,") if inputs.count(c) == 1)
        output = "..." + "".join(single)
    return f"{','.join(written)}->{output.replace('...', letters)}"


@converts("aten.bilinear.default")
def bilinear(node: Node) -> Result:
    """`x1 @ w[o] @ x2` for each feature `o` of the result, and a bias."""
    lead = "abcdefgh"[: node.rank("input1") - 1]
    operands = [node.tensor(name) for name in ("input1", "weight", "input2")]
    made = op.einsum(operands, f"{lead}x,zxy,{lead}y->{lead}z")
    return op.add(made, node.tensor("bias")) if node.has("bias") else made


@converts("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(node: Node) -> Result:
    """The elements on a diagonal of two dimensions, as last dimension."""
    offset, axes = node.integer("offset"), [node.axis("dim1"), node.axis("dim2")]
    rest = [axis for axis in range(node.rank()) if axis not in axes]
    length = node.out_dims()[-1]
    x = op.permute_dims(node.tensor("self"), [*rest, *axes])

    def kernel(x: te.Tensor) -> te.Tensor:
        down, right = max(-offset, 0), max(offset, 0)
        return te.compute(
            (*x.shape[:-2], length), lambda *i: x[(*i[:-1], i[-1] + down, i[-1] + right)], name="diagonal"
        )

    return node.te(kernel, x, name="diagonal")


_LAYOUTS = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")


@converts("aten.scaled_dot_product_attention.default")
def attention(node: Node) -> Result:
    """`softmax(q @ transpose(k) * scale + mask) @ v`."""
    return _attention(node)


@converts("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(node: Node) -> Result:
    """The same as PyTorch decomposes it for a CPU; the logarithms of the sums of the softmax are for training."""
    return _with_logarithms(node) if node.wants(1) else [_attention(node), None]


def _attention(node: Node) -> Expr:
    if node.number("dropout_p"):
        return _with_dropout(node)
    q, k, v = (_with_heads(node, name) for name in ("query", "key", "value"))
    scale = node.number("scale") if node.has("scale") else None
    causal = "TopLeft" if node.flag("is_causal") else None
    mask = _mask(node)
    if mask is None:
        made = op.nn.attention(q, k, v, scale=scale, causal_mask=causal, **_LAYOUTS)
    else:
        made = op.nn.attention_bias(q, k, v, mask, scale=scale, causal_mask=causal, **_LAYOUTS)
        made = made if is_bool(node.dtype("attn_mask")) else _with_zeros(node, made, mask)
    return made if node.rank("query") == 4 else op.reshape(made, node.out_dims())


def _with_zeros(node: Node, made: Expr, mask: Expr) -> Expr:
    """Zeros for queries whose biases are all minus infinity."""
    hidden = op.equal(extreme(node.bb, mask, [-1], "max", keepdims=True), node.like(-math.inf, mask))
    return op.where(hidden, node.like(0, made), made)


@converts("torch.ops.higher_order.flex_attention")
def flex_attention(node: Node) -> Result:
    """Attention whose scores are changed by a graph, and masked by another; both see the indices of each score."""
    q, k, v = (node.tensor(str(at)) for at in range(3))
    batch, heads, rows, _ = node.shape("0")
    columns = node.shape("1")[2]
    q, k, v = _as_many_heads(node, q, k, v)
    indices = [
        op.reshape(op.arange(0, length, 1, dtype=i32), [length if at == axis else 1 for at in range(4)])
        for axis, length in enumerate([batch, heads, rows, columns])
    ]
    scores = op.multiply(op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])), node.tensor("5", node.dtype("0")))
    (changed,) = node.graph.within(node.value("3"), [scores, *indices, *node.value("7")], lifted=True).run()
    (seen,) = node.graph.within(node.value("4")[-1], [*indices, *node.value("8")], lifted=True).run()
    none = node.like(-math.inf, scores)
    scores = op.where(node.graph.tensor(seen), node.graph.tensor(changed, node.dtype("0")), none)
    greatest = extreme(node.bb, scores, [-1], "max", keepdims=True)
    hidden = op.equal(greatest, none)
    weights = op.exp(op.subtract(scores, op.where(hidden, node.like(0, scores), greatest)))
    total = op.sum(weights, [-1], keepdims=True)
    made = op.divide(op.matmul(weights, v), op.where(hidden, node.like(1, scores), total))
    if node.wants(1) or node.wants(2):
        raise Refusal("the logarithms and greatest of the sums of scores are not supported")
    return [made, None, None]


def _as_many_heads(node: Node, q: Expr, k: Expr, v: Expr) -> tuple[Expr, Expr, Expr]:
    """Keys and values repeated for the heads of queries that share them, and for the batch."""
    batch, heads, *_ = node.shape("0")

    def repeated(x: Expr, dims: tuple[Dim, ...]) -> Expr:
        few, length, features = dims[1:]
        if few != heads:
            many = heads // few
            spread = op.broadcast_to(op.expand_dims(x, [2]), [dims[0], few, many, length, features])
            x = op.reshape(spread, [dims[0], heads, length, features])
        return x if dims[0] == batch else op.broadcast_to(x, [batch, heads, length, features])

    return q, repeated(k, node.shape("1")), repeated(v, node.shape("2"))


def _with_dropout(node: Node) -> Expr:
    """In training, when random weights are dropped."""
    q, k, v = (node.tensor(name) for name in ("query", "key", "value"))
    *_, length, features = node.shape("query")
    if q.ndim is None or k.ndim is None or node.flag("enable_gqa"):
        raise Refusal("dropout together with grouped heads is not supported")
    scale = node.number("scale") if node.has("scale") else None
    turned = op.permute_dims(k, [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2])
    scores = op.matmul(q, turned)
    if scale is None:
        scores = op.divide(scores, op.sqrt(node.graph.dimension(features, node.dtype("query"))))
    else:
        scores = op.multiply(scores, node.like(scale, scores))
    mask = node.optional("attn_mask")
    if node.flag("is_causal"):
        mask = op.tril(op.full([length, node.shape("key")[-2]], node.bb.const(True)))
    if mask is not None and mask.dtype == i1:
        scores = op.where(mask, scores, node.like(-math.inf, scores))
    elif mask is not None:
        scores = op.add(scores, mask)
    return op.matmul(kept(node, op.nn.softmax(scores, -1), node.number("dropout_p"))[0], v)


def _with_heads(node: Node, name: str) -> Expr:
    """An operand by batch, head, position and feature: the leading dimensions as one batch, that of the result."""
    x, dims = node.tensor(name), list(node.shape(name))
    own = 3 if len(node.out_dims()) > 3 else 2
    wanted = [*node.out_dims()[:-own], *([1] * (own - len(dims))), *dims[-own:]]
    if dims != wanted:
        x, dims = op.broadcast_to(x, wanted), wanted
    if len(dims) == 4:
        return x
    *lead, heads, length, features = [*[1] * (4 - len(dims)), *dims]
    return op.reshape(x, [product(lead), heads, length, features])


def _mask(node: Node) -> Expr | None:
    """A mask by batch, head, query and key; what says which keys are seen stays of truth values."""
    mask = node.optional("attn_mask")
    if mask is None or mask.ndim == 4:
        return mask
    dims = node.shape("attn_mask")
    if node.rank("query") > 4 and len(dims) > 2:
        raise Refusal("masks of more than two dimensions over several batch dimensions are not supported")
    return op.reshape(mask, [*[1] * (4 - len(dims)), *dims])


def _with_logarithms(node: Node) -> list[Expr]:
    """`softmax(q @ transpose(k) * scale + mask) @ v`, and the logarithms of the sums of the softmax."""
    scores = _scores(node)
    greatest = op.max(scores, [-1], keepdims=True)
    greatest = op.where(op.equal(greatest, node.like(-math.inf, greatest)), node.like(0, greatest), greatest)
    weights = op.exp(op.subtract(scores, greatest))
    total = op.sum(weights, [-1], keepdims=True)
    logarithm = op.squeeze(op.add(op.log(total), greatest), [-1])
    hidden = op.equal(total, node.like(0, total))
    weights = op.divide(weights, op.where(hidden, node.like(1, total), total))
    made = op.matmul(weights, node.tensor("value", scores.dtype))
    return [op.astype(made, node.out_dtype()), logarithm]


@converts("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(node: Node) -> Result:
    """The gradients of queries, keys and values."""
    if node.number("dropout_p"):
        raise Refusal("gradients of attention with dropout are not supported")
    scores = _scores(node)
    dtype = scores.dtype
    logarithm = op.expand_dims(node.tensor("logsumexp", dtype), [-1])
    hidden = op.equal(logarithm, node.like(-math.inf, logarithm))
    weights = op.exp(op.subtract(scores, logarithm))
    weights = op.where(hidden, node.like(0, weights), weights)
    query, key, value, gradient, out = (
        node.tensor(name, dtype) for name in ("query", "key", "value", "grad_out", "out")
    )
    of_weights = op.matmul(gradient, op.permute_dims(value, [0, 1, 3, 2]))
    shared = op.sum(op.multiply(gradient, out), [-1], keepdims=True)
    of_scores = op.multiply(weights, op.subtract(of_weights, shared))
    of_scores = op.multiply(of_scores, _scale(node, of_scores))
    turned = op.permute_dims(of_scores, [0, 1, 3, 2])
    made = (
        op.matmul(of_scores, key),
        op.matmul(turned, query),
        op.matmul(op.permute_dims(weights, [0, 1, 3, 2]), gradient),
    )
    return [op.astype(each, node.out_dtype(index)) for index, each in enumerate(made)]


def _scores(node: Node) -> Expr:
    """The scores of queries and keys, in at least `f32`; minus infinity where a query does not see a key."""
    dtype = f64 if node.dtype("query") == f64 else f32
    query, key = node.tensor("query", dtype), node.tensor("key", dtype)
    scores = op.matmul(query, op.permute_dims(key, [0, 1, 3, 2]))
    scores = op.multiply(scores, _scale(node, scores))
    none = node.like(-math.inf, scores)
    mask = _mask(node)
    if mask is not None:
        seen = is_bool(node.dtype("attn_mask"))
        scores = op.where(mask, scores, none) if seen else op.add(scores, op.astype(mask, dtype))
    if node.flag("is_causal"):
        rows, columns = node.shape("query")[-2], node.shape("key")[-2]
        scores = op.where(op.tril(op.full([rows, columns], node.bb.const(True))), scores, none)
    return scores


def _scale(node: Node, like: Expr) -> Expr:
    """What scores are multiplied by, in the dtype of `like`."""
    if node.has("scale"):
        return node.like(node.number("scale"), like)
    assert like.dtype is not None
    return op.rsqrt(node.graph.dimension(node.shape("query")[-1], like.dtype))
