"""Random ONNX graphs against the reference of the onnx package, and ONNX Runtime where that is installed.

Graphs are of nodes that the reference computes without an error. Ours has to import them, with the sizes of the input
constant or symbolic, and to give the same dtypes, shapes and numbers in every mode. Where the reference and ONNX
Runtime differ, either is right.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from lowering import build
from relax_dialect.frontend.onnx import import_model
from relax_dialect.interpreter import run as interpret
from tests.support.onnx_runtime import of_onnx_runtime
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

NAME = "onnx_graphs"

OPSET = 21
Array = np.ndarray[Any, Any]
Made = tuple[list[str], list[Array], dict[str, Any]]
"""Names of operands that are there, constants that follow, attributes."""

UNARY = [
    *("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Floor", "Ceil", "Round", "Sign", "Softplus", "Softsign", "Elu", "Exp"),
    *("HardSigmoid", "HardSwish", "LeakyRelu", "Erf", "Mish", "Identity", "Reciprocal", "Sqrt", "Not", "Gelu", "Selu"),
]
BINARY = [
    *("Add", "Sub", "Mul", "Max", "Min", "Greater", "LessOrEqual", "Equal", "And", "Or", "Xor", "PRelu", "Mod", "Div"),
    "Pow",
]
REDUCTIONS = [f"Reduce{kind}" for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")]


class Graph:
    """A graph that grows: its nodes, and the values that the reference has computed."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.values: dict[str, Array] = {}
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}

    def pick(self, wanted: Callable[[Array], bool] = lambda each: True) -> str:
        """A value that fulfils a condition, later ones rather; `IndexError` if there is none."""
        names = [name for name, value in self.values.items() if wanted(value)]
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))] if names else names[0]

    def add(self, kind: str, operands: list[str], constants: list[Array], outputs: int = 1, **attributes: Any) -> None:
        """Appends a node, if the reference computes it and the results are small."""
        names = [f"c{len(self.constants) + at}" for at in range(len(constants))]
        results = [f"v{len(self.values) + at}" for at in range(outputs)]
        node = helper.make_node(kind, [*operands, *names], results, **attributes)
        known = dict(zip(names, constants, strict=True))
        feeds = {name: self.values[name] for name in operands}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = _model([node], feeds, known, results, None)
                shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # types that are not allowed
                found = ReferenceEvaluator(model).run(None, feeds)
        except Exception:
            return
        arrays = [np.asarray(each) for each in found]
        if all(each.size <= 4096 and each.dtype in (np.float32, np.int64, np.bool_) for each in arrays):
            self.nodes.append(node)
            self.constants |= known
            self.values |= dict(zip(results, arrays, strict=True))


def _is(dtype: Any, rank: int = 0) -> Callable[[Array], bool]:
    return lambda each: each.dtype == dtype and each.ndim >= rank


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def unary(graph: Graph) -> None:
    kind = graph.rng.choice(UNARY)
    graph.add(kind, [graph.pick(_is(np.bool_ if kind == "Not" else np.float32))], [])


def binary(graph: Graph) -> None:
    first = graph.pick()
    second = graph.pick(lambda each: each.dtype == graph.values[first].dtype)
    graph.add(graph.rng.choice(BINARY), [first, second], [])


def reduce(graph: Graph) -> None:
    x = graph.pick(_is(np.float32, 1))
    rank = graph.values[x].ndim
    axes = graph.rng.sample(range(-rank, 0), graph.rng.randrange(1, rank + 1))
    keep = graph.rng.randrange(2)
    graph.add(graph.rng.choice(REDUCTIONS), [x], [_ints(*axes)], keepdims=keep)


def arg(graph: Graph) -> None:
    x = graph.pick(_is(np.float32, 1))
    axis = graph.rng.randrange(-graph.values[x].ndim, graph.values[x].ndim)
    options = {"axis": axis, "keepdims": graph.rng.randrange(2), "select_last_index": graph.rng.randrange(2)}
    graph.add(graph.rng.choice(["ArgMax", "ArgMin"]), [x], [], **options)


