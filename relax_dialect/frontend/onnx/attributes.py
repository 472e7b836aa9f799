"""The attributes of a node as Python's values, with the defaults of the operator's version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol, cast

import onnx
from onnx import AttributeProto, NodeProto

from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.model import Model


class Parameter(Protocol):
    """An attribute in the description of an operator."""

    name: str
    default_value: AttributeProto


class Schema(Protocol):
    """The description of an operator, as far as it is used here; the onnx package types it in part only."""

    attributes: Mapping[str, Parameter]
    since_version: int
    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int) -> bytes: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes]
    ) -> bytes: ...


def attributes_of(node: NodeProto, domain: str, version: int, model: Model) -> dict[str, Any]:
    """Attributes by name: numbers, bytes, lists, graphs, and arrays for tensors. Raises `Refusal`."""
    found = dict(defaults(node.op_type, version, domain))
    for each in node.attribute:
        if each.ref_attr_name:
            raise Refusal(f"the attribute {each.name} refers to {each.ref_attr_name}, but the node is in no function")
        found[each.name] = _value(each, model)
    return found


def _value(attribute: AttributeProto, model: Model) -> Any:
    if attribute.type == AttributeProto.TENSOR:
        return model.array(attribute.t)
    if attribute.type in (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS):
        raise Refusal(f"the attribute {attribute.name} is a sparse tensor, which is not supported")
    try:
        return onnx.helper.get_attribute_value(attribute)
    except ValueError as error:
        raise Refusal(f"the attribute {attribute.name} is malformed: {error}") from None


@cache
def schema_of(name: str, version: int, domain: str) -> Schema | None:
    """What the onnx package knows of an operator in a version, or `None`."""
    try:
        return cast("Schema", onnx.defs.get_schema(name, version, domain))
    except onnx.defs.SchemaError:
        return None


@cache
def defaults(name: str, version: int, domain: str) -> dict[str, Any]:
    """The default attributes of an operator."""
    schema = schema_of(name, version, domain)
    if schema is None:
        return {}
    return {key: onnx.helper.get_attribute_value(value) for key, value in default_attributes(schema).items()}


def default_attributes(schema: Schema) -> dict[str, AttributeProto]:
    """The attributes of an operator that have defaults, with those."""
    found = {each.name: each.default_value for each in schema.attributes.values()}
    return {name: value for name, value in found.items() if value.type}
