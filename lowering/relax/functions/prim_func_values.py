"""PrimFuncs as function values: relax functions that call them."""

from __future__ import annotations

from typing import Literal

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from relax_dialect.ops.calls import MakeClosureOp
from relax_dialect.ops.memory import CallKernelOp
from relax_dialect.ops.prim_func import prim_func_type
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import find_function
from tir_dialect.dims import symbol
from tir_dialect.ops.function import PrimFuncOp


def wrap_prim_func_values(module: ModuleOp, names: set[str]) -> None:
    """Lets every function value of a PrimFunc be that of a relax function which calls it; `names` are taken."""
    wrappers: dict[PrimFuncOp, str] = {}
    for made in [op for op in module.walk() if isinstance(op, MakeClosureOp)]:
        func = find_function(made, made.callee.string_value())
        if not isinstance(func, PrimFuncOp):
            continue
        if func not in wrappers:
            wrappers[func] = fresh_name(f"{func.sym_name.data}_function", names)
            names.add(wrappers[func])
            Rewriter.insert_op(wrapper(func, wrappers[func], "private"), InsertPoint.after(func))
        made.properties["callee"] = SymbolRefAttr(wrappers[func])


def wrapper(func: PrimFuncOp, name: str, visibility: Literal["public", "private"]) -> FuncOp:
    """A relax function that does nothing but call a PrimFunc."""
    outer = FuncOp(name, prim_func_type(func), visibility=None if visibility == "public" else visibility)
    arguments = outer.params[: len(func.params)]
    for new, old in zip(arguments, func.params, strict=True):
        new.name_hint = old.name_hint
    sizes = [symbol(each) for each in func.symbol_names]
    call, unit = CallKernelOp(func.sym_name.data, arguments, sizes), TupleOp()
    outer.body.block.add_ops([call, unit, ReturnOp(unit.result)])
    inherit_location(func, outer)
    return outer
