"""Layers of ONNX Runtime that are a few operators: normalizations and embeddings, normalised groups, biased softmax,
streams that are mixed. And parts of images and sequences that it reads in its own ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f32, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import indices_within
from relax_dialect.frontend.onnx.contrib.attention import DECAY, PAST, RATE, RULES, State
from relax_dialect.frontend.onnx.convolution import conv_transpose
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed, from_front
from relax_dialect.frontend.onnx.quantization import scalar
from relax_dialect.frontend.onnx.values import Refusal
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


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
    """The sum of the embeddings of words, positions and segments, normalised; the lengths of sequences; and the sum."""
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


def dims_of(x: Expr) -> tuple[Dim, ...]:
    """The dimensions of a tensor, which are known."""
    return tuple(dim for dim in x.shape or () if dim is not None)


@converts("GroupNorm", "SkipGroupNorm", domain=MICROSOFT)
def group_norm(node: Node) -> Result:
    """Groups of channels normalised, of images whose channels come last or second; before that a sum with a skip and a
    bias, which is the second output.
    """
    x, last, rank = node[0], bool(node.integer("channels_last", 1)), node.rank()
    axis = rank - 1 if last else 1
    if node.op_type == "SkipGroupNorm":
        skip = node[3]
        if skip.ndim == 2:
            skip = op.expand_dims(skip, [1, 2] if last else [2, 3])
        x = op.add(x, skip)
        if node.has(4):
            x = op.add(x, node[4] if last else op.expand_dims(node[4], [1, 2]))
    spatial = [at for at in range(1, rank) if at != axis]
    scale, shift = (op.astype(node[at], f32) for at in (1, 2))
    groups, epsilon = node.integer("groups"), node.number("epsilon", 1e-5)
    wide = op.nn.group_norm(
        op.astype(x, f32), scale, shift, num_groups=groups, channel_axis=axis, axes=spatial, epsilon=epsilon
    )
    made = op.astype(op.nn.silu(wide) if node.integer("activation") else wide, node.dtype())
    return [made, x]


@converts("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: Node) -> Result:
    """The softmax of all dimensions from an axis on of a sum; the bias has dimensions of 1 where it broadcasts."""
    axis, shape = from_front(node.integer("axis", 1), node.rank()), node.shape()
    total = op.reshape(op.add(node[0], node[1]), [math.prod(shape[:axis]), math.prod(shape[axis:])])
    return op.reshape(op.nn.softmax(total, 1), shape)


@converts("BiasDropout", domain=MICROSOFT)
def bias_dropout(node: Node) -> Result:
    """In inference: the sum of data, bias and a residual; nothing is dropped."""
    training = node.known(4)
    if node.has(4) and (training is None or training.any()):
        raise Refusal("training is not supported")
    total = op.add(node[0], node[1])
    return [op.add(total, node[2]) if node.has(2) else total, op.full(list(node.shape()), node.bb.const(True))]


@converts("IsAllFinite", domain=MICROSOFT)
def is_all_finite(node: Node) -> Result:
    """Whether no element of any tensor is infinite or NaN, or only not one of them."""
    found: Expr | None = None
    for at in range(len(node.inputs)):
        x = node[at]
        if node.integer("isnan_only"):
            wrong = op.isnan(x)
        elif node.integer("isinf_only"):
            wrong = op.isinf(x)
        else:
            wrong = op.logical_not(op.isfinite(x))
        here = op.equal(op.sum(op.astype(wrong, i32)), 0)
        found = here if found is None else op.logical_and(found, here)
    if found is None:
        raise Refusal("there is no tensor")
    return found


@converts("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(node: Node) -> Result:
    """Rows of a matrix."""
    return op.take(node[0], node[1], 0)


@converts("SampleOp", domain=MICROSOFT)
def sample(node: Node) -> Result:
    """The data as they are."""
    return node.value(0)


@converts("GemmaRotaryEmbedding", domain=MICROSOFT)
def gemma_rotary_embedding(node: Node) -> Result:
    """Queries and keys times the cosines of angles, plus their turned halves times the sines."""
    sine, cosine = (op.expand_dims(op.astype(each(node[0]), node.dtype(1)), [1]) for each in (op.sin, op.cos))
    return [
        op.add(op.multiply(node[at], cosine), op.multiply(node[at + 1], sine)) for at in (1, 3)
    ]  # fmt: skip


# Streams that are kept beside each other


def _grouped(node: Node, x: Expr) -> Expr:
    """Streams as a dimension of their own, in `f32`."""
    count, dims = node.integer("num_branches"), dims_of(x)
    return op.astype(x if not count else op.reshape(x, [*dims[:-1], count, floordiv(dims[-1], count)]), f32)


def _gates(x: Expr, streams: Sequence[Dim]) -> Expr:
    """Gates of streams, or of features, as tensors that broadcast with the streams."""
    dims, wide = dims_of(x), op.astype(x, f32)
    if len(dims) == len(streams):
        return wide
    if dims[-1] is streams[-2]:
        return op.expand_dims(wide, [len(dims)])
    return op.reshape(wide, streams)


@converts("HyperConnectionPreMix", domain=MICROSOFT)
def hyper_connection_pre_mix(node: Node) -> Result:
    """The sum of streams, each times its gate."""
    streams = _grouped(node, node[0])
    total = op.sum(op.multiply(streams, _gates(node[1], dims_of(streams))), [-2])
    return op.astype(op.multiply(total, node.const(node.number("reduction_scale", 1.0), f32)), node.dtype())


@converts("HyperConnectionPostMix", domain=MICROSOFT)
def hyper_connection_post_mix(node: Node) -> Result:
    """Streams mixed by a matrix, and a branch's output times the gate of each stream."""
    streams = _grouped(node, node[0])
    mixed = streams
    if node.has(3):
        rank = node.rank(3)
        turned = op.permute_dims(op.astype(node[3], f32), [*range(rank - 2), rank - 1, rank - 2])
        mixed = op.matmul(turned, streams)
    branch = op.expand_dims(op.astype(node[1], f32), [node.rank(1) - 1])
    made = op.add(mixed, op.multiply(_gates(node[2], dims_of(streams)), branch))
    return op.astype(op.reshape(made, node.shape()), node.dtype())


