"""Inner graphs: what is computed in them, and of what types the values are that loops carry."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto
from xdsl.ir import Block, SSAValue

from relax_dialect.builder import op
from relax_dialect.builder.emitter import Frame
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.tensor_lists import TensorList, like
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import Dim, constant, symbol

MAX_ROUNDS = 4
"""After so many rounds the types that a loop carries have to be stable."""


def run_body(node: Node, body: GraphProto, arguments: Sequence[Value]) -> list[Value]:
    """Imports an inner graph here; it sees the names around it. Gives its outputs."""
    graph = node.graph
    if len(arguments) != len(body.input):
        raise Refusal(f"the inner graph takes {len(body.input)} inputs, but gets {len(arguments)}")
    environment = dict(graph.environment)
    for formal, actual in zip(body.input, arguments, strict=True):
        environment[formal.name] = actual
    hints = {**graph.hints, **declared_hints(body)}
    inner = graph.within(environment, hints=hints, is_repeated=bool(arguments))
    inner.initialize(body)
    before = len(graph.problems.nodes)
    inner.run(body.node)
    outputs = [inner.value(output.name) for output in body.output]
    if len(graph.problems.nodes) > before:
        raise Refusal("its inner graph has nodes that are not supported")
    return [
        graph.refined(value, inner.hints.get(name.name))
        for name, value in zip(body.output, outputs, strict=True)
        if value is not None
    ]


def declared_hints(body: GraphProto) -> dict[str, TensorType]:
    """What an inner graph says of the shapes of its values."""
    found: dict[str, TensorType] = {}
    for info in (*body.value_info, *body.output):
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
            dims = [
                constant(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None
                for dim in tensor.shape.dim
            ]
            found[info.name] = TensorType(dims, None)
    return found


def carried_types(node: Node, body: GraphProto, starts: Sequence[Value]) -> tuple[list[TensorType], list[TensorType]]:
    """The types of what a loop carries, and of the other outputs of its body: found by importing the body for trial.

    Dimensions that an iteration changes become symbols.
    """
    types = [_tensor(start.expr(node.bb)) for start in starts]
    for _ in range(MAX_ROUNDS):
        made = _trial(node, body, types, starts)
        count = len(types) - 1
        found = [types[0], *made[:count]]
        merged = [_merged(node, old, new) for old, new in zip(types, found, strict=True)]
        if merged == types:
            return types, made[count:]
        types = merged
    raise Refusal("the types of what the loop carries change with each iteration")


def scan_types(node: Node, body: GraphProto, arguments: Sequence[TensorType]) -> list[TensorType]:
    """The types of the outputs of a graph for inputs of these types."""
    return _trial(node, body, arguments, [None] * len(arguments))


def with_types_of_lists(node: Node, body: GraphProto, starts: Sequence[Value]) -> list[Value]:
    """What a loop starts with, where empty sequences become tensors of no items: the body says of what shape those are
    that it adds.
    """
    if not any(isinstance(start, TensorList) and start.is_empty for start in starts):
        return list(starts)
    types = [
        None if isinstance(start, TensorList) and start.is_empty else _tensor(start.expr(node.bb)) for start in starts
    ]
    made = _trial(node, body, types, starts)
    return [
        starts[0],
        *(
            start if before is not None else _no_items(node, after)
            for start, before, after in zip(starts[1:], types[1:], made, strict=False)
        ),
    ]


def _no_items(node: Node, info: TensorType) -> TensorList:
    items = (info.dims or ())[1:]
    if any(dim is None for dim in items) or info.dtype is None:
        raise Refusal("the shape of what a loop adds to a sequence is not known while importing")
    return TensorList.of_stack(op.full([constant(0), *filter(None, items)], node.bb.const(0, info.dtype)))


def _tensor(value: Expr) -> TensorType:
    info = value.type
    if not isinstance(info, TensorType):
        raise Refusal("a loop carries something that is no tensor")
    return info


def _trial(
    node: Node, body: GraphProto, types: Sequence[TensorType | None], models: Sequence[Value | None]
) -> list[TensorType]:
    """The types of a body's outputs; what is emitted for that is thrown away.

    Inputs are like their models, and the models themselves where no type is given.
    """
    bb, given = node.bb, [info for info in types if info is not None]
    new = sorted({name for info in given for dim in info.known_dims or () for name in dim.symbols} - set(bb.symbols))
    leading: list[StructInfo] = [PrimType(value=name) for name in new]
    block = Block(arg_types=[*leading, *given])
    witnesses: dict[str, SSAValue] = dict(zip(new, block.args, strict=False))
    with bb.open_frame(Frame(block, "loop", symbols=witnesses)):
        arguments = iter(bb.exprs(block.args[len(new) :]))
        values = [
            model if info is None and model is not None else like(model, next(arguments))
            for info, model in zip(types, models, strict=True)
        ]
        found = [_type(node, each) for each in run_body(node, body, values)]
        inside = set(bb.frame.symbols) - set(new)
    for each in reversed(list(block.ops)):
        each.detach()
        each.erase(safe_erase=False)
    return [_visible(info, inside) for info in found]


def _type(node: Node, value: Value) -> TensorType:
    """The type of a tensor, or of all items of a sequence as one."""
    if not isinstance(value, TensorList) or not value.items:
        return _tensor(value.expr(node.bb))
    item = _tensor(value.items[-1].expr(node.bb))
    return item.with_shape(None if item.dims is None else [None, *item.dims])


def _visible(info: TensorType, inside: set[str]) -> TensorType:
    """A type without symbols that are bound in the body."""
    if info.dims is None:
        return info
    return info.with_shape([None if dim is None or dim.symbols & inside else dim for dim in info.dims])


def _merged(node: Node, old: TensorType, new: TensorType) -> TensorType:
    """A type for both: symbols where dimensions differ."""
    if old == new:
        return old
    if old.dims is None or new.dims is None or len(old.dims) != len(new.dims) or old.dtype != new.dtype:
        raise Refusal(f"the loop carries {old} into an iteration and {new} out of it")
    dims: list[Dim | None] = []
    for before, after in zip(old.dims, new.dims, strict=True):
        is_own = before is not None and before.as_symbol is not None and before.as_symbol not in node.bb.symbols
        dims.append(before if before is after or is_own else symbol(node.fresh()))
    return old.with_shape(dims)
