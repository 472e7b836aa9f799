"""What the functions of an executable expect of their arguments, as the run time reads it."""

from __future__ import annotations

import json

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.ops.structure import FuncOp
from relax_dialect.signatures import signature_of
from tir_dialect.ops.calls import CallPackedOp as KernelCallPackedOp
from tir_dialect.walking import walked
from vm_dialect.arguments import write_signatures
from vm_dialect.executable.model import PACKED_NOTE, SIGNATURES_NOTE
from vm_dialect.ops.calls import CallPackedOp


def signatures_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the signatures of a module's public functions, if it has some."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_private]
    if not functions:
        return {}
    return {SIGNATURES_NOTE: write_signatures({func.sym_name.data: signature_of(func) for func in functions})}


def packed_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the packed functions that `vm.func`s and their kernels call, if any."""
    called = (op for op in walked(module) if isinstance(op, CallPackedOp | KernelCallPackedOp))
    names = dict.fromkeys(op.function.data for op in called)
    return {PACKED_NOTE: json.dumps(list(names))} if names else {}