@converts("EngramGate", domain=MICROSOFT)
def engram_gate(node: Node) -> Result:
    """A value times a gate for each stream: how far a key and a query, both normalised, are alike."""
    epsilon = node.number("epsilon", 1e-5)
    key, query = (
        op.multiply(rms_norm(op.astype(node[at], f32), op.full([node.shape()[3]], node.const(1, f32)), [-1], epsilon),
                    op.astype(node[at + 3], f32))
        for at in (0, 1)
    )  # fmt: skip
    (width,) = fixed(node.shape()[3:], "the number of features")
    alike = op.multiply(op.sum(op.multiply(key, query), [-1], keepdims=True), node.const(1 / math.sqrt(width), f32))
    root = op.sqrt(op.maximum(op.abs(alike), 1e-6))
    gate = op.sigmoid(op.multiply(op.sign(alike), root))
    made = op.multiply(gate, op.expand_dims(op.astype(node[2], f32), [2]))
    results = [op.astype(made, node.dtype())]
    if node.has(5):
        ones = op.full([node.shape()[3]], node.const(1, f32))
        normal = op.multiply(rms_norm(made, ones, [-1], epsilon), op.astype(node[5], f32))
        results.append(op.astype(normal, node.dtype()))
    return results


# A gated delta network


@converts("GatedDeltaNet", domain=MICROSOFT)
def gated_delta_net(node: Node) -> Result:
    """Linear attention over sequences of one length: a state that decays, in which the value of a key is replaced."""
    if node.has(3) or node.integer("state_update_capacity") or not (node.has(1) and node.has(2)):
        raise Refusal("packed sequences of different lengths, packed operands and updates of states are not supported")
    rule = node.text("update_rule", "gated_delta")
    if rule not in RULES:
        raise Refusal(f"the rule {rule!r} is none of {', '.join(RULES)}")
    heads, depth = fixed(node.shape(2)[-2:-1] + node.shape()[-1:], "the numbers of heads and features")
    (readers,), (width,) = fixed(node.shape()[-2:-1], "the heads"), fixed(node.shape(2)[-1:], "the features")
    # The number of sequences, and their length.
    dims = node.shape()
    if len(dims) == 4:
        lead = [dims[0], dims[1]]
    else:
        if not node.has(6):
            raise Refusal("the number of sequences is not known without an initial state")
        batch = node.shape(6)[0]
        lead = [batch, floordiv(dims[0], batch)]

    def flat(x: Expr, features: int) -> Expr:
        return op.reshape(x, [*lead, heads * features])

    q, k = (_read_keys(node, at, heads // readers) for at in (0, 1))
    given: dict[int, Expr] = {}
    if node.has(6):
        given[PAST] = op.permute_dims(node[6], [0, 1, 3, 2])
    decays, replaces = RULES[rule]
    if decays:
        decay = _decay(node, heads, depth)
        given[DECAY] = op.reshape(decay, [*lead, math.prod(dims_of(decay)[node.rank() - 2 :])])
    if replaces:
        rate = op.astype(node[5], f32)
        rate = op.sigmoid(rate) if node.text("beta_activation", "none") == "sigmoid" else rate
        given[RATE] = op.reshape(rate, [*lead, heads])
    layer = State(heads, heads, depth, width, node.number("scale") or 1 / math.sqrt(depth))

    def kernel(q: te.Tensor, k: te.Tensor, v: te.Tensor, *rest: te.Tensor) -> Sequence[te.Tensor]:
        outputs = [((*q.shape[:2], heads * width), "f32"), ((q.shape[0], heads, depth, width), "f32")]
        optional = dict(zip(given, rest, strict=True))
        return te.extern(
            outputs, [q, k, v, *rest], lambda b, ins, outs: layer.emit(b, ins[:3], optional, outs), name=node.op_type
        )

    operands = [flat(q, depth), flat(k, depth), flat(op.astype(node[2], f32), width)]
    made, state = node.te_all(kernel, *operands, *given.values(), name="gated_delta_net")
    result = op.astype(op.reshape(made, [*node.shape()[:-2], heads, width]), node.dtype())
    return [result, op.permute_dims(state, [0, 1, 3, 2])]


def _read_keys(node: Node, index: int, times: int) -> Expr:
    """Queries or keys in `f32`, those that heads share once for each; of length 1 if that is asked for."""
    x = op.astype(node[index], f32)
    if node.integer("qk_l2_norm"):
        squares = op.sum(op.multiply(x, x), [-1], keepdims=True)
        x = op.divide(x, op.sqrt(op.add(squares, node.const(1e-6, f32))))
    return op.repeat(x, times, node.rank() - 2) if times > 1 else x


def _decay(node: Node, heads: int, depth: int) -> Expr:
    """The logarithm of what is left of a state after a token."""
    decay, kind = op.astype(node[4], f32), node.text("gate_activation", "none")
    if kind == "none":
        return decay
    if kind not in ("softplus", "qwen", "sigmoid", "kda"):
        raise Refusal(f"the activation {kind} of gates is not supported")
    by_feature = node.rank(4) == node.rank()
    rate, bias = op.exp(node[7]), node[8]
    if by_feature:
        count = math.prod(fixed(node.shape(8), "the number of biases"))
        rate, bias = op.expand_dims(rate, [1]), op.reshape(bias, [heads, depth if count > heads else 1])
    inner = op.add(decay, bias)
    if kind in ("softplus", "qwen"):
        return op.negative(op.multiply(rate, op.nn.softplus(inner)))
    return op.multiply(op.sigmoid(op.multiply(rate, inner)), node.const(node.number("gate_lower_bound", -5.0), f32))


@converts("CropAndResize", domain=MICROSOFT)
def crop_and_resize(node: Node) -> Result:
    """Regions of images brought to one size, whose corners are those of the regions."""
    mode, outside = node.text("mode", "bilinear"), node.number("extrapolation_value")
    if mode not in ("bilinear", "nearest"):
        raise Refusal(f"the mode {mode} is not supported")
    sizes = node.dims(3) or node.run_time_dims(node[3], node.hinted_dims(4)[2:])

    def kernel(x: te.Tensor, regions: te.Tensor, images: te.Tensor) -> te.Tensor:
        def element(r: te.Expr, c: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
            n = te.cast(images[r], "index")
            positions = [
                _position(at, size, (regions[r, axis], regions[r, axis + 2]), x.shape[2 + axis])
                for axis, (at, size) in enumerate(zip((i, j), sizes, strict=True))
            ]
            is_inside = te.logical_and(*(is_inside for _, is_inside in positions))
            positions = [te.select(is_inside, position, te.const(0, "f32")) for position, _ in positions]
            ends = (
                [(te.floor(position), te.ceil(position)) for position in positions]
                if mode == "bilinear"
                else [(te.round_away(p),) for p in positions]
            )
            found = [
                [x[n, c, *(te.cast(te.cast(at, "i64"), "index") for at in (row, column))] for column in ends[1]]
                for row in ends[0]
            ]
            if mode == "bilinear":
                (top, bottom), (share_y, share_x) = found, (position - te.floor(position) for position in positions)
                over, under = (left + (right - left) * share_x for left, right in (top, bottom))
                value = over + (under - over) * share_y
            else:
                value = found[0][0]
            return te.select(is_inside, value, te.const(outside, x.dtype))

        return te.compute((regions.shape[0], x.shape[1], *sizes), element, name="crop_and_resize")

    what = f"'{node.op_type}' batch_indices"
    images = indices_within(node.bb, node[2], [node.shape()[0]], what, "the images", from_back=False)
    return node.te(kernel, node[0], node[1], images, name="crop_and_resize")


def _position(at: te.Expr, size: Dim, region: tuple[te.Expr, te.Expr], length: Dim) -> tuple[te.Expr, te.Expr]:
    """Where an element of the result is along an axis of the image, and whether that is inside of it."""
    first, last = region
    end = te.cast(te.cast(te.cast(length, "index") - 1, "i64"), "f32")
    steps = te.cast(te.cast(te.cast(size, "index") - 1, "i64"), "f32")
    step = (last - first) * end / te.maximum(steps, te.const(1, "f32"))
    corner = first * end + te.cast(te.cast(at, "i64"), "f32") * step
    position = te.select(steps > 0, corner, (first + last) * end * 0.5)
    return position, te.logical_and(position >= 0, position <= end)


@converts("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: Node) -> Result:
    """All slices of a size along a dimension, which become a dimension at the end."""
    axis, size, step = node.axis("dim", -1), node.integer("size"), node.integer("step", 1)
    *before, length = node.shape()[: axis + 1]
    (count,) = node.named(
        [floordiv(length - size, constant(step)) + 1], node.hinted_dims(node.rank() + 1)[axis : axis + 1]
    )

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*at: te.Expr) -> te.Expr:
            index = list(at[:-1])
            index[axis] = at[axis] * step + at[-1]
            return x[tuple(index)]

        return te.compute((*before, count, *x.shape[axis + 1 :], size), element, name="unfold")

    return node.te(kernel, node[0], name="unfold")


@converts("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_with_pads(node: Node) -> Result:
    """A transposed convolution whose padding is an operand."""
    inputs = [node.inputs[0], node.inputs[1], *([node.inputs[3]] if node.has(3) else [])]
    pads = node.ints(2) if node.has(2) else (0,) * (2 * (node.rank() - 2))
    if pads is not None:
        return conv_transpose(replace(node, inputs=inputs, attributes={**node.attributes, "pads": pads}))
    raise Refusal("a padding that is not known while importing is not supported")
