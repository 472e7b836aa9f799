"""Branches and loops, whose bodies are graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i1

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts


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
    """A graph as long as another one gives true; both also see values that stay the same."""
    condition, body, carried, others = (node.value(str(at)) for at in range(4))
    given = {f"v{at}": node.graph.tensor(each) for at, each in enumerate(carried)}
    if any(not isinstance(each, Expr) for each in carried):
        raise Refusal("loops that carry numbers are not supported: make tensors of them")
    with node.bb.while_(given) as loop:
        with loop.condition() as values:
            node.bb.yield_(*_applied(node, condition, [*values, *others]))
        with loop.body() as values:
            node.bb.yield_(*_applied(node, body, [*values, *others]))
    return loop.results


@converts("torch.ops.higher_order.wrap_with_set_grad_enabled")
def without_gradients(node: Node) -> Result:
    """A graph that is applied without gradients, of which there are none here."""
    operands = [node.value(str(at)) for at in range(2, len(node.arguments))]
    return _applied(node, node.value("1"), operands)


def _applied(node: Node, graph: Any, operands: Sequence[Any]) -> list[Expr]:
    """What a graph gives for operands."""
    return [node.graph.tensor(each) for each in node.graph.within(graph, operands).run()]
