"""PrimFuncs whose loops run over tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.analysis.loop_groups import LoopGroup
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.attributes import SymbolAttr, as_name_hint
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import BufferType
from tir_dialect.walking import ops_in


def tiled_function(func: PrimFuncOp, groups: Sequence[LoopGroup]) -> PrimFuncOp:
    """The function for any sizes of the dimensions of some groups: a copy that is put after it, unless it is one.

    In the copy, the dimensions of each group, and the loops over them, have a new symbol as size. A symbol that was
    their size keeps the value that it had, and is dropped where it has no use.
    """
    values: dict[SSAValue, SSAValue] = {}
    made = func.clone(values)
    taken = set(func.symbol_names)
    for group in groups:
        name = fresh_name(group.size.as_symbol or "tile", taken)
        taken.add(name)
        _resize(made, group, values, name)
    _drop_unused(made)
    sizes = [group.size.as_symbol for group in groups]
    if None not in sizes and len(set(sizes)) == len(sizes) and not {*sizes} & {*made.symbol_names}:
        return func
    module = func.parent_op()
    names = (
        [op.sym_name.data for op in ops_in(*module.regions) if isinstance(op, FuncOp | PrimFuncOp)] if module else []
    )
    made.properties["sym_name"] = StringAttr(fresh_name(f"{func.sym_name.data}_tile", names))
    made.properties["sym_visibility"] = StringAttr("private")
    for other in module.regions[0].block.ops if module else ():
        if isinstance(other, PrimFuncOp) and other.is_private and _same(other, made):
            return other
    Rewriter.insert_op(made, InsertPoint.after(func))
    return made


def _same(one: PrimFuncOp, other: PrimFuncOp) -> bool:
    """Whether functions differ in their names only."""
    copy = one.clone()
    copy.properties["sym_name"] = other.sym_name
    return str(copy) == str(other)


def _resize(func: PrimFuncOp, group: LoopGroup, values: dict[SSAValue, SSAValue], name: str) -> None:
    """Gives the dimensions and variables of a group a symbol as size."""
    size = symbol(name)
    block = func.body.block
    witness = block.insert_arg(IndexType(), len(func.symbols))
    witness.name_hint = as_name_hint(name)
    func.symbols = ArrayAttr([*func.symbols, SymbolAttr(name)])
    for buffer, dim in group.dims.items():
        values[buffer] = _reshape(values[buffer], dim, size)
    for variable in (values[each] for each in group.variables):
        loop, owner = loop_of(variable), block_of(variable)
        if loop is not None:
            loop.operands[len(loop.operands) - 1] = witness
        elif owner is not None:
            at = next(at for at, each in enumerate(owner.iterators) if each.value is variable)
            owner.operands[len(owner.bindings) + at] = witness


def _reshape(buffer: SSAValue, dim: int, size: Dim) -> SSAValue:
    old = buffer.type
    if not isinstance(old, BufferType):
        raise TypeError(f"expected a buffer, got {old}")
    shape = [size if at == dim else each for at, each in enumerate(old.shape)]
    new = BufferType(shape, old.dtype, scope=old.scope, align=old.align)
    return Rewriter.replace_value_with_new_type(buffer, new)


def _drop_unused(func: PrimFuncOp) -> None:
    """Drops sizes that nobody uses any more, and the symbols that were only in these."""
    for op in ops_in(func.body):
        if isinstance(op, DimOp | arith.ConstantOp) and not op.result.uses:
            Rewriter.erase_op(op)
    types = [value.type for op in ops_in(func.body) for value in op.results] + [param.type for param in func.params]
    used = {name for info in types if isinstance(info, BufferType) for name in info.symbols}
    used |= {name for op in ops_in(func.body) if isinstance(op, DimOp) for name in op.dim.symbols}
    pairs = list(zip(func.symbols, func.symbol_args, strict=True))
    kept = [(each, arg) for each, arg in pairs if each.symbol.data in used or arg.uses]
    func.symbols = ArrayAttr([each for each, _ in kept])
    for pair in pairs:
        if pair not in kept:
            func.body.block.erase_arg(pair[1])
