"""Nodes said by others: bodies of functions are inlined, and those of operator sets before version 7 said in its terms.

Today's broadcasting begins with version 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS, opsets
from relax_dialect.frontend.onnx.node import GraphScope, Node, default_attributes, from_front, schema_of
from relax_dialect.frontend.onnx.values import Refusal, TensorList, Value, onnx_type

MAX_DEPTH = 64
"""So deep functions may call each other; they must not be recursive."""


def has_body(proto: NodeProto, version: int, functions: Sequence[FunctionProto]) -> bool:
    """Whether a node can be expanded."""
    if is_local(proto, functions):
        return True
    schema = schema_of(proto.op_type, version, "" if proto.domain in DEFAULT_DOMAINS else proto.domain)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def is_local(proto: NodeProto, functions: Sequence[FunctionProto]) -> bool:
    """Whether the model itself says what a node does."""
    return local_function(proto, functions) is not None


def expand(graph: GraphScope, proto: NodeProto, node: Node) -> list[Value | None]:
    """The outputs of a node, by importing the body of its function."""
    body = local_function(proto, graph.model.proto.functions) or _standard(proto, node)
    if body is None:
        raise Refusal("the operator is not supported")
    if graph.prefix.count("/") > MAX_DEPTH:
        raise Refusal("functions call each other without end")
    name = proto.name or next(iter(proto.output), proto.op_type)
    inputs = [*node.inputs, *[None] * len(body.input)]
    environment: dict[str, Value | None] = {}
    absent = {formal for formal, actual in zip(body.input, inputs, strict=False) if actual is None}
    for formal, actual in zip(body.input, inputs, strict=False):
        environment[formal] = actual
    inner = graph.within(
        environment,
        opsets={"": onnx.defs.onnx_opset_version(), **graph.opsets, **opsets(body.opset_import)},
        prefix=f"{graph.prefix}{name}/",
    )
    known = {each.name: each for each in proto.attribute}
    known = {each.name: each for each in body.attribute_proto} | _schema_defaults(proto, node) | known
    before = len(graph.problems.nodes)
    inner.run((_bound(each, known, absent) for each in body.node), body.output)
    if len(graph.problems.nodes) > before:
        return [None] * len(body.output)
    return [inner.environment.get(output) for output in body.output]


def local_function(proto: NodeProto, functions: Sequence[FunctionProto]) -> FunctionProto | None:
    """The function of the model that says what a node does, or `None`."""
    for function in functions:
        if (function.domain, function.name, function.overload) == (proto.domain, proto.op_type, proto.overload):
            return function
    return None


def _standard(proto: NodeProto, node: Node) -> FunctionProto | None:
    """The body that the standard gives an operator, for these operand types."""
    schema = schema_of(proto.op_type, node.version, "" if proto.domain in DEFAULT_DOMAINS else proto.domain)
    if schema is None:
        return None
    body = FunctionProto()
    if schema.has_context_dependent_function:
        version = max(each for each in schema.context_dependent_function_opset_versions if each <= node.version)
        types = [_type(value).SerializeToString() for value in node.inputs]
        data = schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    elif schema.has_function:
        version = max(each for each in schema.function_opset_versions if each <= node.version)
        data = schema.get_function_with_opset_version(version)
    else:
        return None
    if not data:
        raise Refusal("the operator is not supported for these operands")
    body.ParseFromString(data)
    return body


def _type(value: Value | None) -> TypeProto:
    """The type of an operand, as the standard's functions ask for it."""
    found = TypeProto()
    if isinstance(value, TensorList):
        item = found.sequence_type.elem_type.tensor_type
        item.elem_type = onnx_type(value.dtype if value.items is None else value.items[0].dtype)
    elif value is not None:
        found.tensor_type.elem_type = onnx_type(value.dtype)
        for dim in value.shape:
            proto_dim = found.tensor_type.shape.dim.add()
            if dim.constant_value is not None:
                proto_dim.dim_value = dim.constant_value
            elif dim.as_symbol is not None:
                proto_dim.dim_param = dim.as_symbol
    return found


def _schema_defaults(proto: NodeProto, node: Node) -> dict[str, AttributeProto]:
    schema = schema_of(proto.op_type, node.version, "" if proto.domain in DEFAULT_DOMAINS else proto.domain)
    if schema is None:
        return {}
    return default_attributes(schema)


