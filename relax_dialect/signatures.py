"""What relax functions expect of arguments from outside: the same for the interpreter and for compiled code."""

from __future__ import annotations

from relax_dialect.analysis.effects import written_parameters
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.struct_info.types import StructInfo, TensorType, TupleType
from tir_dialect.dtypes import dtype_name
from vm_dialect.arguments import ANY_DTYPE, Kind, Signature


def signature_of(func: FuncOp | ClosureOp) -> Signature:
    """The kinds of the parameters, and which of them the function may write into."""
    written = written_parameters(func) if isinstance(func, FuncOp) else frozenset[int]()
    return Signature(tuple(map(_kind, func.function_type.params)), written)


def _kind(info: StructInfo) -> Kind:
    match info:
        case TensorType():
            return ANY_DTYPE if info.dtype is None else dtype_name(info.dtype)
        case TupleType():
            return tuple(map(_kind, info.fields))
        case _:
            return None
