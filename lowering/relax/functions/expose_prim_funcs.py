"""`expose-prim-funcs`: PrimFuncs get relax functions that call them.

A public one that stands alone gets a function of its name, and one that is used as a value a private one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import Finding, refuse
from lowering.locations import inherit_location
from relax_dialect.ops.callees import prim_func_type, strange_layout
from relax_dialect.ops.calls import MakeClosureOp
from relax_dialect.ops.memory import CallKernelOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import called_functions, find_function
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.analysis.dims import layout_symbols
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.specialization import specialize
from tir_dialect.types import BufferType, row_major_strides


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


class ExposePrimFuncsPass(ModulePass):
    """Wraps every public PrimFunc of a module without Relax functions in a function of its name.

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    // becomes
    tir.prim_func @exp_kernel[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    relax.func @exp[%n](%X: !relax.tensor<[n], f32>, %Y: !relax.tensor<[n], f32>) -> !relax.tuple<> impure {
      relax.call_kernel @exp_kernel(%X, %Y) sizes [n]
      ...
    ```

    So a kernel alone can be built and called: its arguments are checked as those of any function, and it writes into
    some of them. In a module with functions, which say what can be called, a private PrimFunc that one of them calls
    becomes public, since only these have an entry of their own. Idempotent.

    It is called with tensors, which have no gaps: strides and offsets that are symbols of nothing else are those of
    tensors. Refuses a kernel alone with a parameter that has other ones.

    ```mlir
    tir.prim_func @exp[%n, %m, %s](%X: !tir.buffer<[n, m], f32, strides = [s, 1]>, ...)
    // becomes
    tir.prim_func @exp_kernel[%n, %m](%X: !tir.buffer<[n, m], f32>, ...)
    ```
    """

    name = "expose-prim-funcs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Renames the PrimFuncs, and their calls of each other."""
        funcs = [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]
        if len(funcs) < len(op.body.block.ops):
            _publish(op, {func.sym_name.data: func for func in funcs if func.is_private})
            return
        calls = [inner for inner in op.walk() if isinstance(inner, CallOp)]
        called = {call.callee.string_value() for call in calls}
        funcs = [func if func.is_private or func.sym_name.data in called else _of_tensors(func) for func in funcs]
        refuse([found for func in funcs if not func.is_private and (found := _strange(func)) is not None])
        taken = {func.sym_name.data for func in funcs}
        renamed: dict[str, str] = {}
        for func in funcs:
            if not func.is_private:
                name = func.sym_name.data
                renamed[name] = fresh_name(f"{name}_kernel", taken)
                taken.add(renamed[name])
                func.properties["sym_name"] = StringAttr(renamed[name])
                Rewriter.insert_op(wrapper(func, name, "public"), InsertPoint.after(func))
        for call in calls:
            if (name := renamed.get(call.callee.string_value())) is not None:
                call.properties["callee"] = SymbolRefAttr(name)


def _of_tensors(func: PrimFuncOp) -> PrimFuncOp:
    """The function in place of one with strides or offsets that are symbols of their own."""
    types = [param.type for param in func.params]
    known: dict[str, Dim] = {}
    for each in layout_symbols(types):
        shape = SSAValue.get(func.params[each.param], type=BufferType).type.shape
        known[each.name] = constant(0) if each.axis is None else row_major_strides(shape)[each.axis]
    if not known:
        return func
    made = specialize(func, known)
    Rewriter.replace_op(func, made, new_results=())
    return made


def _strange(func: PrimFuncOp) -> Finding | None:
    found = strange_layout(func)
    hint = "take all of the memory as the parameter, and use the part by 'tir.view' or 'tir.match_buffer'"
    return None if found is None else Finding.at(func, f"is called with tensors, but parameter {found}", hint)


def _publish(module: ModuleOp, private: Mapping[str, PrimFuncOp]) -> None:
    """Makes public what functions other than PrimFuncs call."""
    callers = [func for func in module.ops if not isinstance(func, PrimFuncOp)] if private else []
    for caller in callers:
        for op in caller.walk():
            for name in called_functions(op):
                if name in private:
                    private[name].properties.pop("sym_visibility", None)
