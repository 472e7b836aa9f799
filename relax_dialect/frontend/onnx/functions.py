"""Nodes said by others: bodies of functions are inlined."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

from relax_dialect.frontend.onnx.dtypes import Refusal, onnx_type
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS, opsets
from relax_dialect.frontend.onnx.node import GraphScope, Node, default_attributes, schema_of
from relax_dialect.frontend.onnx.values import TensorList, Value

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
    inner = graph.within(environment, opsets=_versions(graph, body), prefix=f"{graph.prefix}{name}/")
    known = {each.name: each for each in proto.attribute}
    known = {each.name: each for each in body.attribute_proto} | _schema_defaults(proto, node) | known
    before = len(graph.problems.nodes)
    inner.run(_bound(each, known, absent) for each in body.node)
    if len(graph.problems.nodes) > before:
        return [None] * len(body.output)
    return [inner.environment.get(output) for output in body.output]


def _versions(graph: GraphScope, body: FunctionProto) -> dict[str, int]:
    """The versions of operators in a body; bodies of the standard that name none are of the newest version."""
    return {"": onnx.defs.onnx_opset_version(), **graph.opsets, **opsets(body.opset_import)}


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