def along(graph: Graph) -> None:
    x = graph.pick(_is(np.float32, 1))
    axis = graph.rng.randrange(-graph.values[x].ndim, graph.values[x].ndim)
    kind = graph.rng.choice(["Softmax", "LogSoftmax", "Hardmax", "CumSum", "TopK", "LpNormalization"])
    if kind == "CumSum":
        options = {"exclusive": graph.rng.randrange(2), "reverse": graph.rng.randrange(2)}
        graph.add(kind, [x], [np.array(axis, np.int64)], **options)
    elif kind == "TopK":
        count = graph.rng.randrange(graph.values[x].shape[axis] + 1)
        graph.add(kind, [x], [_ints(count)], 2, axis=axis, largest=graph.rng.randrange(2))
    else:
        graph.add(kind, [x], [], axis=axis)


def shape(graph: Graph) -> None:
    x = graph.pick()
    value, rng = graph.values[x], graph.rng
    kind = rng.choice(["Reshape", "Transpose", "Flatten", "Unsqueeze", "Squeeze", "Squeeze", "Expand", "Tile"])
    if kind == "Reshape":
        target = list(value.shape)
        rng.shuffle(target)
        graph.add(kind, [x], [_ints(*rng.choice([target, [-1], [0, -1], [-1, 1], [1, *target]]))])
    elif kind == "Transpose":
        graph.add(kind, [x], [], perm=rng.sample(range(value.ndim), value.ndim))
    elif kind == "Flatten":
        graph.add(kind, [x], [], axis=rng.randrange(-value.ndim, value.ndim + 1))
    elif kind == "Unsqueeze":
        graph.add(kind, [x], [_ints(*rng.sample(range(-value.ndim - 1, value.ndim + 1), 1))])
    elif kind == "Squeeze":
        ones = [axis for axis, size in enumerate(value.shape) if size == 1]
        if ones:
            graph.add(kind, [x], [_ints(*rng.sample(ones, rng.randrange(1, len(ones) + 1)))])
    elif kind == "Expand":
        graph.add(
            kind, [x], [_ints(*([2] if rng.randrange(2) else []), *(rng.choice((1, size)) for size in value.shape))]
        )
    else:
        graph.add(kind, [x], [_ints(*(rng.randrange(3) for _ in value.shape))])


def parts(graph: Graph) -> None:
    x = graph.pick(lambda each: each.ndim > 0)
    value, rng = graph.values[x], graph.rng
    axis = rng.randrange(-value.ndim, value.ndim)
    kind = rng.choice(
        ["Slice", "Slice", "Gather", "GatherElements", "Concat", "Pad", "Split", "Trilu", "ReverseSequence"]
    )
    if kind == "Slice":
        start, end, step = rng.randrange(-5, 6), rng.randrange(-5, 6), rng.choice((1, 1, 2, -1, -2))
        graph.add(kind, [x], [_ints(start), _ints(end), _ints(axis), _ints(step)])
    elif kind == "Gather" and (size := value.shape[axis]):
        places = np.array([rng.randrange(-size, size) for _ in range(rng.randrange(1, 4))])
        graph.add(kind, [x], [places.reshape(rng.choice([(-1,), (1, -1)]))], axis=axis)
    elif kind == "GatherElements" and (size := value.shape[axis]):
        places = np.array([rng.randrange(size) for _ in range(value.size)], np.int64)
        graph.add(kind, [x], [places.reshape(value.shape)], axis=axis)
    elif kind == "Concat":
        graph.add(kind, [x, x] if rng.randrange(2) else [x, graph.pick(lambda e: e.ndim == value.ndim)], [], axis=axis)
    elif kind == "Pad":
        pads = [rng.randrange(-1, 3) for _ in range(2 * value.ndim)]
        graph.add(kind, [x], [_ints(*pads)], mode=rng.choice(["constant", "edge"]))
    elif kind == "Split":
        size = value.shape[axis]
        first = rng.randrange(size + 1)
        graph.add(kind, [x], [_ints(first, size - first)], 2, axis=axis)
    elif kind == "Trilu" and value.ndim > 1:
        graph.add(kind, [x], [np.array(rng.randrange(-2, 3), np.int64)], upper=rng.randrange(2))


