"""Calls of PrimFuncs whose arguments are not wholly known: what is read from values, and what is checked."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.shapes.fresh import FreshSymbols
from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.prim_func import find_prim_func, given_symbols, match_prim_func
from relax_dialect.struct_info.base import Shape, StructInfo, as_struct_infos
from relax_dialect.struct_info.match import AccessPath, Match
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.types import ObjectType, ShapeType, TensorType
from tir_dialect.dims import CheckKind, Dim, constant, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


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
