"""Linear algebra."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.search import where_true
from tir_dialect import te


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
