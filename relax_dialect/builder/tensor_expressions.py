"""`emit_te`: a function on tensor expressions becomes a PrimFunc and a call of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.ir import SSAValue

from relax_dialect.builder.calls import CallEmitter
from relax_dialect.builder.emitter import BuilderError
from relax_dialect.builder.expr import Expr
from relax_dialect.ops.callees import explicit_symbols
from relax_dialect.ops.shapes import TupleGetOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect import te
from tir_dialect.dims import Dim, symbol


@dataclass
class KernelSymbols:
    """The dimensions of a kernel's parameters: symbols keep their names, and so do expressions over symbols that stand
    alone in some dimension; any other dimension gets a symbol of its own, as the kernel could not solve it.
    """

    alone: frozenset[str]
    taken: set[str]
    renamed: dict[Dim, str] = field(default_factory=dict[Dim, str])

    @staticmethod
    def of(dims: Iterable[Dim], scope: Iterable[str]) -> KernelSymbols:
        """The symbols of a kernel whose parameters have these dimensions; `scope` are the caller's symbols."""
        known = list(dims)
        alone = frozenset(name for dim in known if (name := dim.as_symbol) is not None)
        return KernelSymbols(alone, {*scope, *(name for dim in known for name in dim.symbols)})

    def inside(self, dim: Dim) -> Dim:
        """A dimension of a parameter in the kernel's symbols."""
        if dim.symbols <= self.alone:
            return dim
        if dim not in self.renamed:
            self.renamed[dim] = fresh_name(f"d{len(self.renamed)}", self.taken)
            self.taken.add(self.renamed[dim])
        return symbol(self.renamed[dim])

    def outside(self, dim: Dim) -> Dim:
        """A dimension of the kernel in the caller's symbols."""
        return dim.substitute({name: outer for outer, name in self.renamed.items()})


class KernelArguments:
    """What a function on tensor expressions is called with, and what its PrimFunc is."""

    def __init__(self, builder: CallEmitter, arguments: Iterable[Any]):
        self._builder = builder
        found = dict.fromkeys(_tensors(arguments))
        self._known = {value: self._with_known_dims(value) for value in found}
        dims = [dim for value in self._known.values() for dim in _dims(value)]
        self.symbols = KernelSymbols.of(dims, builder.symbols)
        self.values: list[SSAValue] = []
        self.parameters: list[te.Tensor | te.Expr] = []
        self._made: dict[SSAValue, te.Tensor | te.Expr] = {}

    def convert(self, argument: Any, name: str) -> Any:
        """An argument as the function takes it; `name` is that of a parameter without one."""
        if isinstance(argument, list | tuple):
            parts = cast("Sequence[Any]", argument)
            converted = [self.convert(part, f"{name}{index}") for index, part in enumerate(parts)]
            return converted if isinstance(argument, list) else tuple(converted)
        if not isinstance(argument, Expr):
            return argument
        info = argument.type
        if isinstance(info, TensorType):
            return self._tensor(self._known[argument.value], name)
        if isinstance(info, PrimType):
            return info.value if info.value is not None else self._scalar(argument.value, name)
        if isinstance(info, ShapeType) and info.known_dims is not None:
            return info.known_dims
        if isinstance(info, TupleType):
            return tuple(self.convert(field, f"{name}{index}") for index, field in enumerate(argument))
        raise BuilderError(f"emit_te: argument {name} expected a tensor, prim, known shape or tuple, got {info}")

    def _tensor(self, value: SSAValue, name: str) -> te.Tensor:
        info = value.type
        if not isinstance(info, TensorType) or info.dtype is None:
            raise BuilderError(f"emit_te: argument {name} expected a tensor of known dtype, got {info}")
        shape = [self.symbols.inside(dim) for dim in _dims(value)]
        return self._parameter(value, lambda: te.placeholder(shape, str(info.dtype), name))

    def _scalar(self, value: SSAValue, name: str) -> te.Expr:
        dtype = str(cast("PrimType", value.type).dtype)
        return self._parameter(value, lambda: te.scalar(name, dtype))

    def _parameter(self, value: SSAValue, make: Callable[[], Any]) -> Any:
        if value not in self._made:
            self._made[value] = make()
            self.values.append(value)
            self.parameters.append(self._made[value])
        return self._made[value]

    def _with_known_dims(self, value: SSAValue) -> SSAValue:
        """The tensor with names for the dimensions of which nothing is known."""
        info = value.type
        if isinstance(info, TensorType) and info.dims is None:
            raise BuilderError(f"emit_te: expected a tensor of known rank, got {info}: use match_cast first")
        return self._builder.with_named_dims(value)


def emit_te(
    builder: CallEmitter,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str | None,
) -> Expr | tuple[Expr, ...]:
    """Emits a call of the PrimFunc that `function` describes; see `BlockBuilder.emit_te`."""
    flat = [_fields(builder, argument) for argument in arguments]
    kernel = KernelArguments(builder, [*flat, *keywords.values()])
    # Names for the parameters of a kernel: those of the function, as far as it has them.
    count = len(flat)
    own = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names = [own[index] if index < len(own) else f"A{index}" for index in range(count)]
    positional = [kernel.convert(argument, each) for argument, each in zip(flat, names, strict=True)]
    named = {key: kernel.convert(argument, key) for key, argument in keywords.items()}
    outputs = function(*positional, **named)
    # The tensors that a function gave.
    given = cast("Sequence[object]", outputs) if isinstance(outputs, list | tuple) else [outputs]
    tensors = [each for each in given if isinstance(each, te.Tensor)]
    if not tensors or len(tensors) != len(given):
        raise BuilderError(f"emit_te: expected the function to give a te.Tensor or several, got {outputs!r}")
    func = te.create_prim_func([*kernel.parameters, *tensors], name or _name(function))
    out = [TensorType([kernel.symbols.outside(dim) for dim in each.shape], each.dtype) for each in tensors]
    tir_vars = [kernel.symbols.outside(symbol(each)) for each in explicit_symbols(func)]
    results = builder.call_tir(func, builder.exprs(kernel.values), list(out), tir_vars=tir_vars)
    return results[0] if isinstance(outputs, te.Tensor) else results


def _fields(builder: CallEmitter, argument: Any) -> Any:
    """Tuples of the program as sequences of their fields."""
    if isinstance(argument, Expr) and isinstance(argument.type, TupleType):
        fields = range(len(argument.type.fields))
        parts = [builder.insert(TupleGetOp(argument.value, index)).result for index in fields]
        return tuple(_fields(builder, part) for part in builder.exprs(parts))
    return argument


def _tensors(arguments: Iterable[Any]) -> Iterator[SSAValue]:
    for argument in arguments:
        if isinstance(argument, Expr) and isinstance(argument.type, TensorType):
            yield argument.value
        elif isinstance(argument, list | tuple):
            yield from _tensors(cast("Sequence[Any]", argument))


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return (value.type.known_dims or ()) if isinstance(value.type, TensorType) else ()


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else "te"
