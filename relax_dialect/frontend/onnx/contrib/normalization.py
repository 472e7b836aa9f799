"""Normalizations and embeddings of ONNX Runtime."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.integer_arithmetic import scalar
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te


@converts("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(node: Node) -> Result:
    """The sum of two branches and a bias, normalised; as fourth output the sum."""
    total = _sum(node, 4)
    result = layer_norm(total, node[2], node.optional(3), node.number("epsilon", 1e-12))
    return [result, *_statistics(node, total, centred=True), total]


@converts("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(node: Node) -> Result:
    """The sum of two branches and a bias, divided by its root mean square; as fourth output the sum."""
    total = _sum(node, 3)
    result = rms_norm(total, node[2], [-1], node.number("epsilon", 1e-12))
    return [result, *_statistics(node, total, centred=False), total]


@converts("SimplifiedLayerNormalization")
@converts("SimplifiedLayerNormalization", domain=MICROSOFT)
def rms_norm_from(node: Node) -> Result:
    """The last dimensions, from an axis on, divided by their root mean square."""
    axes = list(range(node.axis(default=-1), node.rank()))
    epsilon, x = node.number("epsilon", 1e-5), node[0]
    result = rms_norm(x, node[1], axes, epsilon)
    return [result, *([_inverse(node, x, axes, epsilon)] if _wanted(node, 1) else [])]


@converts("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(node: Node) -> Result:
    """Heads side by side, each divided by its root mean square and scaled, times the activation of a gate."""
    kind = node.text("activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        raise Refusal(f"the activation {kind} is not supported")
    x, gate = _wide(node[0]), _wide(node[2])
    (width,) = fixed(node.shape(1), "the number of features of a head")
    *others, features = node.shape()
    heads = op.reshape(x, (*others, features // width, width))
    made = op.reshape(rms_norm(heads, node[1], [-1], node.number("epsilon", 1e-5)), node.shape())
    return _narrowed(op.multiply(made, op.sigmoid(gate) if kind == "sigmoid" else op.nn.silu(gate)), node[0])


@converts("BranchwiseRMSNorm", domain=MICROSOFT)
def rms_norm_of_branches(node: Node) -> Result:
    """Branches, a dimension or side by side, each divided by its root mean square and scaled."""
    x, branches = _wide(node[0]), node.integer("num_branches")
    *others, features = node.shape()
    size = features // branches if branches else features
    if branches:
        x = op.reshape(x, (*others, branches, size))
    axes, epsilon = [-1], node.number("epsilon", 1e-5)
    mean = op.mean(op.multiply(x, x), axes, keepdims=True)
    made = op.multiply(x, op.rsqrt(op.add(mean, node.const(epsilon, f32))))
    if node.has(1):
        scale = _wide(node[1])
        is_flat = branches and node.shape(1)[-1] is features
        made = op.multiply(made, op.reshape(scale, (branches, size)) if is_flat else scale)
    return _narrowed(op.reshape(made, node.shape()), node[0])


def layer_norm(x: Expr, scale: Expr, shift: Expr | None, epsilon: float) -> Expr:
    """The last dimension normalised; of short floats in single precision."""
    gamma = _wide(scale)
    beta = op.full_like(gamma, 0.0) if shift is None else _wide(shift)
    return _narrowed(op.nn.layer_norm(_wide(x), gamma, beta, [-1], epsilon), x)


def rms_norm(x: Expr, scale: Expr, axes: list[int], epsilon: float) -> Expr:
    """`x / sqrt(mean(x ** 2) + epsilon) * scale`; of short floats in single precision."""
    return _narrowed(op.nn.rms_norm(_wide(x), _wide(scale), axes, epsilon), x)


def _wide(x: Expr) -> Expr:
    return op.astype(x, f32) if str(x.dtype) in ("f16", "bf16") else x


def _narrowed(made: Expr, x: Expr) -> Expr:
    return made if x.dtype is None or made.dtype == x.dtype else op.astype(made, x.dtype)


def _sum(node: Node, bias: int) -> Expr:
    total = op.add(node[0], node[1])
    return op.add(total, node[bias]) if node.has(bias) else total


def _wanted(node: Node, output: int) -> bool:
    return output < len(node.outputs) and bool(node.outputs[output])


def _statistics(node: Node, total: Expr, *, centred: bool) -> list[Expr | None]:
    """The mean and the inverse deviation, where somebody wants them."""
    mean = op.mean(total, [-1], keepdims=True)
    around = op.subtract(total, mean) if centred else total
    inverse = _inverse(node, around, [-1], node.number("epsilon", 1e-12))
    return [mean if _wanted(node, 1) else None, inverse if _wanted(node, 2) else None]


def _inverse(node: Node, x: Expr, axes: list[int], epsilon: float) -> Expr:
    return op.rsqrt(op.add(op.mean(op.multiply(x, x), axes, keepdims=True), node.like(epsilon)))


SEGMENTS, MASK, POSITIONS = 1, 7, 8


@converts("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(node: Node) -> Result:
    """The sum of the embeddings of words, places and segments, normalised; the lengths of sequences; and the sum."""
    total = op.take(node[2], node[0], 0)
    if node.has(POSITIONS):
        total = op.add(total, op.take(node[3], node[POSITIONS], 0))
    else:
        total = op.add(total, _first_rows(node, 3))
    if node.has(SEGMENTS):
        total = op.add(total, op.take(node[4], node[SEGMENTS], 0))
    result = layer_norm(total, node[5], node[6], node.number("epsilon", 1e-12))
    return [result, _lengths(node), total]


@converts("QEmbedLayerNormalization", domain=MICROSOFT)
def quantised_embed_layer_norm(node: Node) -> Result:
    """The same of tables and parameters that are bytes: each has a scale, six operands on, and then a zero point."""

    def numbers(x: Expr, index: int) -> Expr:
        exact = op.subtract(op.astype(x, i32), op.astype(scalar(node[index + 11]), i32))
        return op.multiply(op.astype(exact, f32), scalar(node[index + 6]))

    total = op.add(numbers(op.take(node[2], node[0], 0), 2), numbers(_first_rows(node, 3), 3))
    if node.has(SEGMENTS):
        total = op.add(total, numbers(op.take(node[4], node[SEGMENTS], 0), 4))
    result = layer_norm(total, numbers(node[5], 5), numbers(node[6], 6), node.number("epsilon", 1e-12))
    return [result, _lengths(node)]


def _first_rows(node: Node, table: int) -> Expr:
    """The first rows of a table, one for each token of a sequence."""
    _, length = node.shape()
    return op.strided_slice(node[table], [0], [0], [length], assume_inbound=True)


def _lengths(node: Node) -> Expr:
    """How many tokens of each sequence the mask shows; zeros without a mask."""
    if not node.has(MASK):
        return op.full([node.shape()[0]], node.const(0, i32))
    ones = op.equal(node[MASK], op.full_like(node[MASK], 1))
    return op.sum(op.astype(ones, i32), [1])


@converts("RelativePositionBias", domain=MICROSOFT)
def relative_position_bias(node: Node) -> Result:
    """A bias of scores for each head and distance, the far distances in buckets whose size grows."""
    buckets, heads = node.shape(0)
    queries, keys = (
        known[0] if (known := node.dims(index)) else node.run_time_dims(op.reshape(node[index], [1]))[0]
        for index in (1, 2)
    )
    two_sided, farthest = bool(node.integer("is_bidirectional")), node.integer("max_distance")

    def kernel(table: te.Tensor) -> te.Tensor:
        def element(_: te.Expr, head: te.Expr, query: te.Expr, key: te.Expr) -> te.Expr:
            distance = te.cast(key, "i32") - te.cast(query, "i32")
            return table[_bucket(distance, buckets.constant_value or 0, farthest, two_sided=two_sided), head]

        return te.compute((1, heads, queries, keys), element, name="relative_position_bias")

    return node.te(kernel, node[0], name="relative_position_bias")


def _bucket(distance: te.Expr, buckets: int, farthest: int, *, two_sided: bool) -> te.Expr:
    """The bucket of a distance: half of them hold one distance each, the others grow by a factor."""
    import math

    zero = te.const(0, "i32")
    half = buckets // 2 if two_sided else buckets
    before = te.select(distance > 0, te.const(half, "i32"), zero) if two_sided else zero
    far = te.maximum(distance, -distance) if two_sided else te.maximum(-distance, zero)
    exact = half // 2
    ratio = te.log(te.cast(te.maximum(far, te.const(1, "i32")), "f32") / float(exact))
    grown = te.cast(ratio / math.log(farthest / exact) * float(half - exact), "i32") + exact
    bucket = te.select(far < exact, far, te.minimum(grown, te.const(half - 1, "i32")))
    return te.cast(before + bucket, "index")
