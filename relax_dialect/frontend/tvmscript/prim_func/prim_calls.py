"""Calls of another PrimFunc of the module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Pointer, Region
from relax_dialect.frontend.tvmscript.prim_func.views import view
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.scope import FunctionRef, ModuleRef
from tir_dialect.dims import Dim
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader


def call_prim_func(reader: TirStatementReader, node: ast.Call, callee: str) -> object:
    """Calls a PrimFunc; the value is what it returns, which it writes behind its other arguments."""
    func = reader.program.prim_func(callee)
    if func is None:
        reader.fail(node.func, f"{callee} is a relax function, which a PrimFunc cannot call")
    given = Arguments(reader.source, node, callee, "*arguments").rest
    arguments: list[SSAValue] = []
    sizes: dict[str, SSAValue] = {}
    params = iter(func.op.params)
    for index, argument in enumerate(given):
        name = func.symbol_at(index)
        if name is not None:
            sizes[name] = reader.index_value(argument, reader.value(argument))
        elif func.is_unused(index):
            continue
        elif (param := next(params, None)) is not None:
            arguments.append(_argument(reader, argument, param))
        else:
            reader.fail(argument, f"{callee} takes {len(func.op.params)} arguments")
    result = None if func.result is None else alloc(reader, node, func.result, "returned")
    if result is not None:
        arguments.append(result.value)
    _solve(func.op, arguments, sizes, reader, node)
    values = [sizes[name] for name in func.op.symbol_names]
    reader.block.add_op(reader.emit(node, lambda: CallOp(callee, values, arguments)))
    if result is None:
        return None
    # read at once: the next call writes elsewhere, but what is returned may be used after other effects
    (value,) = reader.values(node, reader.load(node, Region(result, ())))
    return reader.variable(value, result.tensor.dtype)


def callee_of(reader: TirStatementReader, node: ast.expr) -> str | None:
    """The PrimFunc of the module that an expression names."""
    if isinstance(node, ast.Name):
        found = reader.scope.find(node.id)
        if isinstance(found, FunctionRef):
            return found.name
        return node.id if found is None and node.id in reader.program else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = reader.scope.find(node.value.id)
        if (isinstance(owner, ModuleRef) or reader.program.is_module(node.value.id)) and node.attr in reader.program:
            return node.attr
    return None


def _argument(reader: TirStatementReader, node: ast.expr, param: SSAValue) -> SSAValue:
    value = reader.value(node)
    if isinstance(param.type, BufferType):
        if isinstance(value, Pointer):
            value = _over_memory(reader, node, value, param.type)
        if not isinstance(value, Buffer):
            reader.fail(node, f"expected a buffer of type {param.type}")
        return value.value
    # what has no dtype of its own takes that of the parameter
    is_open = isinstance(value, bool | int | float | Dim) or (isinstance(value, Scalar) and is_index(value.dtype))
    made = reader.scalar_value(node, value, to_dtype(str(param.type)) if is_open else None)
    if made.type != param.type:
        reader.fail(node, f"expected a scalar of type {param.type}, got {made.type}; convert it with T.Cast")
    return made


def _over_memory(reader: TirStatementReader, node: ast.expr, memory: Pointer, kind: BufferType) -> Buffer:
    """The buffer that a callee declares over memory; a row of what is left, where it does not say how much that is."""
    if kind.symbols:
        left = reader.emit(node, lambda: memory.extent - reader.to_dim(node, memory.start))
        kind = BufferType([left], memory.dtype, scope=memory.scope)
    return view(reader, node, memory, kind)


def _solve(
    func: PrimFuncOp,
    arguments: list[SSAValue],
    sizes: dict[str, SSAValue],
    reader: TirStatementReader,
    node: ast.AST,
) -> None:
    """The values of the callee's symbols that stand alone in a shape."""
    for param, argument in zip(func.params, arguments, strict=False):
        if isinstance(param.type, BufferType) and isinstance(argument.type, BufferType):
            for dim, known in zip(param.type.shape, argument.type.shape, strict=False):
                if dim.as_symbol is not None and dim.as_symbol not in sizes:
                    sizes[dim.as_symbol] = _value(reader, node, known)
    for name in func.symbol_names:
        if name not in sizes:
            reader.fail(node, f"the dimension {name} of {func.sym_name.data} follows from no argument's shape")


def _value(reader: TirStatementReader, node: ast.AST, dim: Dim) -> SSAValue:
    return reader.dim_value(node, dim)
