"""Normalisation, recurrent layers, and layers that do little in inference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import f32, f64, i1
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.creation import seed_of
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.quantization import converted
from relax_dialect.frontend.onnx.values import Refusal, Value
from relax_dialect.ops.recurrent import ACTIVATIONS, CELLS, DIRECTIONS
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim


@converts("BatchNormalization")
def batch_norm(node: Node) -> Result:
    """Channels scaled by statistics that are given, or in training by those of the batch. Before version 9 there was
    also a normalisation of each element of an item.
    """
    if node.integer("training_mode"):
        # With the statistics of the batch, and those that are kept moved towards them.
        axes = [0, *range(2, node.rank())]
        wide = f64 if f64 in (node.dtype(), node.dtype(3)) else f32
        exact = [function(op.astype(node[0], wide), axes) for function in (op.mean, op.variance)]
        current = [op.astype(each, node.dtype(3)) for each in exact]
        share = node.number("momentum", 0.9)
        moved = [
            op.add(op.multiply(node[index], node.like(share, index)), op.multiply(new, node.like(1 - share, index)))
            for index, new in zip((3, 4), current, strict=True)
        ]
        return [_batch_norm(node, *exact), *moved]
    if any(node.outputs[1:]):
        raise Refusal("outputs of training are asked for without training_mode, which operator sets since 14 have")
    return _batch_norm(node, node[3], node[4])


def _batch_norm(node: Node, mean: Expr, variance: Expr) -> Expr:
    x, scale, bias = node[0], node[1], node[2]
    if len({str(each.dtype) for each in (x, scale, bias, mean, variance)}) > 1:
        scale, bias, mean, variance = (op.astype(each, node.dtype()) for each in (scale, bias, mean, variance))
    if node.rank() == 1 or not node.integer("spatial", 1):
        return _scaled(node, x, (scale, bias, mean, variance))
    return op.nn.batch_norm(x, scale, bias, mean, variance, 1, node.number("epsilon", 1e-5))


def _scaled(node: Node, x: Expr, parameters: tuple[Expr, Expr, Expr, Expr]) -> Expr:
    scale, bias, mean, variance = parameters
    spread = op.sqrt(op.add(variance, node.like(node.number("epsilon", 1e-5))))
    return op.add(op.multiply(op.divide(op.subtract(x, mean), spread), scale), bias)


@converts("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> Result:
    """Less the mean and divided by the deviation, of which 1e-9 is the least.

    The variance is that of differences from the mean: the standard's difference of squares may be negative.
    """
    given = node.integers("axes")
    axes = [0, 2, 3] if given is None else list(given)
    centred = op.subtract(node[0], op.mean(node[0], axes, keepdims=True))
    deviation = op.sqrt(op.mean(op.multiply(centred, centred), axes, keepdims=True))
    return op.divide(centred, op.add(deviation, node.like(1e-9)))


@converts("InstanceNormalization")
def instance_norm(node: Node) -> Result:
    """Each channel of each item normalised by itself."""
    axes = list(range(2, node.rank()))
    return op.nn.instance_norm(node[0], node[1], node[2], 1, axes, node.number("epsilon", 1e-5))


@converts("LayerNormalization")
def layer_norm(node: Node) -> Result:
    """The last axes normalised; scale and bias broadcast, and there may be the mean and the inverse deviation."""
    axis, shape = node.axis(default=-1), node.shape()
    bias = node.optional(2)
    is_plain = node.shape(1) == shape[axis:] and (bias is None or bias.shape == shape[axis:])
    if any(node.outputs[1:]) or str(node.dtype()) not in ("f32", "f64") or not is_plain:
        axes = list(range(axis, len(shape)))
        wide = _wide(node)
        x = node[0] if node.dtype() == wide else op.astype(node[0], wide)
        mean = op.mean(x, axes, keepdims=True)
        around = op.subtract(x, mean)
        variance = op.mean(op.multiply(around, around), axes, keepdims=True)
        inverse = op.rsqrt(op.add(variance, node.const(node.number("epsilon", 1e-5), wide)))
        normal = op.multiply(around, inverse)
        made = op.multiply(normal if node.dtype() == wide else op.astype(normal, node.dtype()), node[1])
        statistics = (mean, inverse) if wide == f32 else (op.astype(mean, f32), op.astype(inverse, f32))
        return [made if bias is None else op.add(made, bias), *statistics]
    shift = op.full(list(shape[axis:]), node.like(0)) if bias is None else bias
    axes = list(range(axis, len(shape)))
    return op.nn.layer_norm(node[0], node[1], shift, axes, node.number("epsilon", 1e-5))


@converts("LpNormalization")
def lp_normalization(node: Node) -> Result:
    """Divided by the norm along an axis; where that is 0, the result is 0."""
    axis, x = node.axis(default=-1), node[0]
    if node.integer("p", 2) not in (1, 2):
        raise Refusal(f"expected p to be 1 or 2, got {node.integer('p', 2)}")
    if node.integer("p", 2) == 1:
        norm = op.sum(op.abs(x), [axis], keepdims=True)
    else:
        norm = op.sqrt(op.sum(op.multiply(x, x), [axis], keepdims=True))
    zero = op.equal(norm, node.like(0))
    return op.divide(x, op.where(zero, node.like(1), norm))


@converts("LRN")
def lrn(node: Node) -> Result:
    """Divided by a power of the squares in neighbouring channels."""
    size, alpha, beta = node.integer("size"), node.number("alpha", 1e-4), node.number("beta", 0.75)
    bias = node.number("bias", 1.0)
    x = node[0]

    def squares(x: te.Tensor) -> te.Tensor:
        r = te.reduce_axis(size, "r")
        channels = x.shape[1]

        def total(n: te.Expr, c: te.Expr, *i: te.Expr) -> te.Expr:
            position = c + r - (size - 1) // 2
            inside = te.logical_and(position >= 0, position < channels)
            element = x[(n, te.maximum(te.minimum(position, channels - 1), 0), *i)]
            return te.sum(te.select(inside, element * element, te.const(0, x.dtype)), r)

        return te.compute(x.shape, total, name="squares")

    wide = _wide(node)
    around = node.te(squares, op.astype(x, wide) if x.dtype != wide else x)
    around = op.add(op.multiply(around, node.const(alpha / size, wide)), node.const(bias, wide))
    spread = op.power(around, node.const(beta, wide))
    return op.divide(x, spread) if x.dtype == wide else op.astype(op.divide(op.astype(x, wide), spread), node.dtype())


def _wide(node: Node) -> Attribute:
    """What sums of narrow floats are computed in."""
    return f64 if node.dtype() == f64 else f32


@converts("Dropout")
def dropout(node: Node) -> Result:
    """The data as they are, unless in training; the mask is true everywhere."""
    training = node.known(2)
    if node.has(2) and training is None:
        # Either, by an operand.
        node.graph.require_control_flow()
        with node.bb.if_(op.reshape(converted(node[2], i1), [])) as branch:
            with branch.then():
                node.bb.yield_(*_training_dropout(node))
            with branch.otherwise():
                node.bb.yield_(node[0], op.full(list(node.shape()), node.bb.const(True)))
        return branch.results
    if training is not None and training.any():
        return _training_dropout(node)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return node.value(0)
    one = node.bb.const(True) if node.version >= 10 else node.like(1)
    return node.value(0), op.full(list(node.shape()), one)


def _training_dropout(node: Node) -> tuple[Expr, Expr]:
    """Zeros at random positions, as many as the ratio says; the others are scaled, so that the mean stays."""
    ratio = op.astype(node[1], node.dtype()) if node.has(1) else node.like(0.5)
    random = op.random.uniform(shape=list(node.shape()), dtype=node.dtype(), **seed_of(node))
    mask, scaled = op.greater_equal(random, ratio), op.divide(node[0], op.subtract(node.like(1), ratio))
    return op.where(mask, scaled, node.like(0)), mask


@converts("DepthToSpace")
def depth_to_space(node: Node) -> Result:
    """Blocks of channels as blocks of rows and columns."""
    (n, c, h, w), size = node.shape(), node.integer("blocksize")
    depth = c // (size * size)
    if node.text("mode", "DCR") == "DCR":
        x = op.permute_dims(op.reshape(node[0], [n, size, size, depth, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        x = op.permute_dims(op.reshape(node[0], [n, depth, size, size, h, w]), [0, 1, 4, 2, 5, 3])
    return op.reshape(x, [n, depth, h * size, w * size])


@converts("SpaceToDepth")
def space_to_depth(node: Node) -> Result:
    """Blocks of rows and columns as blocks of channels."""
    (n, c, h, w), size = node.shape(), node.integer("blocksize")
    x = op.reshape(node[0], [n, c, h // size, size, w // size, size])
    order = [0, 3, 5, 1, 2, 4] if node.text("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return op.reshape(op.permute_dims(x, order), [n, c * size * size, h // size, w // size])


_LAYERS = {"RNN": op.nn.rnn, "GRU": op.nn.gru, "LSTM": op.nn.lstm}


@converts("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> Result:
    """A layer over sequences: all outputs, and the last states."""
    kind = node.op_type.lower()
    batch_first = bool(node.integer("layout"))
    directions, units = node.shape(2)[0], node.shape(2)[2]
    said = node.attributes.get("hidden_size")
    if said is not None and units.constant_value not in (None, said):
        raise Refusal(f"the weights have {units} units, but hidden_size says {said}")
    node = with_batch_of_states(node, batch_first)
    batch = node.shape()[0 if batch_first else 1]
    state = (batch, directions, units) if batch_first else (directions, batch, units)
    optional = [(5, state)] if kind != "lstm" else [(5, state), (6, state), (7, (directions, 3 * units))]
    states = [or_zeros(node, index, shape) for index, shape in optional]
    bias = or_zeros(node, 3, (directions, 2 * CELLS[kind][0] * units))
    return _LAYERS[node.op_type](
        node[0], node[1], node[2], bias, lengths_of(node, batch, batch_first), states, **properties_of(node, kind)
    )


def with_batch_of_states(node: Node, batch_first: bool) -> Node:
    """The node with data of the batch that a state has, or the lengths, if only these say it."""
    at = 0 if batch_first else 1
    sizes = [node.shape(index)[at if index > 4 else 0] for index in (4, 5, 6) if node.has(index)]
    known = next((size for size in sizes if size.is_constant), None)
    if known is None or node.shape()[at].is_constant:
        return node
    wanted = [known if axis == at else dim for axis, dim in enumerate(node.shape())]
    data = Value(node.bb.match_cast(node[0], TensorType(wanted, node.dtype())))
    return replace(node, inputs=[data, *node.inputs[1:]])


def or_zeros(node: Node, index: int, shape: Sequence[Dim]) -> Expr:
    """An operand, or zeros of a shape if it is absent."""
    return node[index] if node.has(index) else op.full(list(shape), node.like(0))


def lengths_of(node: Node, batch: Dim, batch_first: bool) -> Expr:
    """The lengths of the sequences: those given, or all of them whole."""
    if node.has(4):
        return node[4]
    length = node.shape()[1 if batch_first else 0]
    if length.constant_value is not None:
        return op.full([batch], node.bb.const(length.constant_value, "i32"))
    return op.full([batch], op.reshape(op.astype(op.shape_to_tensor([length]), "i32"), []))


def properties_of(node: Node, kind: str) -> dict[str, Any]:
    """The keyword arguments of a layer with the cell `kind`."""
    names = [
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each.decode() if isinstance(each, bytes) else each).lower()
        for each in node.attribute("activations", [])
    ]
    direction = node.text("direction", "forward")
    if direction not in DIRECTIONS:
        raise Refusal(f"the direction {direction!r} is none of {', '.join(DIRECTIONS)}")
    names = names[: len(CELLS[kind][1].split()) * DIRECTIONS[direction]]
    found: dict[str, Any] = {"direction": direction}
    if names:
        found |= {"activations": " ".join(names)}
        found |= _numbers(node, names, "activation_alpha", "alphas", 0)
        found |= _numbers(node, names, "activation_beta", "betas", 1)
    if "clip" in node.attributes:
        found["clip"] = node.number("clip")
    if node.integer("input_forget"):
        found["input_forget"] = True
    if node.integer("linear_before_reset"):
        found["linear_before_reset"] = True
    if node.integer("layout"):
        found["batch_first"] = True
    return found


def _numbers(node: Node, names: Sequence[str], source: str, target: str, which: int) -> dict[str, Any]:
    """Parameters of activations; ONNX lists them for those that have one, in order."""
    given = [float(each) for each in node.attribute(source, [])]
    if not given:
        return {}
    rest, made = iter(given), list[float]()
    for name in names:
        default = ACTIVATIONS.get(name, (0.0, 0.0))[which]
        takes = name in _TAKES[which]
        made.append(next(rest, default) if takes or len(given) == len(names) else default)
    return {target: made}


_TAKES = (
    frozenset({"affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu"}),
    frozenset({"affine", "scaled_tanh", "hard_sigmoid"}),
)
"""The activations that have an alpha, and those that have a beta."""
