"""Random ONNX nodes that take long to compute, against ONNX Runtime.

Sizes are around those of vectors, tiles and blocks. They, and what is constant, decide which kernel a node gets. ::

    pip install onnxruntime
    python -m tests.fuzz.onnx_nodes [--target x86-64-v3] [--first 0] [--count 300] [KIND ...]

Native code for the target, or for each of `TARGETS` that this machine runs, has to compute what ONNX Runtime or the
reference of the onnx package does, up to the rounding of sums. Where the two differ, either is right. A node that
neither computes is left out.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.fuzz.isolation import outcome
from tests.fuzz.onnx_variants import of_reference
from tests.support.onnx_runtime import of_onnx_runtime
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

NAME = "onnx_nodes"

TARGETS = ("host", "x86-64-v3", "x86-64")
"""With the vectors of this machine, of 256 bits and of 128 bits, the last without multiply-adds."""

OPSET = 23

Array = np.ndarray[Any, Any]

CHANNELS = (1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 20, 31, 32, 33, 40, 63, 64, 65, 100, 128, 130)


class Nodes:
    """A graph that grows by a node at a time, with its inputs and constants."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.feeds: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.outputs: list[str] = []

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def picks(self, count: int, choices: Sequence[int]) -> list[int]:
        """Some of the choices, which may be the same."""
        return [int(self.pick(choices)) for _ in range(count)]

    def floats(self, *shape: int, dtype: str = "float32", scale: float = 1) -> Array:
        """Normally distributed numbers."""
        return np.asarray(self.rng.standard_normal(shape) * scale).astype(dtype)

    def bytes(self, *shape: int, dtype: str = "uint8") -> Array:
        """Any integers of 8 bits."""
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def data(self, array: Array, *, constant: float = 0) -> str:
        """The name of an input, or of a constant with the probability `constant`."""
        where = self.constants if self.chance(constant) else self.feeds
        name = f"{'c' if where is self.constants else 'x'}{len(where)}"
        where[name] = array
        return name

    def weights(self, array: Array) -> str:
        """Mostly a constant."""
        return self.data(array, constant=0.7)

    def fixed(self, values: Sequence[Any], dtype: str = "int64") -> str:
        """A constant."""
        return self.data(np.array(values, dtype), constant=1)

    def add(self, kind: str, inputs: Sequence[str], results: int = 1, /, **attributes: Any) -> str:
        """Appends a node; the name of its first result."""
        names = [f"y{len(self.nodes)}_{number}" for number in range(results)]
        given = {name: value for name, value in attributes.items() if value is not None}
        domain = given.pop("domain", "")
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **given))
        self.outputs = names
        return names[0]

    def follow(self, value: str) -> None:
        """Perhaps appends what a kernel computes with its results."""
        kind = self.pick(["", "", "", "Relu", "Sigmoid", "LeakyRelu", "Add", "Clip", "HardSwish"])
        if kind == "Add":
            self.add("Add", [value, self.data(self.floats(1))])
        elif kind == "Clip":
            self.add("Clip", [value, self.fixed(-0.5, "float32"), self.fixed(1.5, "float32")])
        elif kind:
            self.add(kind, [value])

    def model(self) -> ModelProto:
        """The model; the first dimension of an input may have a name instead of a number."""
        symbolic = self.chance(0.3)
        inputs: list[onnx.ValueInfoProto] = []
        for name, array in self.feeds.items():
            shape: list[Any] = list(array.shape)
            if symbolic and name == "x0" and shape and shape[0] > 1:
                shape[0] = "n"
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in self.outputs]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, initializer=constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


# Windows


