"""How a call from relax meets a PrimFunc: tensors and buffers, prim values and scalars, symbols of both sides."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.types import PrimType, TensorType, TupleType
from relax_dialect.symbols import enclosing_module, find_function
from tir_dialect.dims import Dim, determined
from tir_dialect.dtypes import is_dtype, scalar_type
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


def find_prim_func(op: Operation, callee: SymbolRefAttr) -> PrimFuncOp | None:
    """The PrimFunc that `op` calls; `None` while `op` is in no module. Raises `VerifyException` if there is none."""
    if enclosing_module(op) is None:
        return None
    found = find_function(op, callee.string_value())
    if isinstance(found, PrimFuncOp):
        return found
    what = "not defined in the module" if found is None else f"a '{found.name}'"
    raise VerifyException(f"'{op.name}' op expected a 'tir.prim_func', but @{callee.string_value()} is {what}")


def explicit_symbols(func: PrimFuncOp) -> tuple[str, ...]:
    """The symbols of a PrimFunc that the shapes of its buffers do not determine, so that a caller gives their values.

    They occur in no shape, or only inside of expressions that cannot be solved for them, as in `2 * floordiv(m, 2)`.
    """
    found = determined([dim for param in func.buffer_params for dim in param.type.shape])
    return tuple(name for name in func.symbol_names if name not in found)


def given_symbols(func: PrimFuncOp, count: int) -> tuple[str, ...]:
    """The symbols whose values a call with `count` `tir_vars` gives: those that no buffer determines, or

    * only those that occur in no shape, as known numbers may say what the others are, as in `4 * n == 12`;
    * all of them: then those that buffers determine are compared with the values.
    """
    explicit = explicit_symbols(func)
    found = {name for param in func.buffer_params for dim in param.type.shape for name in dim.symbols}
    least = tuple(name for name in explicit if name not in found)
    ways = (explicit, least, func.symbol_names)
    return next((way for way in ways if len(way) == count), explicit)


def prim_func_type(func: PrimFuncOp) -> FuncType:
    """The type of a PrimFunc as a function value: it writes some of its tensors and returns an empty tuple.

    The values of symbols that no buffer determines come last.
    """
    params = [
        TensorType(param.type.shape, param.type.dtype) if isinstance(param.type, BufferType) else PrimType(param.type)
        for param in func.params
    ]
    numbers = [PrimType(value=name) for name in explicit_symbols(func)]
    return FuncType([*params, *numbers], TupleType(), pure=False, symbols=func.symbols)


def match_prim_func(
    op: Operation, func: PrimFuncOp, actual: Sequence[StructInfo], tir_vars: Sequence[Dim] = ()
) -> Match:
    """Matches the parameters of `func` with the types of arguments and results; the symbols are those of `func`.

    Raises `VerifyException` naming `op` and the parameter at fault.
    """
    subject = f"'{op.name}' op calls @{func.sym_name.data}"
    explicit = given_symbols(func, len(tir_vars))
    if len(explicit) != len(tir_vars):
        raise VerifyException(
            f"{subject} with {len(tir_vars)} tir_vars, expected the values of its symbols [{', '.join(explicit)}], "
            "which no buffer's shape determines"
        )
    if len(func.params) != len(actual):
        raise VerifyException(f"{subject} with {len(actual)} arguments and results, expected {len(func.params)}")
    check_layouts(subject, func)
    declared = [_as_struct_info(param.type, info) for param, info in zip(func.params, actual, strict=True)]
    declared += [PrimType(value=name) for name in explicit]
    values = [*actual, *(PrimType(value=dim) for dim in tir_vars)]
    try:
        return match_types(declared, values, tuple(func.symbols), prover_at(op))
    except Mismatch as mismatch:
        missing = [name for name in explicit_symbols(func) if name not in explicit]
        hint = f"; or give the values of [{', '.join(missing)}] as tir_vars" if missing else ""
        given = mismatch.path.root - len(func.params)
        where = f"parameter {mismatch}" if given < 0 else f"value of {explicit[given]}: {mismatch.reason}"
        raise VerifyException(f"{subject}, {where}{hint}") from mismatch


def check_layouts(subject: str, func: PrimFuncOp) -> None:
    """Raises `VerifyException`, which begins with `subject`, if a tensor cannot be passed for a buffer of `func`."""
    if (found := strange_layout(func)) is not None:
        raise VerifyException(f"{subject}, whose parameter {found}")


def strange_layout(func: PrimFuncOp) -> str | None:
    """Says which parameter has gaps or does not start at the first element, as tensors do; `None` if there is none."""
    for index, param in enumerate(func.params):
        if isinstance(param.type, BufferType) and not _is_plain(param.type):
            return f"#{index} expected a plain layout, got {param.type}"
    return None


def _is_plain(buffer: BufferType) -> bool:
    """Whether a tensor can be passed for a buffer: row-major, from the start of the memory."""
    return buffer.has_default_strides and buffer.offset.constant_value == 0


def _as_struct_info(param: Attribute, actual: StructInfo) -> StructInfo:
    """What a value that is passed for `param` has to be; integers of either sign go to signless scalars."""
    if isinstance(param, BufferType):
        return TensorType(param.shape, param.dtype)
    if isinstance(actual, PrimType) and is_dtype(actual.dtype) and scalar_type(actual.dtype) == param:
        return PrimType(actual.dtype)
    return PrimType(param)


def verify_prim_func_call(
    op: Operation,
    callee: SymbolRefAttr,
    arguments: Sequence[Attribute],
    results: Sequence[Attribute],
    tir_vars: Sequence[Dim],
) -> None:
    """Raises `VerifyException` unless arguments and results can be the parameters of the PrimFunc."""
    func = find_prim_func(op, callee)
    if func is not None:
        match_prim_func(op, func, as_struct_infos((*arguments, *results)), tir_vars)
