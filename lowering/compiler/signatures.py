"""What the functions of an executable expect of their arguments, as the run time reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.analysis.effects import written_parameters
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import TensorType, TupleType
from tir_dialect.dtypes import dtype_name
from tir_dialect.ops.calls import CallPackedOp as KernelCallPackedOp
from vm_dialect.arguments import ANY_DTYPE, Kind, Signature, write_signatures
from vm_dialect.executable.model import PACKED_NOTE, SIGNATURES_NOTE
from vm_dialect.ops.calls import CallPackedOp


def signatures_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the signatures of a module's public functions, if it has some."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_private]
    return {SIGNATURES_NOTE: _text(functions)} if functions else {}


def packed_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the packed functions that `vm.func`s and their kernels call, if any."""
    called = (op for op in module.walk() if isinstance(op, CallPackedOp | KernelCallPackedOp))
    names = dict.fromkeys(op.function.data for op in called)
    return {PACKED_NOTE: json.dumps(list(names))} if names else {}


def _text(functions: Iterable[FuncOp]) -> str:
    return write_signatures(
        {
            func.sym_name.data: Signature(tuple(map(_kind, func.function_type.params)), written_parameters(func))
            for func in functions
        }
    )


def _kind(info: StructInfo) -> Kind:
    match info:
        case TensorType():
            return ANY_DTYPE if info.dtype is None else dtype_name(info.dtype)
        case TupleType():
            return tuple(map(_kind, info.fields))
        case _:
            return None
