"""`lambda-lift`: closures become functions of the module and values made of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.convert_dataflow import SymbolScopes, dissolve
from lowering.relax.functions.expose_prim_funcs import wrap_prim_func_values
from relax_dialect.function_symbols import all_symbols, captures
from relax_dialect.ops.calls import CallClosureOp, CallOp, MakeClosureOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.scope import BindsBlockSymbols, symbol_name
from relax_dialect.struct_info.symbols import free_symbols, fresh_name, iter_bare_symbols
from relax_dialect.struct_info.types import FuncType, as_struct_infos
from relax_dialect.traits import recursion_violations
from tir_dialect.dims import symbol
from tir_dialect.types import SymbolAttr


class LambdaLiftPass(Pass):
    """Turns every `relax.closure` into a private function whose first parameters are the captured values.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
      %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
        %0 = relax.add %x, %y
        relax.return %0
      }
      relax.return %f
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
      %f = relax.make_closure @main_f(%x) : !relax.func<(!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure>
      relax.return %f
    }
    relax.func private @main_f[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>)
        -> !relax.tensor<[n], f32> {
      %0 = relax.add %x, %y
      relax.return %0
    }
    ```

    A symbol that no captured value tells is captured as a number. A call of a known closure becomes a call of its
    function, recursive ones too; only in dataflow regions, which must not recurse by name, the function value is
    called. A PrimFunc that is used as a value is called by a function of its own:

    ```mlir
    %f = relax.make_closure @tir_exp() : !relax.func<...>
    // becomes
    %f = relax.make_closure @tir_exp_function() : !relax.func<...>
    relax.func private @tir_exp_function[%n](%x: ..., %y: ...) -> !relax.tuple<> impure {
      relax.call_kernel @tir_exp(%x, %y) sizes [n]
      ...
    ```

    No closure is left; idempotent; refuses nothing. A dataflow region dissolves if only a closure hid that it recurses,
    which is control flow.
    """

    name = "lambda-lift"
    removes = ("relax.closure",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lifts inner closures before outer ones: what the inner one captures, the outer one captures then."""
        names = {name for inner in op.ops if (name := symbol_name(inner)) is not None}
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            lifted: list[Operation] = []
            for closure in [inner for inner in func.walk(region_first=True) if isinstance(inner, ClosureOp)]:
                name = fresh_name(f"{func.sym_name.data}_{closure.result.name_hint or 'closure'}", names)
                names.add(name)
                lifted.append(_lift(closure, name))
            Rewriter.insert_op(lifted, InsertPoint.after(func))
        wrap_prim_func_values(op, names)
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            # Dissolves dataflow regions through which, now that closures have names, a function calls itself
            # by name.
            regions = dict.fromkeys(
                violation.op.parent_op() for violation in recursion_violations(func, func.sym_name.data)
            )
            scopes = SymbolScopes((func,), all_symbols(func)) if regions else None
            for region in regions:
                if isinstance(region, DataflowOp) and scopes is not None:
                    dissolve(region, scopes)


def _lift(closure: ClosureOp, name: str) -> FuncOp:
    """Replaces a closure without closures inside; the function is in no module yet."""
    values, used = captures(closure)
    symbols = sorted(used.union(free_symbols(closure.function_type)))
    told = {name for value in values for name in iter_bare_symbols(value.type)}
    numbers = [PrimOp(symbol(name)) for name in symbols if name not in told]
    for number in numbers:
        number.result.name_hint = str(number.result.type.value)
    captured = [*(number.result for number in numbers), *values]
    func = FuncOp(name, _lifted_type(closure, captured, symbols), visibility="private")
    made = MakeClosureOp(name, captured, closure.function_type)
    made.result.name_hint = closure.result.name_hint
    inherit_location(closure, [func, *numbers, made])
    _move_body(closure, func, captured)
    Rewriter.replace_op(closure, [*numbers, made], [made.result])
    _call_directly(made)
    return func


def _lifted_type(closure: ClosureOp, captured: Sequence[SSAValue], symbols: Sequence[str]) -> FuncType:
    """The type of the function: captured values first; symbols keep the bounds that they have around the closure."""
    inner = closure.function_type
    bounds: dict[str, SymbolAttr] = {}
    parent = closure.parent_op()
    while parent is not None:
        if isinstance(parent, BindsBlockSymbols):
            bounds |= {bound.symbol.data: bound for bound in parent.symbols}
        parent = parent.parent_op()
    return FuncType(
        [*as_struct_infos(value.type for value in captured), *inner.params],
        inner.ret,
        pure=inner.pure,
        symbols=[*(bounds.get(name) or SymbolAttr(name) for name in symbols), *inner.symbols],
    )


def _move_body(closure: ClosureOp, func: FuncOp, captured: Sequence[SSAValue]) -> None:
    """Moves the ops; they use the parameters instead of the captured values, and the function instead of itself."""
    entry = func.body.block
    given, params = func.params[: len(captured)], func.params[len(captured) :]
    for old, new in zip((*captured, *closure.params), func.params, strict=True):
        new.name_hint = old.name_hint
    own, names = closure.param_names, list[str]()
    for name in func.param_names[: len(given)]:
        names.append(fresh_name(name, [*names, *own]))
    func.name_params([*names, *own])
    arguments: list[SSAValue] = [*func.witnesses[len(func.symbols) - len(closure.symbols) :], *params]
    for old, new in zip(closure.witnesses, arguments, strict=False):
        new.name_hint = old.name_hint
    itself = None
    if closure.itself is not None:
        itself = MakeClosureOp(func.sym_name.data, given, closure.function_type)
        itself.result.name_hint = closure.itself.name_hint
        inherit_location(closure, itself)
        Rewriter.insert_op(itself, InsertPoint.at_end(entry))
        arguments.insert(0, itself.result)
    replacements = dict(zip(captured, given, strict=True))
    for op in closure.walk():
        for index, operand in enumerate(op.operands):
            if (replacement := replacements.get(operand)) is not None:
                op.operands[index] = replacement
    Rewriter.inline_block(closure.body.block, InsertPoint.at_end(entry), arguments)
    if itself is not None:
        _call_directly(itself)


def _call_directly(made: MakeClosureOp) -> None:
    """Calls of the function value become calls of the function; the value goes if nothing else uses it."""
    for use in list(made.result.uses):
        call = use.operation
        if isinstance(call, CallClosureOp) and use.index == 0 and not _in_dataflow(call):
            pure = made.result.type.pure
            direct = CallOp(made.callee, [*made.captured, *call.arguments], call.result.type, pure=pure)
            direct.result.name_hint = call.result.name_hint
            inherit_location(call, direct)
            Rewriter.replace_op(call, direct)
    if not made.result.uses:
        Rewriter.erase_op(made)


def _in_dataflow(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, DataflowOp):
        parent = parent.parent_op()
    return parent is not None
