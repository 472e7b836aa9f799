"""`te.create_prim_func`: a `tir.prim_func` from tensors, by the graph of the computations that they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tir_dialect.dims import Dim
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.te import nodes, statements
from tir_dialect.te.compute import Compute, Nest, Scan
from tir_dialect.te.emit_nests import emit_compute, emit_extern, emit_inlined, emit_scan
from tir_dialect.te.emit_scalar import Names, value_type
from tir_dialect.te.expr import OPERATORS, Expr
from tir_dialect.te.extern import Extern, Inlined
from tir_dialect.te.nodes import Param, Tensor, post_order
from tir_dialect.types import BufferType, SymbolAttr, as_name_hint

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


def create_prim_func(
    args: Sequence[Tensor | Expr | Dim],
    name: str = "main",
    bounds: Mapping[str, tuple[int, int | None]] | None = None,
    visibility: str | None = None,
) -> PrimFuncOp:
    """The function that computes the outputs among `args` from the placeholders among them.

    The parameters are `args`, in order: a buffer per tensor, a scalar per `te.scalar`. Tensors that are needed but not
    listed are allocated inside. Every symbol that a shape or an expression uses, or that is among `args`, becomes a
    symbol of the function, those of the parameters' shapes first, with `bounds` as inclusive limits. Symbols that no
    parameter's shape determines (as in `2 * floordiv(m, 2)`) have to be passed by the caller.

    Each compute becomes a nest of loops around one block named after it, each extern a block.

    Raises ValueError if a placeholder or scalar that is used is not among `args`, or a tensor occurs twice.
    """
    _check_args(name, args)
    sizes = [str(arg) for arg in args if isinstance(arg, Dim)]
    params = [arg for arg in args if not isinstance(arg, Dim)]
    sources = sources_of([arg for arg in params if isinstance(arg, Tensor)])
    listed = set(params)
    for source in sources:
        for tensor in inputs_of(source):
            if tensor.source is None and tensor not in listed:
                raise ValueError(
                    f'te: "{name}" uses the placeholder "{tensor.name}", which is not among its parameters'
                )
        for scalar in scalars_of(source):
            if scalar not in listed:
                raise ValueError(f'te: "{name}" uses the scalar "{scalar.name}", which is not among its parameters')
    limits = bounds or {}
    names = dict.fromkeys([*symbols_of(params, sources), *sizes])
    symbols = [SymbolAttr(symbol, *limits.get(symbol, (0, None))) for symbol in names]
    func = PrimFuncOp(name, symbols, [_parameter(arg) for arg in params], visibility=visibility)
    emitter = _FunctionEmitter(func)
    emitter.bind(params)
    for source in sources:
        emitter.emit(source)
    emitter.finish()
    return func


def _parameter(arg: Tensor | Expr) -> tuple[str, Attribute]:
    if isinstance(arg, Tensor):
        return as_name_hint(arg.name) or "arg", BufferType(arg.shape, arg.dtype)
    return (isinstance(arg, Param) and as_name_hint(arg.name)) or "arg", value_type(arg.dtype)


def _check_args(name: object, args: Sequence[object]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"te: expected the name of the function behind its parameters, got {name!r}")
    for arg in args:
        if not isinstance(arg, Tensor | Param) and not (isinstance(arg, Dim) and arg.as_symbol is not None):
            raise TypeError(f'te: parameters of "{name}" must be tensors, te.scalar variables or sizes (te.var)')
    if len(set(args)) != len(args):
        raise ValueError(f'te: a parameter of "{name}" is listed twice, an output must be computed')


class _FunctionEmitter:
    """Emits the body of a function: allocations first, then extents, then one loop nest per computation."""

    def __init__(self, func: PrimFuncOp):
        self._names = Names(symbols=dict(zip(func.symbol_names, func.symbol_args, strict=True)))
        self._func = func
        self._extents: dict[Dim, SSAValue] = {}
        self._allocations: list[Operation] = []
        self._header: list[Operation] = []
        self._nests: list[Operation] = []
        self._taken: dict[str, int] = {}

    def bind(self, args: Sequence[Tensor | Expr]) -> None:
        """Binds tensors, scalars and symbols to the parameters of the function."""
        for arg, value in zip(args, self._func.params, strict=True):
            if isinstance(arg, Tensor):
                self._names.buffers[arg] = value
            else:
                self._names.variables[arg] = value

    def emit(self, source: Source) -> None:
        """Appends a computation."""
        for tensor in (*source.outputs, *(source.locals if isinstance(source, Scan) else ())):
            if tensor not in self._names.buffers:
                op = AllocBufferOp(BufferType(tensor.shape, tensor.dtype))
                op.buffer.name_hint = as_name_hint(tensor.name)
                self._allocations.append(op)
                self._names.buffers[tensor] = op.buffer
        if isinstance(source, Compute):
            self._nests += emit_compute(source, self._names, self._extent, self._unique)
        elif isinstance(source, Scan):
            self._nests += emit_scan(source, self._names, self._extent, self._unique)
        elif isinstance(source, Inlined):
            self._nests += emit_inlined(source, self._names, self._extent, self._unique)
        else:
            self._nests.append(emit_extern(self._unique(source.name), source, self._names, self._extent))

    def finish(self) -> None:
        """Moves all ops into the function."""
        self._func.body.block.add_ops([*self._allocations, *self._header, *self._nests])

    def _extent(self, dim: Dim) -> SSAValue:
        if (symbol := dim.as_symbol) is not None:
            return self._names.symbols[symbol]
        if dim not in self._extents:
            value = dim.constant_value
            op = DimOp(dim) if value is None else arith.ConstantOp(IntegerAttr(value, IndexType()))
            op.result.name_hint = None if value is None else f"c{value}"
            self._header.append(op)
            self._extents[dim] = op.result
        return self._extents[dim]

    def _unique(self, name: str) -> str:
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return self._unique(f"{name}_{count}") if count else name