def contract(graph: Graph) -> None:
    x = graph.pick(_is(np.float32, 1))
    value = graph.values[x]
    if graph.rng.randrange(2):
        weights = np.random.default_rng(graph.rng.randrange(1 << 30)).normal(size=(value.shape[-1], 3))
        graph.add("MatMul", [x], [weights.astype(np.float32)])
    else:
        graph.add("MatMul", [x, graph.pick(_is(np.float32, 1))], [])


def choose(graph: Graph) -> None:
    first = graph.pick()
    graph.add(
        "Where", [graph.pick(_is(np.bool_)), first, graph.pick(lambda e: e.dtype == graph.values[first].dtype)], []
    )


def cast(graph: Graph) -> None:
    graph.add("Cast", [graph.pick()], [], to=graph.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL]))


STEPS = (unary, unary, binary, binary, reduce, arg, along, shape, shape, parts, parts, contract, choose, cast)


def _model(
    nodes: list[NodeProto], feeds: dict[str, Array], constants: dict[str, Array], outputs: list[str], dims: Any
) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), dims or each.shape)
        for name, each in feeds.items()
    ]
    kinds = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
    tensors = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    graph = helper.make_graph(nodes, "graph", inputs, kinds, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def made(seed: int) -> tuple[ModelProto, Array, list[Array]]:
    """A model, its input, and what the reference computes."""
    rng = random.Random(seed)
    graph = Graph(rng)
    sizes = tuple(rng.choice((1, 1, 2, 3, 4)) for _ in range(rng.randrange(1, 4)))
    x = np.random.default_rng(seed).normal(size=sizes).astype(np.float32).round(1)
    graph.values["x"] = x
    wanted = rng.randrange(2, 8)
    for _ in range(4 * wanted):
        if len(graph.nodes) < wanted:
            try:
                rng.choice(STEPS)(graph)
            except (IndexError, ValueError):  # nothing to pick from
                continue
    used = {name for node in graph.nodes for name in node.input}
    outputs = [name for name in graph.values if name not in used and name != "x"] or ["x"]
    dims = [f"d{axis}" if rng.randrange(2) else size for axis, size in enumerate(sizes)]
    return _model(graph.nodes, {"x": x}, graph.constants, outputs, dims), x, [graph.values[name] for name in outputs]


def same(ours: Array, theirs: Array) -> bool:
    """Whether two results are equal, up to rounding."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    if ours.dtype != np.float32:
        return np.array_equal(ours, theirs)
    return np.allclose(ours, theirs, rtol=1e-3, atol=1e-4, equal_nan=True)


def run(seed: int) -> None:
    """Makes a graph and compares what it computes in every mode with what others say."""
    proto, x, expected = made(seed)
    module = import_model(proto)
    found = interpret(module, "main", [x])
    ways = {"interpret": [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]}
    for mode in ("bytecode", "native"):
        result = VirtualMachine(build(module, mode=mode))["main"](x)
        ways[mode] = [to_numpy(each) for each in ([result] if hasattr(result, "__dlpack__") else result)]
    theirs = None
    for way, outputs in ways.items():
        for at, (ours, wanted) in enumerate(zip(outputs, expected, strict=True)):
            if same(ours, wanted):
                continue
            theirs = of_onnx_runtime(proto, {"x": x}) or [] if theirs is None else theirs
            if at >= len(theirs) or not same(ours, theirs[at]):
                nodes = "; ".join(f"{node.op_type}({', '.join(node.input)})" for node in proto.graph.node)
                raise AssertionError(f"{way}, {proto.graph.output[at].name}: {ours!r}, expected {wanted!r} of {nodes}")
