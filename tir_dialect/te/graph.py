"""The computation graph after tensors: its computations in topological order, and their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, cast

from tir_dialect.dims import Dim
from tir_dialect.te import nodes, statements
from tir_dialect.te.compute import Compute, Nest, Scan
from tir_dialect.te.expr import OPERATORS, Expr
from tir_dialect.te.extern import Extern, Inlined
from tir_dialect.te.nodes import Param, Tensor, post_order

Source: TypeAlias = "Compute | Extern | Inlined | Scan"


def inputs_of(source: Source) -> tuple[Tensor, ...]:
    """The tensors that a computation uses and does not define, in order of first use."""
    if isinstance(source, Extern | Inlined):
        return source.inputs
    loads = (expr.tensor for expr in post_order(_expressions(source)) if isinstance(expr, nodes.Load))
    own = set((*source.outputs, *source.locals)) if isinstance(source, Scan) else set[Tensor]()
    return tuple(tensor for tensor in dict.fromkeys(loads) if tensor not in own)


def nests_of(source: Source) -> tuple[Nest, ...]:
    """The loop nests of a computation; none for an extern or an inlined function."""
    match source:
        case Compute():
            return (source,)
        case Scan():
            return (*source.starts, *source.steps)
        case Extern() | Inlined():
            return ()


OPERATORS["inputs"] = inputs_of


def _source(tensor: Tensor) -> Source | None:
    return cast("Source | None", tensor.source)


def sources_of(tensors: Iterable[Tensor]) -> list[Source]:
    """The computations that the tensors depend on, each after its inputs."""
    done: dict[Source, None] = {}
    stack = [(_source(tensor), False) for tensor in reversed(list(tensors))]
    while stack:
        source, expanded = stack.pop()
        if source is None or source in done:
            continue
        if expanded:
            done[source] = None
            continue
        stack.append((source, True))
        stack.extend((_source(tensor), False) for tensor in reversed(inputs_of(source)))
    return list(done)


def scalars_of(source: Source) -> list[Param]:
    """The scalar parameters that a computation uses."""
    return [expr for expr in post_order(_expressions(source)) if isinstance(expr, Param)]


def symbols_of(args: Sequence[Tensor | Expr], sources: Iterable[Source]) -> list[str]:
    """The symbols of the parameters' shapes, then all others, in order of first use; those of one extent by name."""
    dims = [dim for arg in args if isinstance(arg, Tensor) for dim in arg.shape]
    for source in sources:
        dims.extend(_dims(source))
    return list(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols)))


def _walk(source: Source) -> Iterator[statements.Statement]:
    stack = [*reversed(source.body)] if isinstance(source, Extern) else []
    while stack:
        statement = stack.pop()
        yield statement
        for body in reversed(statements.nested(statement)):
            stack.extend(reversed(body))


def _expressions(source: Source) -> Iterator[Expr]:
    for nest in nests_of(source):
        yield from nest.bodies
    for statement in _walk(source):
        yield from statements.expressions(statement)


def _dims(source: Source) -> Iterator[Dim]:
    for tensor in source.outputs:
        yield from tensor.shape
    if isinstance(source, Inlined):
        yield from source.symbols.values()
    for nest in nests_of(source):
        yield from (axis.length for axis in nest.axes if axis.length is not None)
        domains = () if nest.reduction is None else nest.reduction.domains
        bounds = (bound for lo, extent in domains for bound in (extent, lo))
        yield from (bound.dim for bound in bounds if isinstance(bound, nodes.Size))
    for statement in _walk(source):
        if isinstance(statement, statements.Alloc):
            yield from statement.tensor.shape
        elif isinstance(statement, statements.Block):
            yield from (axis.length for axis in statement.axes if axis.length is not None)
    yield from (expr.dim for expr in post_order(_expressions(source)) if isinstance(expr, nodes.Size))