def _window(
    g: Nodes, rank: int, *, kernels: Sequence[int] = (1, 2, 3, 3, 4, 5, 7), dilations: bool = True
) -> dict[str, Any]:
    """Attributes of a window, and the `sizes` of an image in which there is room for it."""
    kernel, strides = g.picks(rank, kernels), g.picks(rank, (1, 1, 1, 2, 3))
    dilation = g.picks(rank, (1, 1, 2, 3)) if dilations and g.chance(0.3) else [1] * rank
    reach = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]
    made: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if dilation != [1] * rank:
        made["dilations"] = dilation
    if g.chance(0.25):
        made["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        low, high = ([int(g.rng.integers(0, each)) for each in kernel] for _ in range(2))
        made["pads"] = (low if g.chance(0.5) else [0] * rank) + (high if g.chance(0.5) else low)
    made["sizes"] = [far + g.pick((0, 1, 2, 3, 5, 8, 13, 16, 29)) for far in reach]
    return made


def _rank(g: Nodes) -> int:
    return g.pick((1, 2, 2, 2, 2, 3))


def convolution(g: Nodes) -> None:
    """Of any rank and groups."""
    rank = _rank(g)
    window = _window(g, rank, kernels=(1, 1, 2, 3, 3, 5, 7) if rank < 3 else (1, 2, 3))
    groups, per_group, filters = g.pick(
        [
            (1, g.pick(CHANNELS), g.pick(CHANNELS)),
            (1, g.pick(CHANNELS), g.pick(CHANNELS)),
            (g.pick(CHANNELS), 1, 1),
            (g.pick((2, 3, 4, 8, 16)), g.pick((1, 2, 4, 8)), g.pick((1, 2, 3, 4, 8))),
        ]
    )
    sizes = window.pop("sizes")
    x = g.data(g.floats(g.pick((1, 1, 2, 3)), groups * per_group, *sizes))
    scale = (per_group * np.prod(window["kernel_shape"])) ** -0.5
    w = g.weights(g.floats(groups * filters, per_group, *window["kernel_shape"], scale=scale))
    bias = [g.weights(g.floats(groups * filters))] if g.chance(0.5) else []
    g.follow(g.add("Conv", [x, w, *bias], group=groups, **window))


def transposed_convolution(g: Nodes) -> None:
    """Of any rank and groups. Not with `SAME` padding where windows are apart, of which there are two readings."""
    rank = _rank(g)
    window = _window(g, rank, kernels=(1, 2, 3, 4, 5) if rank < 3 else (1, 2, 3))
    groups = g.pick((1, 1, 1, 2, 4))
    channels, filters = groups * g.pick((1, 2, 3, 8, 16, 17)), g.pick((1, 2, 3, 8, 16, 17))
    strides, kernel = window["strides"], window["kernel_shape"]
    if any(size < stride for size, stride in zip(kernel, strides, strict=True)) or "dilations" in window:
        window.pop("auto_pad", None)
    if g.chance(0.3):
        window["output_padding"] = [int(g.rng.integers(0, stride)) for stride in strides]
    sizes = [min(each, 12) for each in window.pop("sizes")]
    x = g.data(g.floats(g.pick((1, 1, 2)), channels, *sizes))
    w = g.weights(g.floats(channels, filters, *kernel, scale=(channels * np.prod(kernel)) ** -0.5))
    bias = [g.weights(g.floats(groups * filters))] if g.chance(0.5) else []
    g.follow(g.add("ConvTranspose", [x, w, *bias], group=groups, **window))


def pooling(g: Nodes) -> None:
    """Maxima, with their indices, means and norms."""
    kind, rank = g.pick(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"]), _rank(g)
    window = _window(g, rank, kernels=(1, 2, 3, 3, 4, 5))
    x = g.data(g.floats(g.pick((1, 2)), g.pick(CHANNELS), *window.pop("sizes")))
    if kind.startswith("Global"):
        g.add(kind, [x])
        return
    window["ceil_mode"] = int(g.chance(0.3))
    if str(window.get("auto_pad", "")).startswith("SAME"):
        window.pop("dilations", None)  # ONNX Runtime pads as if there were none
    if kind == "AveragePool":
        window["count_include_pad"] = int(g.chance(0.5))
    g.add(kind, [x], 2 if kind == "MaxPool" and g.chance(0.4) else 1, **window)


def resizing(g: Nodes) -> None:
    """By sizes or scales. Not `align_corners` with scales, of which there are two readings."""
    mode = g.pick(["nearest", "linear", "linear", "cubic"])
    rank = 2 if mode == "cubic" else g.pick((1, 2, 2, 3))  # other cubic ones only the reference computes, and otherwise
    shape = [g.pick((1, 2)), g.pick((1, 3, 8, 17)), *g.picks(rank, (1, 2, 3, 5, 8, 13, 20))]
    attributes: dict[str, Any] = {"mode": mode}
    by_size = g.chance(0.6)
    attributes["coordinate_transformation_mode"] = g.pick(
        ["half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", *(["align_corners"] * by_size)]
    )
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    elif mode == "cubic":
        attributes["cubic_coeff_a"] = g.pick([-0.75, -0.5])
        attributes["exclude_outside"] = int(g.chance(0.3))
    x = g.data(g.floats(*shape))
    if by_size:
        sizes = [*shape[:2], *g.picks(rank, (1, 2, 3, 7, 8, 16, 17, 30))]
        g.add("Resize", [x, "", "", g.fixed(sizes)], **attributes)
    else:
        scales = [1.0, 1.0, *(g.pick((0.5, 1.0, 1.5, 2.0, 3.0)) for _ in range(rank))]
        g.add("Resize", [x, "", g.fixed(scales, "float32")], **attributes)


# Products


def gemm(g: Nodes) -> None:
    """With every kind of summand."""
    m, n, k = g.pick(LENGTHS), g.pick(LENGTHS), g.pick((*LENGTHS, 200, 300, 513))
    dtype = g.pick(["float32", "float32", "float32", "float64", "float16"])
    turned_a, turned_b = g.chance(0.3), g.chance(0.4)
    a = g.data(g.floats(*((k, m) if turned_a else (m, k)), dtype=dtype))
    b = g.weights(g.floats(*((n, k) if turned_b else (k, n)), dtype=dtype, scale=k**-0.5))
    inputs = [a, b]
    if g.chance(0.6):
        inputs.append(g.weights(g.floats(*g.pick([(m, n), (n,), (1, n), (m, 1), (1,), ()]), dtype=dtype)))
    g.add(
        "Gemm", inputs, transA=int(turned_a), transB=int(turned_b), alpha=g.pick([1.0, 0.5]), beta=g.pick([1.0, 0.25])
    )
    if dtype == "float32":
        g.follow(g.outputs[0])


def product(g: Nodes) -> None:
    """With batches that broadcast, and vectors."""
    m, n, k = g.pick(LENGTHS), g.pick(LENGTHS), g.pick((*LENGTHS, 257))
    dtype = g.pick(["float32", "float32", "float32", "float64", "float16", "int32"])
    batch = g.picks(g.pick((0, 0, 1, 1, 2)), (1, 2, 3))

    def operand(rows: int, columns: int, *, first: bool) -> tuple[int, ...]:
        own = [1 if g.chance(0.3) else each for each in batch][int(g.chance(0.3)) if batch else 0 :]
        vector = (columns,) if first else (rows,)
        return vector if g.chance(0.1) else (*own, rows, columns)

    def values(shape: tuple[int, ...], scale: float) -> Array:
        return (
            g.rng.integers(-9, 9, shape).astype(dtype)
            if dtype == "int32"
            else g.floats(*shape, dtype=dtype, scale=scale)
        )

    a = g.data(values(operand(m, k, first=True), 1))
    b = g.weights(values(operand(k, n, first=False), k**-0.5))
    result = g.add("MatMul", [a, b])
    if dtype == "float32":
        g.follow(result)


def sum_of_products(g: Nodes) -> None:
    """A random equation of `Einsum`, of one to three operands."""
    letters = "abcdef"
    size = {letter: g.pick((1, 2, 3, 5, 8, 16, 17)) for letter in letters}
    terms = ["".join(g.rng.permutation(list(letters))[: g.pick((1, 2, 3, 4))]) for _ in range(g.pick((1, 2, 2, 2, 3)))]
    used = sorted(set("".join(terms)))
    kept = "".join(g.rng.permutation(used)[: int(g.rng.integers(0, min(len(used), 4) + 1))])
    operands = [g.data(g.floats(*(size[each] for each in term)), constant=0.3) for term in terms]
    g.add("Einsum", operands, equation=f"{','.join(terms)}->{kept}")


# Sequences


def recurrent(g: Nodes) -> None:
    """Layers of either direction, with some of the optional inputs."""
    kind = g.pick(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    length, batch, features, hidden = (
        g.pick((1, 2, 5)),
        g.pick((1, 2, 3)),
        g.pick((1, 3, 8, 17)),
        g.pick((1, 4, 8, 16, 19)),
    )
    direction = g.pick(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    scale = hidden**-0.5
    inputs = [
        g.data(g.floats(length, batch, features)),
        g.weights(g.floats(directions, gates * hidden, features, scale=scale)),
        g.weights(g.floats(directions, gates * hidden, hidden, scale=scale)),
        g.weights(g.floats(directions, 2 * gates * hidden)) if g.chance(0.6) else "",
        g.data(g.rng.integers(1, length + 1, batch).astype(np.int32)) if g.chance(0.3) else "",
        g.data(g.floats(directions, batch, hidden)) if g.chance(0.4) else "",
    ]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if kind == "LSTM":
        inputs.append(g.data(g.floats(directions, batch, hidden)) if g.chance(0.4) else "")
        inputs.append(g.weights(g.floats(directions, 3 * hidden)) if g.chance(0.2) else "")
    if kind == "GRU":
        attributes["linear_before_reset"] = int(g.chance(0.5))
    if g.chance(0.2):
        attributes["clip"] = 1.5
    while not inputs[-1]:
        inputs.pop()
    g.add(kind, inputs, 3 if kind == "LSTM" else 2, **attributes)


def attention(g: Nodes) -> None:
    """With fewer heads of keys than of queries, masks, and keys and values of earlier calls."""
    batch, heads, group = g.pick((1, 2)), g.pick((1, 2, 4)), g.pick((1, 1, 2))
    queries, keys = g.pick((1, 3, 8, 17, 40)), g.pick((1, 3, 8, 17, 40))
    size, values = g.pick((4, 8, 16, 24, 33)), g.pick((4, 8, 16, 24, 33))
    flat = g.chance(0.3)

    def tensor(count: int, length: int, width: int) -> str:
        shape = (batch, length, count * width) if flat else (batch, count, length, width)
        return g.data(g.floats(*shape))

    inputs = [tensor(heads * group, queries, size), tensor(heads, keys, size), tensor(heads, keys, values)]
    attributes: dict[str, Any] = {"q_num_heads": heads * group, "kv_num_heads": heads} if flat else {}
    past = g.pick((0, 0, 5))
    shape = g.pick(
        [None, (queries, keys + past), (batch, 1, queries, keys + past), (1, heads * group, queries, keys + past)]
    )
    if shape is None:
        inputs.append("")
    elif g.chance(0.5):
        mask = g.rng.random(shape) < 0.7
        mask[..., 0] = True
        inputs.append(g.data(mask))
    else:
        inputs.append(g.data(g.floats(*shape)))
    if past:
        inputs += [g.data(g.floats(batch, heads, past, size)), g.data(g.floats(batch, heads, past, values))]
    while not inputs[-1]:
        inputs.pop()
    attributes |= {"is_causal": int(g.chance(0.4) and shape is None)}
    if g.chance(0.2):
        attributes["softcap"] = 5.0
    if g.chance(0.3):
        attributes["scale"] = 0.3
    g.add("Attention", inputs, 3 if past else 1, **attributes)


# Rows


def normalisation(g: Nodes) -> None:
    """Of rows, groups, channels and batches."""
    kind = g.pick(
        [
            *("LayerNormalization", "RMSNormalization", "BatchNormalization", "InstanceNormalization"),
            *("GroupNormalization", "LpNormalization", "LRN", "MeanVarianceNormalization", "Softmax", "LogSoftmax"),
        ]
    )
    rank = g.pick((1, 2, 2))
    groups = g.pick((1, 2, 4))
    channels = groups * g.pick((1, 3, 4, 8, 9)) if kind == "GroupNormalization" else g.pick(CHANNELS)
    shape = [g.pick((1, 2, 3)), channels, *g.picks(rank, LENGTHS[:-3] if rank == 1 else (1, 2, 5, 8, 13))]
    if kind == "MeanVarianceNormalization":
        shape = [*shape[:2], 5, 7]
    x = g.data(g.floats(*shape) + np.float32(g.pick([0, 0, 3])))
    if kind in ("LayerNormalization", "RMSNormalization"):
        axis = int(g.rng.integers(1, len(shape)))
        parameters = [g.weights(g.floats(*shape[axis:]))]
        if kind[0] == "L" and g.chance(0.7):
            parameters.append(g.weights(g.floats(*shape[axis:])))
        g.add(kind, [x, *parameters], axis=axis, epsilon=1e-5)
    elif kind in ("InstanceNormalization", "GroupNormalization"):
        given = {"num_groups": groups} if kind[0] == "G" else {}
        g.add(kind, [x, g.weights(g.floats(channels)), g.weights(g.floats(channels))], epsilon=1e-5, **given)
    elif kind == "BatchNormalization":
        parameters = [g.weights(g.floats(channels)) for _ in range(3)]
        g.follow(g.add(kind, [x, *parameters, g.weights(np.abs(g.floats(channels)) + np.float32(0.5))]))
    elif kind == "LRN":
        g.add(kind, [x], size=g.pick((1, 3, 5)), alpha=0.01)
    elif kind == "LpNormalization":
        g.add(kind, [x], axis=int(g.rng.integers(0, len(shape))), p=g.pick((1, 2)))
    elif kind == "MeanVarianceNormalization":
        g.add(kind, [x])
    else:
        g.add(kind, [x], axis=int(g.rng.integers(0, len(shape))))


def reduction(g: Nodes) -> None:
    """Along some axes, greatest elements and running sums."""
    shape = g.picks(g.pick((1, 2, 3, 4)), (1, 2, 3, 5, 8, 16, 17, 33))
    kind = g.pick(["Sum", "Mean", "Max", "Min", "SumSquare", "L1", "L2", "LogSumExp", "Prod", "Arg", "TopK", "CumSum"])
    axis = int(g.rng.integers(0, len(shape)))
    dtype = g.pick(["float32", "float32", "float64", "int32", "int64"])
    values = g.floats(*shape).astype(dtype) if dtype[0] == "f" else g.rng.integers(-9, 9, shape).astype(dtype)
    if kind == "Prod":
        values = np.where(values == 0, 1, np.sign(values)).astype(dtype)
    if kind in ("L2", "LogSumExp", "Mean") and dtype[0] == "i":
        values = values.astype("float32")
    x = g.data(values)
    if kind == "Arg":
        g.add(
            g.pick(["ArgMax", "ArgMin"]),
            [x],
            axis=axis,
            keepdims=int(g.chance(0.5)),
            select_last_index=int(g.chance(0.5)),
        )
    elif kind == "TopK":
        count = int(g.rng.integers(1, shape[axis] + 1))
        g.add("TopK", [x, g.fixed([count])], 2, axis=axis, largest=int(g.chance(0.7)))
    elif kind == "CumSum":
        g.add("CumSum", [x, g.fixed(axis)], exclusive=int(g.chance(0.3)), reverse=int(g.chance(0.3)))
    else:
        axes = sorted(g.rng.permutation(len(shape))[: g.pick((1, 1, 2, len(shape)))].tolist())
        g.add(f"Reduce{kind}", [x, g.fixed(axes)], keepdims=int(g.chance(0.5)))


# Bytes


def _zero(g: Nodes, dtype: str, *shape: int) -> str:
    return g.fixed(np.zeros(shape) if g.chance(0.3) else g.bytes(*shape, dtype=dtype), dtype)


def quantised_convolution(g: Nodes) -> None:
    """Of bytes to bytes, to integers, or between quantisation and its inverse."""
    rank = g.pick((1, 2, 2, 2))
    window = _window(g, rank, kernels=(1, 1, 3, 3, 5))
    groups, per_group, filters = g.pick(
        [
            (1, g.pick(CHANNELS), g.pick(CHANNELS)),
            (1, 4 * g.pick((1, 4, 8)), g.pick((8, 16, 32))),
            (g.pick(CHANNELS), 1, 1),
        ]
    )
    dtype, weight_dtype = g.pick([("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
    x = g.data(g.bytes(g.pick((1, 2)), groups * per_group, *window.pop("sizes"), dtype=dtype))
    w = g.weights(g.bytes(groups * filters, per_group, *window["kernel_shape"], dtype=weight_dtype))
    window["group"] = groups
    taps = per_group * int(np.prod(window["kernel_shape"]))
    by_channel = g.chance(0.5)
    count = (groups * filters,) if by_channel else ()
    scale = g.fixed(np.full(count, 0.01) * (1 + g.rng.random(count)), "float32")
    zero = _zero(g, weight_dtype, *count) if weight_dtype == "uint8" else g.fixed(np.zeros(count), weight_dtype)
    kind = g.pick(["ConvInteger", "QLinearConv", "QDQ"])
    if kind == "ConvInteger":
        g.add(kind, [x, w, _zero(g, dtype), *([zero] if g.chance(0.5) and not by_channel else [])], **window)
        return
    scales = g.fixed(0.02, "float32"), g.fixed(0.02 * taps**0.5, "float32")
    zero_x, zero_y = _zero(g, dtype), _zero(g, dtype)
    bias = g.fixed(g.rng.integers(-1000, 1000, groups * filters), "int32") if g.chance(0.5) else None
    if kind == "QLinearConv":
        g.add(kind, [x, scales[0], zero_x, w, scale, zero, scales[1], zero_y, *([bias] if bias else [])], **window)
        return
    real = g.add("DequantizeLinear", [x, scales[0], zero_x])
    weights = g.add("DequantizeLinear", [w, scale, zero], axis=0)
    result = g.add("Conv", [real, weights], **window)
    if g.chance(0.4):
        result = g.add("Relu", [result])
    g.add("QuantizeLinear", [result, scales[1], zero_y])


def quantised_product(g: Nodes) -> None:
    """Of bytes to integers or to bytes."""
    m, n, k = g.pick(LENGTHS), g.pick(LENGTHS), g.pick(LENGTHS)
    dtype, weight_dtype = g.pick([("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
    batch = g.pick([(), (), (2,)])
    a, b = g.data(g.bytes(*batch, m, k, dtype=dtype)), g.weights(g.bytes(k, n, dtype=weight_dtype))
    kind = g.pick(["MatMulInteger", "MatMulInteger", "QLinearMatMul", "scaled"])
    zero_a = _zero(g, dtype)
    zero_b = _zero(g, weight_dtype) if weight_dtype == "uint8" or g.chance(0.2) else g.fixed(np.zeros(()), weight_dtype)
    if kind == "QLinearMatMul":
        scales = [g.fixed(value, "float32") for value in (0.02, 0.01, 0.01 * k**0.5)]
        g.add(kind, [a, scales[0], zero_a, b, scales[1], zero_b, scales[2], _zero(g, dtype)])
        return
    result = g.add("MatMulInteger", [a, b, *([zero_a, zero_b] if g.chance(0.7) else [])])
    if kind == "scaled":
        real = g.add("Cast", [result], to=TensorProto.FLOAT)
        g.add("Mul", [real, g.weights(np.abs(g.floats(n)) * np.float32(0.01))])


KINDS: Mapping[str, Callable[[Nodes], None]] = {
    "convolution": convolution,
    "transposed_convolution": transposed_convolution,
    "pooling": pooling,
    "resizing": resizing,
    "gemm": gemm,
    "product": product,
    "sum_of_products": sum_of_products,
    "recurrent": recurrent,
    "attention": attention,
    "normalisation": normalisation,
    "reduction": reduction,
    "quantised_convolution": quantised_convolution,
    "quantised_product": quantised_product,
}


def made(seed: int, kinds: Sequence[str] = tuple(KINDS)) -> Nodes:
    """The graph of a seed."""
    g = Nodes(seed)
    KINDS[kinds[seed % len(kinds)]](g)
    return g


TOLERANCES = {"float64": 1e-9, "float16": 1e-2}


def same(ours: Array, theirs: Array) -> bool:
    """Whether results are equal up to the rounding of sums as large as the largest element. A byte that is a quotient
    may be the next one.
    """
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    if ours.dtype.kind in "iub":
        most = 1 if ours.dtype.itemsize == 1 and ours.dtype.kind != "b" else 0
        return bool((np.abs(ours.astype(np.int64) - theirs.astype(np.int64)) <= most).all())
    tolerance = TOLERANCES.get(ours.dtype.name, 1e-4)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, tolerance, tolerance * max(scale, 1e-3), equal_nan=True)


def checked(seed: int, targets: Sequence[str] = TARGETS, kinds: Sequence[str] = tuple(KINDS)) -> str:
    """What becomes of the graph of a seed; `AssertionError` if it is wrong."""
    g = made(seed, kinds)
    proto = g.model()
    said = f"{[str(node.op_type) for node in g.nodes]} of { {name: each.shape for name, each in g.feeds.items()} }"
    answers = {"ONNX Runtime": of_onnx_runtime(proto, g.feeds), "reference": of_reference(proto, g.feeds)}
    known = {name: answer for name, answer in answers.items() if answer is not None}
    if not known:
        return "left out"
    try:
        module = import_model(proto)
    except OnnxImportError as error:
        return f"refused: {' '.join(str(error).split())[:200]}"
    for target in targets:
        found: Any = VirtualMachine(build(module, target=target))["main"](*g.feeds.values())
        results = list(found) if not hasattr(found, "shape") else [found]
        arrays = [np.asarray(to_numpy(each)) for each in results]
        if not any(len(arrays) == len(answer) and all(map(same, arrays, answer)) for answer in known.values()):
            wrong = {
                name: [_difference(*pair) for pair in zip(arrays, answer, strict=False)]
                for name, answer in known.items()
            }
            raise AssertionError(f"WRONG for {target}: {said}: {wrong}")
    return "right"


def _difference(ours: Array, theirs: Array) -> str:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{list(ours.shape)} for {theirs.dtype}{list(theirs.shape)}"
    apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    return f"{np.nanmax(apart, initial=0):.3g} of {np.abs(theirs.astype(np.float64)).max(initial=0):.3g} apart"


def run(seed: int) -> None:
    """A graph of the seed, for every target."""
    checked(seed)


def main(kinds: Sequence[str], targets: Sequence[str], first: int, count: int) -> int:
    """Tries some seeds; 1 if one is wrong."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):

        def one(seed: int = seed) -> None:
            text = checked(seed, targets, kinds)
            if text != "right":
                raise AssertionError(text)

        text = (outcome(one, 120) or "right").removeprefix("AssertionError: ")
        kind = "left out" if text.startswith("left out") else text.partition(":")[0]
        seen[kind if kind in ("right", "left out", "refused") else "wrong"] += 1
        if kind not in ("right", "left out"):
            print(f"{seed} {kinds[seed % len(kinds)]}: {text[:700]}", flush=True)
    print(*(f"{kind}: {times}" for kind, times in seen.most_common()), sep=", ")
    return int(bool(seen["wrong"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--target", action="append", help="any number of them; otherwise all that this machine runs")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    sys.exit(main(args.kinds or tuple(KINDS), args.target or TARGETS, args.first, args.count))
