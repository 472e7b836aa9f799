"""`expose-prim-funcs`: PrimFuncs of a module without functions can be called."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.graph.prim_func_values import wrapper
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp


@dataclass(frozen=True)
class ExposePrimFuncsPass(ModulePass):
    """Gives every public PrimFunc of a module that has nothing else a function of its name, which calls it.

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    // becomes
    tir.prim_func @exp_kernel[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    relax.func @exp[%n](%X: !relax.tensor<[n], f32>, %Y: !relax.tensor<[n], f32>) -> !relax.tuple<> impure {
      relax.call_kernel @exp_kernel(%X, %Y) sizes [n]
      ...
    ```

    So a kernel alone can be built and called: its arguments are checked as those of any function, and it writes into
    some of them. A module with functions stays as it is, since these say what can be called; hence idempotent. Refuses
    nothing.
    """

    name = "expose-prim-funcs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Renames the PrimFuncs, and their calls of each other."""
        funcs = [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]
        if len(funcs) < len(op.body.block.ops):
            return
        taken = {func.sym_name.data for func in funcs}
        renamed: dict[str, str] = {}
        for func in funcs:
            if not func.is_private:
                name = func.sym_name.data
                renamed[name] = fresh_name(f"{name}_kernel", taken)
                taken.add(renamed[name])
                func.properties["sym_name"] = StringAttr(renamed[name])
                Rewriter.insert_op(wrapper(func, name, "public"), InsertPoint.after(func))
        for call in [inner for inner in op.walk() if isinstance(inner, CallOp)]:
            if (name := renamed.get(call.callee.string_value())) is not None:
                call.properties["callee"] = SymbolRefAttr(name)
