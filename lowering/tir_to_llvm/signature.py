"""The signature of a prim_func."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from lowering.tir_to_llvm.emitter import LoweringOptions
from tir_dialect.analysis.written import written_buffers
from tir_dialect.dims import Bounds, Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.symbols import Interval
from tir_dialect.types import BufferType


def function_properties(options: LoweringOptions, crowded: bool = False) -> dict[str, Attribute]:
    """Properties of a function with code: it throws no exceptions, and prefers vectors of the target's width.

    Where registers are `crowded`, the stack begins at a multiple of theirs: LLVM leaves it where it is, and to load
    what was stored across two lines of the cache just before takes as long as a dozen instructions.
    """
    return {"passthrough": _passthrough(options.vector_bits, crowded)}


@cache
def _passthrough(vector_bits: int, crowded: bool) -> ArrayAttr[Attribute]:
    found: list[Attribute] = [StringAttr("nounwind"), _pair("prefer-vector-width", vector_bits)]
    if crowded:
        found.append(_pair("alignstack", vector_bits // 8))
    return ArrayAttr(found)


def _pair(name: str, value: int) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name), StringAttr(str(value))])


def buffer_attributes(type_: BufferType, alone: bool) -> DictionaryAttr:
    """Attributes of a pointer parameter: its alignment, and whether nothing else points to its memory.

    The alignment is that of an element: what the type says is of memory that a function allocates, and callers bring
    arrays that begin anywhere.
    """
    return _pointer_attributes(byte_size(type_.dtype), alone)


@cache
def _pointer_attributes(alignment: int, alone: bool) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"llvm.align": IntegerAttr(alignment, i64)}
    if alone:
        attributes["llvm.noalias"] = UnitAttr()
    return DictionaryAttr(attributes)


@dataclass(frozen=True)
class KernelParam:
    """A parameter: a buffer or a scalar."""

    name: str
    type: Attribute
    is_written: bool
    """Whether the function may write the buffer."""


@dataclass(frozen=True)
class KernelSignature:
    """Symbols, in order, then parameters, in order: the arguments of the native function."""

    name: str
    symbols: tuple[tuple[str, Interval], ...]
    """Name, and least and greatest value (both inclusive, None if unbounded)."""

    params: tuple[KernelParam, ...]
    may_alias: bool
    """Whether buffers may overlap although one of them is written."""

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols."""
        return tuple(name for name, _ in self.symbols)

    @property
    def bounds(self) -> Bounds:
        """The bounds of the symbols."""
        return Bounds(dict(self.symbols))

    def key(self) -> str:
        """A text that equal signatures share, for cache keys."""
        params = [(param.name, str(param.type), param.is_written) for param in self.params]
        return f"{self.name} {self.symbols} {params} {self.may_alias}"

    def dimensions(self) -> Iterator[tuple[int, int, Dim]]:
        """Every dimension of every buffer: the index of the parameter, the axis, and the expected extent."""
        for index, param in enumerate(self.params):
            if isinstance(param.type, BufferType):
                for axis, dim in enumerate(param.type.shape):
                    yield index, axis, dim


def kernel_signature(function: PrimFuncOp) -> KernelSignature:
    """The signature of a prim_func; linear in its size."""
    written = written_buffers(function)
    return KernelSignature(
        function.sym_name.data,
        tuple((symbol.symbol.data, symbol.interval) for symbol in function.symbols),
        tuple(
            KernelParam(param.name_hint or f"p{index}", param.type, param in written)
            for index, param in enumerate(function.params)
        ),
        function.may_alias is not None,
    )
