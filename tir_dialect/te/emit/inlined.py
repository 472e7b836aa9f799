"""Emission of the body of a function among other computations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.te.emit.nests import ExtentOf
from tir_dialect.te.emit.scalar import Names
from tir_dialect.te.extern_primfunc import Inlined
from tir_dialect.types import BufferType


def emit_inlined(source: Inlined, names: Names, extent_of: ExtentOf, unique: Callable[[str], str]) -> list[Operation]:
    """Copies of the ops of the function, which speak of the buffers and dimensions that take the place of its own."""
    values: dict[SSAValue, SSAValue] = {}
    for symbol, argument in zip(source.func.symbol_names, source.func.symbol_args, strict=True):
        values[argument] = extent_of(source.symbols[symbol])
    for param, tensor in zip(source.func.params, source.arguments, strict=True):
        values[param] = names.buffers[tensor]
    ops = [op.clone(values) for op in source.func.body.block.ops]
    for op in [inner for each in ops for inner in each.walk()]:
        _rename(op, source.symbols)
        if isinstance(op, BlockOp):
            op.block_name = StringAttr(unique(op.block_name.data))
    return ops


def _rename(op: Operation, symbols: Mapping[str, Dim]) -> None:
    """Replaces symbols in the types and attributes of an op."""
    op.properties = {name: _substituted(value, symbols) for name, value in op.properties.items()}
    for result in op.results:
        if (kind := _substituted(result.type, symbols)) != result.type:
            Rewriter.replace_value_with_new_type(result, kind)


def _substituted(attribute: Attribute, symbols: Mapping[str, Dim]) -> Attribute:
    if isinstance(attribute, BufferType):
        return attribute.substitute(symbols)
    return DimAttr(attribute.data.substitute(symbols)) if isinstance(attribute, DimAttr) else attribute