def _bound(proto: NodeProto, known: dict[str, AttributeProto], absent: set[str]) -> NodeProto:
    """A node of a body with the attributes that it takes from the call, and without operands that are not there."""
    made = NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    made.attribute.extend(_bound_attributes(proto.attribute, known, absent))
    for index, name in enumerate(proto.input):
        if name in absent:
            made.input[index] = ""
    return made


def _bound_attributes(
    attributes: Sequence[AttributeProto], known: dict[str, AttributeProto], absent: set[str]
) -> list[AttributeProto]:
    found: list[AttributeProto] = []
    for each in attributes:
        source = known.get(each.ref_attr_name) if each.ref_attr_name else each
        if source is None:
            continue
        made = AttributeProto()
        made.CopyFrom(source)
        made.name = each.name
        if made.type == AttributeProto.GRAPH:
            nodes = [_bound(node, known, absent) for node in made.g.node]
            del made.g.node[:]
            made.g.node.extend(nodes)
        found.append(made)
    return found


MODERN = 7
"""The first version with NumPy's broadcasting."""

_BROADCASTS = frozenset({"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"})
_INFERENCE = frozenset({"BatchNormalization", "Dropout"})
"""Operators with an attribute `is_test`, without which they train."""


def modernized(node: Node) -> Node:
    """The node in terms of version 7; `Refusal` if that cannot be said. Other differences than those below are
    attributes that say where results may be written, or what newer versions allow besides.
    """
    old, new = schema_of(node.op_type, node.version, ""), schema_of(node.op_type, MODERN, "")
    if old is None or (new is not None and old.since_version == new.since_version):
        return node
    if node.op_type in _BROADCASTS:
        # The second operand with dimensions behind, so that its first one stands at the attribute `axis`.
        x, y = node.rank(0), node.rank(1)
        axis = node.attributes.get("axis")
        if node.op_type == "PRelu":
            axis = 1 if x > 1 else 0
        elif axis is None or not node.integer("broadcast"):
            return node
        trailing = x - int(axis) % max(x, 1) - y
        if trailing <= 0 or node.shape(1) == node.shape(0):
            return node
        return replace(node, inputs=[node.value(0), Value(op.expand_dims(node[1], range(y, y + trailing)))])
    if node.op_type in _INFERENCE and not node.integer("is_test"):
        raise Refusal(
            f"version {node.version} of the operator trains without is_test: convert the model with "
            "onnx.version_converter"
        )
    rewrite = _REWRITTEN.get(node.op_type)
    return node if rewrite is None else rewrite(node)


def _with(node: Node, **attributes: Any) -> Node:
    return replace(node, attributes={**node.attributes, **attributes})


def _cast(node: Node) -> Node:
    """The dtype was a text."""
    name = node.attributes.get("to")
    if not isinstance(name, bytes):
        return node
    return _with(node, to=onnx.TensorProto.DataType.Value(name.decode().upper()))


def _reshape(node: Node) -> Node:
    """The shape was an attribute."""
    if "shape" not in node.attributes:
        return node
    return replace(node, inputs=[node.value(0), Value.of(np.array(node.integers("shape"), np.int64))])


def _split(node: Node) -> Node:
    """The lengths could be an operand, of the dtype of the data."""
    if not node.has(1):
        return node
    lengths = node.ints(1)
    if lengths is None:
        raise Refusal("the lengths of parts are data, and no integers")
    return replace(_with(node, split=lengths), inputs=[node.value(0)])


def _tile(node: Node) -> Node:
    """A number of tiles along one axis, both of the dtype of the data."""
    if not node.has(2):
        return node
    tiles, axis = node.ints(1), node.ints(2)
    if tiles is None or axis is None:
        raise Refusal("the number of tiles and their axis are data, and no integers")
    repeats = np.ones(node.rank(), np.int64)
    repeats[from_front(axis[0], node.rank())] = tiles[0]
    return replace(node, inputs=[node.value(0), Value.of(repeats)])


def _upsample(node: Node) -> Node:
    """Scales of the height and of the width."""
    scales = [1.0, 1.0, node.number("height_scale"), node.number("width_scale")]
    return _with(node, scales=scales, mode={"bilinear": b"linear"}.get(node.text("mode"), node.attribute("mode")))


_REWRITTEN: Mapping[str, Callable[[Node], Node]] = {
    "Cast": _cast,
    "Concat": lambda node: node if "axis" in node.attributes else _with(node, axis=1),
    "Pad": lambda node: _with(node, pads=node.attribute("paddings", node.attribute("pads"))),
    "Reshape": _reshape,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _upsample,
}
