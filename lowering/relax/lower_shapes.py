"""`lower-shapes`: what a signature says of shapes becomes checks in the body.

Calls of PrimFuncs whose arguments are not wholly known get theirs, with fresh symbols for what they bind.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.ops.binding import CheckArgsOp, MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.callees import captured_parameters, find_prim_func, given_symbols, match_prim_func
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import find_function, prover_at, symbols_used, symbols_witnessed
from relax_dialect.struct_info.join import refine
from relax_dialect.struct_info.match import AccessPath, Match, Verdict, is_subtype
from relax_dialect.struct_info.symbols import erase_static, fresh_name
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    as_struct_infos,
)
from tir_dialect.dims import CheckKind, Dim, constant, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


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


class FreshSymbols:
    """Symbols that no op of a function uses or binds; the function is read when the first one is asked for."""

    def __init__(self, func: FuncOp):
        self._func = func
        self._taken: set[str] | None = None

    def take(self, count: int) -> list[str]:
        """`count` new symbols: `s0`, `s1`, ..."""
        if self._taken is None:
            ops = list(self._func.walk())
            self._taken = {bound.symbol.data for bound in self._func.symbols}
            for op in ops:
                self._taken |= symbols_used(op)
                self._taken.update(symbols_witnessed(op))
        names: list[str] = []
        index = 0
        while len(names) < count:
            name = fresh_name(f"s{index}", self._taken)
            index += 1
            self._taken.add(name)
            names.append(name)
        return names


def bind_call(call: DestinationPassing, symbols: FreshSymbols) -> None:
    """Casts arguments to what the PrimFunc takes, and shapes of results to their ranks, with a name per dimension.

    A shape of unknown rank that a packed function is called with stays what it is.
    """
    func = _callee(call)
    ranks = [info.rank for info in as_struct_infos(call.res.types) if isinstance(info, TensorType)]
    if func is not None:
        targets = call.targets if isinstance(call, CallTIRInplaceOp) else [-1] * len(ranks)
        params = iter([param.type for param in func.params[len(call.arguments) :]])
        for index, param in enumerate(func.params[: len(call.arguments)]):
            _cast(call, index, _declared(param.type), symbols)
        for index, target in enumerate(targets):
            param = next(params, None) if target < 0 else None
            if isinstance(param, BufferType):
                ranks[index] = len(param.shape)
    for index, rank in enumerate(ranks[: len(call.shapes)]):
        if rank is not None:
            _cast(call, len(call.arguments) + index, ShapeType([None] * rank), symbols)


def _callee(call: DestinationPassing) -> PrimFuncOp | None:
    return find_prim_func(call, call.callee) if isinstance(call, CallTIROp | CallTIRInplaceOp) else None


def _declared(param: Attribute) -> StructInfo:
    """What a value that is passed for a parameter has to be; of dimensions only their number."""
    if isinstance(param, BufferType):
        return TensorType([None] * len(param.shape), param.dtype)
    return ObjectType()


def _cast(call: DestinationPassing, index: int, declared: StructInfo, symbols: FreshSymbols) -> None:
    value = call.operands[index]
    (actual,) = as_struct_infos([value.type])
    wanted, new = _named(refine(actual, declared), symbols)
    if wanted == actual:
        return
    given = len(call.arguments)
    what = f"argument #{index}" if index < given else f"shape of result #{index - given}"
    cast = MatchCastOp(value, wanted, new, f"{what} of a call")
    cast.result.name_hint = value.name_hint
    inherit_location(call, cast)
    Rewriter.insert_op(cast, InsertPoint.before(call))
    call.operands[index] = cast.result


def _named(info: StructInfo, symbols: FreshSymbols) -> tuple[StructInfo, list[str]]:
    """The type with a new symbol for each unknown dimension, and the symbols."""
    dims: Shape = info.dims if isinstance(info, TensorType | ShapeType) else None
    if dims is None or None not in dims:
        return info, []
    names = symbols.take(sum(dim is None for dim in dims))
    new = iter(names)
    named = [symbol(next(new)) if dim is None else dim for dim in dims]
    return (info.with_shape(named) if isinstance(info, TensorType) else ShapeType(named)), names


def open_checks(call: CallTIROp | CallTIRInplaceOp) -> Iterator[DimCheck]:
    """What is left to check of the sizes that a PrimFunc is called with, when all of them have names."""
    func = _callee(call)
    if func is None:
        return
    targets = call.targets if isinstance(call, CallTIRInplaceOp) else [-1] * len(call.res)
    fresh = [info for target, info in zip(targets, call.res.types, strict=True) if target < 0]
    types = as_struct_infos((*call.arguments.types, *fresh))
    try:
        match = match_prim_func(call, func, types, call.tir_dims)
    except VerifyException as error:
        fail(call, str(error))
    for relation, left, right, position in _relations(match):
        if match.slots.keys().isdisjoint(left.symbols | right.symbols):
            yield DimCheck(relation, left, right, _subject(call, func, position))


def _relations(match: Match) -> Iterator[tuple[DimRelation, Dim, Dim, AccessPath]]:
    for inserted in match.dim_checks:
        check = inserted.check
        match check.kind:
            case CheckKind.EQUAL:
                yield DimRelation.EQUAL, check.lhs, check.rhs, inserted.path
            case CheckKind.DIVISIBLE:
                yield DimRelation.EQUAL, check.lhs % check.rhs, constant(0), inserted.path
            case CheckKind.NON_NEGATIVE:
                yield DimRelation.AT_MOST, constant(0), check.lhs, inserted.path
    for bound in match.bound_checks:
        low, high = bound.symbol.interval
        yield DimRelation.AT_MOST, constant(low), bound.value, bound.path
        if high is not None:
            yield DimRelation.AT_MOST, bound.value, constant(high), bound.path


def _subject(call: CallTIROp | CallTIRInplaceOp, func: PrimFuncOp, position: AccessPath) -> str:
    given = position.root - len(func.params)
    if given >= 0:
        return f"value of {given_symbols(func, len(call.tir_dims))[given]} in @{func.sym_name.data}"
    name = func.params[position.root].name_hint
    what = f"argument #{position.root}{f' ({name})' if name else ''} of @{func.sym_name.data}"
    return what if position.dim is None else f"dimension {position.dim} of {what}"
