"""Branches and loops, whose bodies are graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import f64, i1, i64

from relax_dialect.builder import op
from relax_dialect.builder.block_builder import CarriedValue
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import GraphModule, Refusal, is_random, is_symbolic, name_of, nodes_of
from relax_dialect.frontend.torch.symbols import dim_of
from relax_dialect.struct_info.types import PrimType, ShapeType
from tir_dialect.dims import symbol, to_dim

SEEDS = 2**52
"""Seeds of iterations are below this."""


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
    seeds = _seeds(node, condition, body)
    given = {**seeds, **{f"v{at}": node.graph.tensor(each) for at, each in enumerate(carried)}}
    with node.bb.while_(given) as loop:
        with loop.condition() as values:
            here, values = _without_seed(seeds, values)
            node.bb.yield_(*_applied(node, condition, [*_numbers(node, condition, values), *others], here))
        with loop.body() as values:
            here, values = _without_seed(seeds, values)
            found = _applied(node, body, [*_numbers(node, body, values), *others], here)
            node.bb.yield_(*_next_seed(node, here), *found)
    results = _without_seed(seeds, loop.results)[1]
    return [_as_said(node, *each) for each in zip(results, node.results, strict=True)]


# Random numbers in loops: each iteration has a seed of its own, which is drawn from the one before


def _seeds(node: Node, *graphs: GraphModule) -> dict[str, CarriedValue]:
    """What a loop over graphs carries to draw random numbers: the seed of its first iteration, or nothing."""
    if not any(is_random(each) for graph in graphs for each in nodes_of(graph)):
        return {}
    return {"seed": (_drawn_seed(node, *node.graph.random_stream()), PrimType(i64))}


def _without_seed(seeds: Mapping[str, CarriedValue], values: Sequence[Expr]) -> tuple[Expr | None, Sequence[Expr]]:
    """The seed among the carried values of a loop, if there is one, and the others."""
    return (values[0], values[1:]) if seeds else (None, values)


def _next_seed(node: Node, seed: Expr | None) -> list[Expr]:
    """The seed of the iteration after the one of `seed`; nothing without seeds."""
    return [] if seed is None else [_drawn_seed(node, seed, next(node.graph.streams))]


def _drawn_seed(node: Node, seed: Expr, stream: int) -> Expr:
    drawn = op.random.uniform(seed, [1], low=0, high=SEEDS, dtype=f64, stream=stream)
    name = node.bb.fresh_symbol("seed")
    node.graph.match(op.tensor_to_shape(op.astype(drawn, i64)), ShapeType([symbol(name)]))
    return node.bb.symbol(name)


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

    def step(i: Expr, seed: Expr | None, _: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        return [], _applied(node, graph, [*(op.take(x, i, 0) for x in tensors), *others], seed)

    return _repeated(node, graph, [], tensors, step)


@converts("torch.ops.higher_order.scan")
def scan(node: Node) -> Result:
    """A graph applied to each slice of tensors along their first axis, and to what it gave before."""
    graph, first, tensors, others = (node.value(str(at)) for at in range(4))

    def step(i: Expr, seed: Expr | None, carried: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        found = _applied(node, graph, [*carried, *(op.take(x, i, 0) for x in tensors), *others], seed)
        return found[: len(carried)], found[len(carried) :]

    return _repeated(node, graph, [node.graph.tensor(each) for each in first], tensors, step)


def _repeated(
    node: Node,
    graph: GraphModule,
    first: Sequence[Expr],
    tensors: Sequence[Expr],
    step: Callable[[Expr, Expr | None, Sequence[Expr]], tuple[list[Expr], list[Expr]]],
) -> list[Expr]:
    """What is carried after a step for each slice of the tensors, then what the steps gave, stacked."""
    count = len(first)
    stacks = [op.zeros(node.out_dims(at), node.out_dtype(at)) for at in range(count, len(node.results))]

    def stepped(i: Expr, seed: Expr | None, values: Sequence[Expr]) -> list[Expr]:
        carried, given = step(i, seed, values[:count])
        return [*carried, *(_with_slice(stack, i, each) for stack, each in zip(values[count:], given, strict=True))]

    return _counted(node, graph, 0, [*first, *stacks], tensors, stepped)


def _with_slice(stack: Expr, i: Expr, each: Expr) -> Expr:
    return op.index_put(stack, op.expand_dims(each, [0]), [op.reshape(i, [1])])


@converts("torch.ops.higher_order.associative_scan")
def associative_scan(node: Node) -> Result:
    """Each slice along the first axis combined with the result for those before it."""
    graph, tensors, others = node.value("0"), node.value("1"), node.value("2")

    def step(i: Expr, seed: Expr | None, values: Sequence[Expr]) -> list[Expr]:
        before = op.subtract(i, node.const(1, i64))
        operands = [*(op.take(each, before, 0) for each in values), *(op.take(x, i, 0) for x in tensors)]
        found = _applied(node, graph, [*operands, *others], seed)
        return [_with_slice(stack, i, each) for stack, each in zip(values, found, strict=True)]

    return _counted(node, graph, 1, tensors, tensors, step)


def _counted(
    node: Node,
    graph: GraphModule,
    begin: int,
    given: Sequence[Expr],
    tensors: Sequence[Expr],
    step: Callable[[Expr, Expr | None, Sequence[Expr]], list[Expr]],
) -> list[Expr]:
    """Values after a step for each index of the first axis of the tensors, from `begin` on."""
    length = tensors[0].shape
    if length is None or length[0] is None:
        raise Refusal("a scan over an axis of unknown length is not supported")
    seeds = _seeds(node, graph)
    carried = {**seeds, "i": node.const(begin, i64), **{f"v{at}": each for at, each in enumerate(given)}}
    with node.bb.while_(carried) as loop:
        with loop.condition() as values:
            i = values[len(seeds)]
            node.bb.yield_(op.less(i, node.graph.dimension(to_dim(length[0]), i64)))
        with loop.body() as values:
            here, (i, *rest) = _without_seed(seeds, values)
            made = step(i, here, rest)
            node.bb.yield_(*_next_seed(node, here), op.add(i, node.const(1, i64)), *made)
    return list(loop.results)[len(seeds) + 1 :]


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


def _applied(node: Node, graph: Any, operands: Sequence[Any], seed: Expr | None = None) -> list[Expr]:
    """What a graph gives for operands; its random numbers are of a seed, or that of the graph around."""
    return [node.graph.tensor(each) for each in node.graph.within(graph, operands, seed=seed).run()]
