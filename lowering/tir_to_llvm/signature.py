"""The signature of a prim_func."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Attribute

from tir_dialect.analysis.written import written_buffers
from tir_dialect.dims import Bounds, Dim
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.symbols import Interval
from tir_dialect.types import BufferType


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
