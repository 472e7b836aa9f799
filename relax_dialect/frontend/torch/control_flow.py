"""Branches and loops, whose bodies are graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import i1, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.library import is_symbolic, name_of
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.symbols import dim_of
from relax_dialect.struct_info.types import ShapeType
from tir_dialect.dims import to_dim


@converts("torch.ops.higher_order.cond")
def cond(node: Node) -> Result:
    """One of two graphs."""
    graphs, operands = [node.value(str(at)) for at in (1, 2)], node.value("3")
    with node.bb.if_(node.tensor("0", i1)) as branch:
        with branch.then():
            node.bb.yield_(*_applied(node, graphs[0], operands))
        with branch.otherwise():
            node.bb.yield_(*_applied(node, graphs[1], operands))
    return branch.results


@converts("torch.ops.higher_order.while_loop")
def while_loop(node: Node) -> Result:
    """A graph as long as another one gives true; both also see values that stay. Numbers are carried as tensors."""
    condition, body, carried, others = (node.value(str(at)) for at in range(4))
    given = {f"v{at}": node.graph.tensor(each) for at, each in enumerate(carried)}
    with node.bb.while_(given) as loop:
        with loop.condition() as values:
            node.bb.yield_(*_applied(node, condition, [*_numbers(node, condition, values), *others]))
        with loop.body() as values:
            node.bb.yield_(*_applied(node, body, [*_numbers(node, body, values), *others]))
    return [_as_said(node, *each) for each in zip(loop.results, node.results, strict=True)]


def _numbers(node: Node, graph: Any, values: Sequence[Expr]) -> list[Any]:
    """Inputs of a graph, those that are numbers as their symbols, to which the values are bound."""
    inputs = [each.meta.get("val") for each in graph.graph.nodes if each.op == "placeholder"]
    return [_as_said(node, *each) for each in zip(values, inputs, strict=False)]


def _as_said(node: Node, value: Expr, said: Any) -> Any:
    """A value as what PyTorch says of it: a number is bound to its symbol."""
    if not is_symbolic(said):
        return value
    if type(said).__name__ != "SymInt" or not said.node.expr.is_Symbol:
        raise Refusal("loops that carry numbers other than integers are not supported: make tensors of them")
    node.graph.match(op.tensor_to_shape(op.reshape(value, [1])), ShapeType([dim_of(said)]))
    return said


@converts("torch.ops.higher_order.map_impl")
def map_(node: Node) -> Result:
    """A graph applied to each slice of tensors along their first axis, and the results stacked."""
    graph, tensors, others = node.value("0"), node.value("1"), node.value("2")

    def step(i: Expr, _: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        return [], _applied(node, graph, [*(op.take(x, i, 0) for x in tensors), *others])

    return _repeated(node, [], tensors, step)


@converts("torch.ops.higher_order.scan")
def scan(node: Node) -> Result:
    """A graph applied to each slice of tensors along their first axis, and to what it gave before."""
    graph, first, tensors, others = (node.value(str(at)) for at in range(4))

    def step(i: Expr, carried: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        found = _applied(node, graph, [*carried, *(op.take(x, i, 0) for x in tensors), *others])
        return found[: len(carried)], found[len(carried) :]

    return _repeated(node, [node.graph.tensor(each) for each in first], tensors, step)


def _repeated(
    node: Node,
    first: Sequence[Expr],
    tensors: Sequence[Expr],
    step: Callable[[Expr, Sequence[Expr]], tuple[list[Expr], list[Expr]]],
) -> list[Expr]:
    """What is carried after a step for each slice of the tensors, then what the steps gave, stacked."""
    count = len(first)
    stacks = [op.zeros(node.out_dims(at), node.out_dtype(at)) for at in range(count, len(node.results))]
    return _counted(node, 0, [*first, *stacks], tensors, lambda i, values: _stepped(i, values, count, step))


def _stepped(
    i: Expr,
    values: Sequence[Expr],
    count: int,
    step: Callable[[Expr, Sequence[Expr]], tuple[list[Expr], list[Expr]]],
) -> list[Expr]:
    carried, given = step(i, values[:count])
    return [*carried, *(_with_slice(stack, i, each) for stack, each in zip(values[count:], given, strict=True))]


def _with_slice(stack: Expr, i: Expr, each: Expr) -> Expr:
    return op.index_put(stack, op.expand_dims(each, [0]), [op.reshape(i, [1])])


@converts("torch.ops.higher_order.associative_scan")
def associative_scan(node: Node) -> Result:
    """Each slice along the first axis combined with the result for those before it."""
    graph, tensors, others = node.value("0"), node.value("1"), node.value("2")

    def step(i: Expr, values: Sequence[Expr]) -> list[Expr]:
        before = op.subtract(i, node.const(1, i64))
        operands = [*(op.take(each, before, 0) for each in values), *(op.take(x, i, 0) for x in tensors)]
        found = _applied(node, graph, [*operands, *others])
        return [_with_slice(stack, i, each) for stack, each in zip(values, found, strict=True)]

    return _counted(node, 1, tensors, tensors, step)


def _counted(
    node: Node,
    begin: int,
    given: Sequence[Expr],
    tensors: Sequence[Expr],
    step: Callable[[Expr, Sequence[Expr]], list[Expr]],
) -> list[Expr]:
    """Values after a step for each index of the first axis of the tensors, from `begin` on."""
    length = tensors[0].shape
    if length is None or length[0] is None:
        raise Refusal("a scan over an axis of unknown length is not supported")
    carried = {"i": node.const(begin, i64)} | {f"v{at}": each for at, each in enumerate(given)}
    with node.bb.while_(carried) as loop:
        with loop.condition() as (i, *_):
            node.bb.yield_(op.less(i, node.graph.dimension(to_dim(length[0]), i64)))
        with loop.body() as (i, *values):
            made = step(i, values)
            node.bb.yield_(op.add(i, node.const(1, i64)), *made)
    return list(loop.results)[1:]


_CHECKS = frozenset({"aten._linalg_check_errors.default"})


@converts("torch.ops.higher_order.with_effects")
def with_effects(node: Node) -> Result:
    """An operator in order with others that have effects. What it checks, the operator before has checked itself."""
    if (name := name_of(node.value("1"))) not in _CHECKS:
        raise Refusal(f"the effect of {name} is not supported")
    return None


@converts("torch.ops.higher_order.wrap_with_set_grad_enabled")
def without_gradients(node: Node) -> Result:
    """A graph that is applied without gradients, of which there are none here."""
    operands = [node.value(str(at)) for at in range(2, len(node.arguments))]
    return _applied(node, node.value("1"), operands)


def _applied(node: Node, graph: Any, operands: Sequence[Any]) -> list[Expr]:
    """What a graph gives for operands."""
    return [node.graph.tensor(each) for each in node.graph.within(graph, operands).run()]
