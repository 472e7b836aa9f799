"""Branches and loops: If, Loop, Scan."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto
from xdsl.dialects.builtin import i1, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.datatype import converted
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.subgraphs import carried_types, run_body, with_types_of_lists
from relax_dialect.frontend.onnx.tensor_lists import TensorList, like
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, symbol

MAX_UNROLLED = 8
"""Loops of up to so many iterations, if that is known while importing, are written out."""


@converts("If")
def if_(node: Node) -> Result:
    """One of two graphs; which one may be known while importing."""
    branches: tuple[GraphProto, GraphProto] = (node.attribute("then_branch"), node.attribute("else_branch"))
    known = node.known(0)
    if known is not None and known.dtype != object:
        return run_body(node, branches[0 if bool(known.reshape(-1)[0]) else 1], ())
    node.graph.require_control_flow()
    condition = converted(node[0], i1)
    with node.bb.if_(condition if condition.ndim == 0 else op.reshape(condition, [])) as branch:
        with branch.then():
            values = run_body(node, branches[0], ())
            first = [value.expr(node.bb) for value in values]
            node.bb.yield_(*first)
        with branch.otherwise():
            node.bb.yield_(*(value.expr(node.bb) for value in run_body(node, branches[1], ())))
    if not _is_squeeze(*branches):
        return _like(node, values, branch.results)
    return [_ranked(node, at, each, of.type) for at, (each, of) in enumerate(zip(branch.results, first, strict=True))]


def _is_squeeze(then: GraphProto, otherwise: GraphProto) -> bool:
    """Whether this is `if x.shape[-1] == 1: squeeze(x)`, as PyTorch exports a squeeze."""
    ends = [body.node[-1].op_type if body.node else "" for body in (then, otherwise)]
    return ends == ["Squeeze", "Identity"]


def _ranked(node: Node, output: int, result: Expr, first: StructInfo) -> Expr:
    """A result that has been squeezed or not, with the rank that the model says, or else that of the squeezed one.

    It is checked when the program runs.
    """
    bb, kind, hint = node.bb, result.type, node.hint(output)
    if not isinstance(kind, TensorType) or not isinstance(first, TensorType):
        return result
    if kind.dims is not None or first.dims is None:
        return result
    if hint is not None and hint.dims is not None and len(hint.dims) != len(first.dims):
        return result
    visible = set(bb.symbols)
    dims = [dim if dim is not None and dim.symbols <= visible else symbol(node.fresh()) for dim in first.dims]
    return bb.match_cast(result, TensorType(dims, kind.dtype))


@converts("Loop")
def loop(node: Node) -> Result:
    """A graph as long as a condition holds, at most a number of times."""
    body: GraphProto = node.attribute("body")
    carried = [node.value(index) for index in range(2, len(node.inputs))]
    trips, condition = node.ints(0) if node.has(0) else None, node.known(1) if node.has(1) else None
    always = not node.has(1) or (condition is not None and bool(condition.reshape(-1)[0]))
    if trips is not None and always and trips[0] <= MAX_UNROLLED:
        written = _unrolled(node, body, trips[0], carried)
        if written is not None:
            return written
    return _while(node, body, carried)


def _unrolled(node: Node, body: GraphProto, trips: int, carried: list[Value]) -> Sequence[Value] | None:
    """The iterations one after the other; `None` if the condition is not known to hold in each."""
    import numpy as np

    count = len(body.output) - 1 - len(carried)
    collected: list[list[Expr]] = [[] for _ in range(count)]
    if trips == 0 and count:
        return None
    for trip in range(trips):
        start = [Value.of(np.array(trip, np.int64)), Value.of(np.array(True)), *carried]
        more, *results = run_body(node, body, start)
        if more.elements is None or not bool(more.elements.reshape(-1)[0]):
            return None
        carried = results[: len(carried)]
        for place, value in zip(collected, results[len(carried) :], strict=True):
            place.append(value.expr(node.bb))
    return [*carried, *(Value(op.stack(each, 0)) for each in collected)]


def _while(node: Node, body: GraphProto, carried: list[Value]) -> Sequence[Expr | Value]:
    node.graph.require_control_flow()
    bb = node.bb
    zero, true = bb.const(0, i64), bb.const(True)
    first = _scalar(converted(node[1], i1)) if node.has(1) else true
    limit = _scalar(node[0]) if node.has(0) else None
    begin = with_types_of_lists(node, body, [Value(zero), Value(first), *carried])
    types, elements = carried_types(node, body, begin)
    grown = [_grown(element, bb.fresh_symbol("k")) for element in elements]
    starts = [op.full([0, *_known(each)], bb.const(0, each.dtype)) for each in elements]
    names = [f"v{index}" for index in range(len(types) + len(grown))]
    given = [*(value.expr(bb) for value in begin), *starts]
    values = dict(zip(names, zip(given, [*types, *grown], strict=True), strict=True))
    with bb.while_(values) as scope:
        with scope.condition() as (trip, more, *_):
            bb.yield_(more if limit is None else op.logical_and(more, op.less(trip, limit)))
        with scope.body() as (trip, more, *rest):
            inner = [Value(trip), Value(more), *map(like, carried, rest)]
            again, *results = run_body(node, body, inner)
            made = [value.expr(bb) for value in results]
            added = [
                op.concat([old, op.expand_dims(new, [0])], 0)
                for old, new in zip(rest[len(carried) :], made[len(carried) :], strict=True)
            ]
            bb.yield_(op.add(trip, 1), _scalar(again.expr(bb)), *made[: len(carried)], *added)
    return [*_like(node, carried, scope.results[2:]), *scope.results[2 + len(carried) :]]


def _like(node: Node, models: Sequence[Value], results: Sequence[Expr]) -> list[Expr | Value]:
    """Results as what other values are: tensors, or sequences."""
    return [
        like(model, node.graph.settled(each, None)) if isinstance(model, TensorList) else each
        for model, each in zip(models, results, strict=False)
    ]


def _grown(element: TensorType, length: str) -> TensorType:
    """The type of what an output has gathered so far."""
    return TensorType([symbol(length), *_known(element)], element.dtype)


def _known(info: TensorType) -> Sequence[Dim]:
    if info.known_dims is None:
        raise Refusal("the shape of what a loop gathers is not known while importing")
    return info.known_dims


def _scalar(x: Expr) -> Expr:
    return x if x.ndim == 0 else op.reshape(x, [])


@converts("Scan", since=9)
def scan(node: Node) -> Result:
    """A graph over the slices of tensors along an axis."""
    from relax_dialect.frontend.onnx.scan import Scan

    return Scan.of(node).results()


@converts("Scan")
def scan_batched(node: Node) -> Result:
    """Before version 9: for each item of a batch by itself."""
    from relax_dialect.frontend.onnx.scan import batched

    return batched(node)
