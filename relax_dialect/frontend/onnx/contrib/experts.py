"""Mixtures of experts of ONNX Runtime: each token is multiplied with the weights of the few experts it is sent to.

Kernels read the rows of the chosen experts where they are in the stack of weights, and scale integers as they are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.attention import dims_of
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import product

BITS = (2, 3, 4, 8)
LEAST_SHARE = 1e-20
"""No share of an expert is less before its logarithm is taken."""


@dataclass(frozen=True)
class _Layer:
    """Where a node has a layer of its experts: weights by expert, output and input, and what belongs to these."""

    weights: int
    bias: int
    scale: int | None = None
    zero: int | None = None
    bits: int = 0
    """Of the integers that weights are; 0 if they are numbers."""


@converts("MoE", domain=MICROSOFT)
def mixture_of_experts(node: Node) -> Result:
    """The sum of what a few experts make of each token, by their shares."""
    return _mixture(node, [_Layer(2, 3), _Layer(4, 5), _Layer(6, 7)])


@converts("QMoE", domain=MICROSOFT)
def quantized_mixture_of_experts(node: Node) -> Result:
    """The same with weights that are integers of a few bits, with a scale for each output or block of inputs."""
    kind, prepacked = node.text("quant_type", "int"), node.integer("weights_prepacked", -1)
    if kind != "int":
        raise Refusal(f"weights of the kind {kind} are not supported")
    if prepacked == 1:
        raise Refusal("weights in the order of one execution provider are not supported")
    default = node.integer("expert_weight_bits", 4)
    layers: list[_Layer] = []
    for at in range(3):
        bits = node.integer(f"fc{at + 1}_expert_weight_bits", default)
        if bits not in BITS:
            raise Refusal(f"weights of {bits} bits are not supported")
        layers.append(_Layer(2 + 3 * at, 4 + 3 * at, 3 + 3 * at, 11 + at, bits))
    return _mixture(node, layers, mixing=14)


def _mixture(node: Node, layers: Sequence[_Layer], mixing: int | None = None) -> Expr:
    """The mixture; the shares of experts are those of the operand at `mixing`, if it is there."""
    if node.integer("use_sparse_mixer"):
        raise Refusal("sparse mixers are not supported")
    tokens, hidden = node.shape(1)[0], node.shape()[-1]
    x = _wide(node[0])
    if node.rank() != 2:
        flat = op.reshape(x, (product(node.shape()[:-1]), hidden))
        x = node.bb.match_cast(flat, TensorType([tokens, hidden], f32))
    logits = _wide(node[1])
    shares, chosen = op.topk(op.nn.softmax(logits, 1), node.integer("k", 1), 1, dtype="i64")
    if mixing is not None and node.has(mixing):
        shares = op.gather_elements(_wide(node[mixing]), chosen, 1)
    if node.integer("normalize_routing_weights"):
        shares = op.divide(shares, op.sum(shares, [1], keepdims=True))
    inner = _activated(node, layers, x, chosen)
    made = op.sum(op.multiply(_product(node, layers[1], inner, chosen), op.expand_dims(shares, [2])), [1])
    result = made if node.rank() == 2 else op.reshape(made, node.shape())
    return op.astype(result, node.dtype())


def _wide(x: Expr) -> Expr:
    return x if x.dtype == f32 else op.astype(x, f32)


def _activated(node: Node, layers: Sequence[_Layer], x: Expr, chosen: Expr) -> Expr:
    """The activation of the first layer, by token, choice and unit, times the third one if there is one."""
    kind, fusion = node.text("activation_type", "relu"), node.integer("swiglu_fusion")
    made = _product(node, layers[0], x, chosen)
    has_third = node.has(layers[2].weights)
    if kind not in ("swiglu", "geglu"):
        if kind == "relu":
            activated = op.nn.relu(made)
        elif kind == "relu2":
            activated = op.square(op.nn.relu(made))
        elif kind == "gelu":
            activated = op.nn.gelu(made)
        elif kind == "silu":
            activated = op.nn.silu(made)
        elif kind == "identity":
            activated = made
        else:
            raise Refusal(f"the activation {kind} is not supported")
        return op.multiply(activated, _product(node, layers[2], x, chosen)) if has_third else activated
    if fusion == 0 and has_third:
        return _gated(node, kind, made, _product(node, layers[2], x, chosen))
    if fusion not in (1, 2) or has_third:
        raise Refusal(f"{kind} needs either a third layer or a first one that has its units too")
    tokens, choices, width = dims_of(made, 3)
    units = fixed([width], "the number of units")[0] // 2
    order = (tokens, choices, units, 2) if fusion == 1 else (tokens, choices, 2, units)
    axis = 3 if fusion == 1 else 2
    gate, up = (op.squeeze(part, [axis]) for part in op.split(op.reshape(made, order), sections=2, axis=axis))
    return _gated(node, kind, gate, up)


def _gated(node: Node, kind: str, gate: Expr, up: Expr) -> Expr:
    """Units times the activation of their gates, both bounded if there is a limit."""
    if kind == "geglu":
        return op.multiply(op.nn.gelu_tanh(gate), up)
    limit, late = node.number("swiglu_limit", math.inf), node.integer("swiglu_limit_after_activation")
    if limit != math.inf:
        up = op.clip(up, -limit, limit)
        gate = gate if late else op.minimum(gate, node.const(limit, f32))
    alpha, beta = (
        node.const(node.number(f"activation_{name}", at), f32) for at, name in ((1.0, "alpha"), (0.0, "beta"))
    )
    activated = op.multiply(gate, op.sigmoid(op.multiply(gate, alpha)))
    if limit != math.inf and late:
        activated = op.minimum(activated, node.const(limit, f32))
    return op.multiply(activated, op.add(up, beta))


def _product(node: Node, layer: _Layer, x: Expr, chosen: Expr) -> Expr:
    """A layer of the experts that are chosen, by token, choice and output; data by token, and perhaps choice."""
    (outputs,) = fixed(node.shape(layer.weights)[1:2], "the number of outputs")
    (depth,) = fixed(dims_of(x, x.ndim or 0)[-1:], "the number of inputs")
    own = [node[layer.weights]]
    if layer.scale is not None:
        own.append(node[layer.scale])
        own += [node[layer.zero]] if layer.zero is not None and node.has(layer.zero) else []

    def kernel(x: te.Tensor, chosen: te.Tensor, *own: te.Tensor) -> te.Tensor:
        k = te.reduce_axis(depth, "k")

        def element(t: te.Expr, c: te.Expr, j: te.Expr) -> te.Expr:
            expert = te.cast(chosen[t, c], "index")
            data = x[t, k] if len(x.shape) == 2 else x[t, c, k]
            return te.sum(data * _weight(layer.bits, own, (expert, j, k), depth), k)

        return te.compute((*chosen.shape, outputs), element, name="experts")

    made = node.te(kernel, x, chosen, *own, name="experts")
    return op.add(made, op.take(_wide(node[layer.bias]), chosen, 0)) if node.has(layer.bias) else made


def _weight(bits: int, own: Sequence[te.Tensor], at: tuple[te.Expr, te.Expr, te.Expr], depth: int) -> te.Expr:
    """The weight for an expert, an output and one of `depth` inputs."""
    if not bits:
        return te.cast(own[0][at], "f32")
    expert, output, position = at
    scale = own[1]
    integer = _integer(own[0], (expert, output), position, bits)
    zero = te.const(1 << (bits - 1), "i32")
    if len(scale.shape) == 2:
        if len(own) > 2:
            zero = _integer(own[2], (expert,), output, bits)
        factor = scale[expert, output]
    else:
        block = position // (depth // fixed(scale.shape[2:], "the number of blocks")[0])
        if len(own) > 2:
            zero = _integer(own[2], (expert, output), block, bits)
        factor = scale[expert, output, block]
    return te.cast(integer - zero, "f32") * te.cast(factor, "f32")


def _integer(packed: te.Tensor, row: Sequence[te.Expr], position: te.Expr, bits: int) -> te.Expr:
    """One of the integers in the bytes of a row, the lowest bits first."""
    first = position * bits
    low = te.cast(packed[(*row, first // 8)], "i32")
    shift = te.cast(first % 8, "i32")
    if 8 % bits == 0:
        return low if bits == 8 else (low >> shift) & ((1 << bits) - 1)
    # The next byte has the rest, if this is not the last one.
    last = fixed(packed.shape[-1:], "the number of bytes")[0] - 1
    high = te.cast(packed[(*row, te.minimum(first // 8 + 1, last))], "i32")
    return ((low | (high << 8)) >> shift) & ((1 << bits) - 1)


@converts("MoEGroupRouter", domain=MICROSOFT)
def group_router(node: Node) -> Result:
    """The logarithms of the sigmoids of logits, where an expert is among the best of the best groups; or the sigmoids
    with the bias by which experts are compared, and without it.
    """
    if node.has(2):
        raise Refusal("logits that are computed from data are not supported")
    (experts,) = fixed(node.shape()[-1:], "the number of experts")
    tokens = product(node.shape()[:-1])
    sigmoids = op.sigmoid(_wide(op.reshape(node[0], (tokens, experts))))
    compared = op.add(sigmoids, node[1])
    if not node.outputs[0]:
        return [None, compared, sigmoids]
    groups = node.integer("n_group", 1)
    size = experts // groups
    best, _ = op.topk(op.reshape(compared, (tokens, groups, size)), min(node.integer("group_topk", 2), size), 2)
    _, chosen = op.topk(op.sum(best, [2]), node.integer("topk_group", 1), 1, dtype="i64")
    is_in_group = op.repeat(_is_listed(node, chosen, groups), size, 1)
    candidates = op.where(is_in_group, compared, node.const(-math.inf, f32))
    _, chosen = op.topk(candidates, node.integer("top_k"), 1, dtype="i64")
    shares = op.log(op.maximum(sigmoids, node.const(LEAST_SHARE, f32)))
    other = node.const(node.number("router_sentinel", -10000.0), f32)
    return op.astype(op.where(_is_listed(node, chosen, experts), shares, other), node.dtype())


def _is_listed(node: Node, listed: Expr, count: int) -> Expr:
    """By row, which of so many numbers are in the list of the row."""
    numbers = node.const(np.arange(count)[:, None], i64)
    found = op.astype(op.equal(op.expand_dims(listed, [1]), numbers), "i32")
    return op.astype(op.max(found, [2]), "bool")
