"""`lower-shapes`: what a signature says of shapes becomes checks in the body."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from relax_dialect.ops.binding import CheckArgsOp, MatchCastOp
from relax_dialect.ops.callees import captured_parameters
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.erase import erase_static
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import ObjectType
from relax_dialect.symbols import find_function


class LowerShapesPass(ModulePass):
    """Makes the shape checks at function entry and exit explicit; signatures no longer mention shapes.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      ...
      relax.return %z
    }
    ```

    After:

    ```mlir
    relax.func @main(%x: !relax.object, %y: !relax.object) -> !relax.tensor<[_], f32> force_pure {
      %x_1, %y_1, %n = relax.check_args(%x, %y) : (!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) binds [n]
        names ["x", "y"] of "main"
      ...
      relax.return %z
    }
    ```

    One op checks all arguments, so that a symbol may be bound by any of them. A result that is not provably of the
    declared type passes a `match_cast` before the return, and so does the result of a call or `make_closure` whose type
    says more than the callee's new signature. Idempotent: a function without symbols whose parameters are objects is
    left alone.
    """

    name = "lower-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Signatures first, then the calls that they affect."""
        functions = [inner for inner in op.ops if isinstance(inner, FuncOp)]
        captured = captured_parameters(op)
        for func in functions:
            _check_result(func)
            _check_arguments(func, captured.get(func.sym_name.data, 0))
        for func in functions:
            for inner in list(func.walk()):
                if isinstance(inner, CallOp | MakeClosureOp):
                    _check_callee(inner)


def implicit_checks(module: ModuleOp) -> Iterator[Operation]:
    """The functions, returns and calls of which the signatures still say more than is checked by ops."""
    for func in module.ops:
        if isinstance(func, FuncOp):
            if _says_shapes(func.function_type):
                yield func
            elif (terminator := _unchecked_return(func)) is not None:
                yield terminator


def _says_shapes(signature: FuncType) -> bool:
    return bool(signature.symbols) or any(not isinstance(param, ObjectType) for param in signature.params)


def _unchecked_return(func: FuncOp) -> ReturnOp | None:
    """The return of a value that is not known to be what the function declares."""
    terminator = func.body.block.last_op
    if not isinstance(terminator, ReturnOp):
        return None
    (actual,) = as_struct_infos((terminator.value.type,))
    known = is_subtype(actual, func.function_type.ret, prover_at(terminator)) is Verdict.YES
    return None if known else terminator


def _check_result(func: FuncOp) -> None:
    """The value has to be what the function declares before it is returned."""
    if (terminator := _unchecked_return(func)) is None:
        return
    cast = MatchCastOp(terminator.value, func.function_type.ret, subject="result")
    cast.result.name_hint = terminator.value.name_hint
    inherit_location(terminator, cast)
    Rewriter.insert_op(cast, InsertPoint.before(terminator))
    terminator.operands[0] = cast.result


def _check_arguments(func: FuncOp, captured: int) -> None:
    """Parameters become objects, and an op at the start of the body makes of them what was declared."""
    signature, names = func.function_type, func.param_names
    if _says_shapes(signature):
        params = func.params
        check = CheckArgsOp(params, signature.params, signature.symbols, names, func.sym_name.data, captured)
        inherit_location(func, check)
        for old, new in zip((*params, *func.witnesses), check.outputs, strict=True):
            new.name_hint = old.name_hint
            old.replace_uses_with_if(new, lambda use: use.operation is not check)
        for param in params:
            Rewriter.replace_value_with_new_type(param, ObjectType())
        Rewriter.insert_op(check, InsertPoint.at_start(func.body.block))
        for witness in func.witnesses:
            func.body.block.erase_arg(witness)
        func.name_params(names)
    func.properties["function_type"] = FuncType(
        [ObjectType()] * len(signature.params), erase_static(signature.ret), pure=signature.pure
    )
    if signature.pure:
        func.properties["force_pure"] = UnitAttr()


def _check_callee(op: CallOp | MakeClosureOp) -> None:
    """The result of a call, or a function value, is what the callee's signature says; the rest is checked."""
    callee = find_function(op, op.callee.string_value())
    if not isinstance(callee, FuncOp):
        return
    stated = callee.function_type.ret
    if isinstance(op, MakeClosureOp):
        left = callee.function_type.params[len(op.captured) :]
        stated = FuncType(left, stated, pure=callee.function_type.pure)
    (wanted,) = as_struct_infos((op.result.type,))
    if wanted == stated or is_subtype(stated, wanted, prover_at(op)) is Verdict.YES:
        return
    result = Rewriter.replace_value_with_new_type(op.result, stated)
    what = "function value" if isinstance(op, MakeClosureOp) else "result"
    cast = MatchCastOp(result, wanted, subject=f"{what} of @{op.callee.string_value()}")
    cast.result.name_hint = result.name_hint
    inherit_location(op, cast)
    result.replace_all_uses_with(cast.result)
    cast.operands[0] = result
    Rewriter.insert_op(cast, InsertPoint.after(op))
