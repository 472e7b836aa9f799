"""`expose-prim-funcs`: PrimFuncs that functions call, or that stand alone, are kernels of their own."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import Finding, refuse
from lowering.relax.functions.prim_func_values import wrapper
from relax_dialect.ops.prim_func import strange_layout
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import called_functions
from tir_dialect.analysis.layout_symbols import layout_symbols
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.specialization import specialize
from tir_dialect.types import BufferType, row_major_strides


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
