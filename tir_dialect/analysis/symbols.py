"""The symbols that the body of a function uses."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Attribute, Operation

from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import BufferType


def unbound_symbol(func: PrimFuncOp) -> tuple[str, str] | None:
    """A symbol that `func` uses but does not bind, and its user; `None` if there is none. Linear in the body."""
    bound = frozenset(func.symbol_names)
    for user, symbols in _uses(func):
        if not symbols <= bound:
            return min(symbols - bound), user
    return None


def _uses(func: PrimFuncOp) -> Iterator[tuple[str, frozenset[str]]]:
    for index, param in enumerate(func.params):
        yield f"parameter #{index}", _symbols(param.type)
    for op in func.body.walk():
        if isinstance(op, DimOp):
            yield _describe(op), op.dim.symbols
        for type in op.result_types:
            if isinstance(type, BufferType):
                yield _describe(op), type.symbols


def _symbols(type: Attribute) -> frozenset[str]:
    return type.symbols if isinstance(type, BufferType) else frozenset()


def _describe(op: Operation) -> str:
    return f"'{op.name}'"
