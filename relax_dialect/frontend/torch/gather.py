"""Gathering and scattering."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.range_checks import indices_within
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.indexing import indices
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts

_REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}


@converts("aten.gather.default")
def gather(node: Node) -> Result:
    """One element for each index."""
    if not node.rank("index"):
        return op.reshape(node.tensor("self"), [])
    return op.gather_elements(node.tensor("self"), indices(node, "index", node.axis()), node.axis())


@converts("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter(node: Node) -> Result:
    """Elements replaced, or combined with others, at places along an axis."""
    reduction = _REDUCTIONS[node.text("reduce")] if node.has("reduce") else "update"
    return _scatter(node, node.tensor("self"), reduction)


@converts("aten.scatter_add.default")
def scatter_add(node: Node) -> Result:
    """Elements added at places along an axis."""
    return _scatter(node, node.tensor("self"), "add")


@converts("aten.scatter_reduce.two")
def scatter_reduce(node: Node) -> Result:
    """Elements combined with others at places along an axis."""
    if not node.flag("include_self") or node.text("reduce") not in _REDUCTIONS:
        raise Refusal("only sums, products and extremes that include the elements which are there are supported")
    return _scatter(node, node.tensor("self"), _REDUCTIONS[node.text("reduce")])


def _scatter(node: Node, x: Expr, reduction: str) -> Expr:
    index, places = indices(node, "index", node.axis()), node.shape("index")
    if node.has("value"):
        source = op.full(list(places), node.tensor("value", node.dtype()))
    elif node.shape("src") == places:
        source = node.tensor("src")
    else:
        source = op.strided_slice(node.tensor("src"), list(range(len(places))), [0] * len(places), list(places))
    return op.scatter_elements(x, index, source, node.axis(), reduction)


@converts("aten.index_add.default", "aten.index_copy.default", "aten.index_fill.int_Scalar")
def index_slices(node: Node) -> Result:
    """Slices at places along an axis replaced, filled, or added to."""
    axis, dtype = node.axis(), node.dtype()
    if node.has("source"):
        source = node.tensor("source", dtype)
    else:
        dims = list(node.shape())
        dims[axis] = node.shape("index")[0]
        source = op.full(dims, node.tensor("value", dtype))
    if node.value("alpha") not in (None, 1):
        source = op.multiply(source, node.tensor("alpha", dtype))
    order = [axis, *(each for each in range(node.rank()) if each != axis)]
    x, source = op.permute_dims(node.tensor("self"), order), op.permute_dims(source, order)
    extents, from_back = [node.shape()[axis]], node.name == "index_fill"
    index = indices_within(node.bb, node.tensor("index"), extents, f"'{node.name}' index", from_back=from_back)
    made = op.index_put(x, source, [index], accumulate=node.name == "index_add")
    return op.permute_dims(made, [order.index(each) for each in range(node.rank())])
