"""Everything that has to hold of any module, and of one that is compiled."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsolatedFromAbove

from lowering.diagnostics import fail, refuse
from lowering.verify.dominance import dominance_findings
from lowering.verify.operations import operation_findings
from relax_dialect.ops.structure import FuncOp
from tir_dialect.ops.function import PrimFuncOp


def verify_module(module: ModuleOp) -> None:
    """Raises `InvalidModule` with all errors: of ops, and of dominance and symbols in functions whose ops are right."""
    findings = operation_findings(module)
    if not findings:
        refuse(dominance_findings(module))
        return
    wrong = {_function_of(finding.op, module) for finding in findings}
    for func in module.ops:
        if func not in wrong and module not in wrong and func.has_trait(IsolatedFromAbove):
            findings += dominance_findings(func)
    refuse(findings)


def verify_program(module: ModuleOp) -> None:
    """`verify_module`, and an entry point: a function that is not private (specification, well-formedness 12)."""
    verify_module(module)
    functions = [op for op in module.ops if isinstance(op, FuncOp | PrimFuncOp)]
    if any(isinstance(func, FuncOp) for func in functions) and all(func.is_private for func in functions):
        fail(module, "expected a function that is not private, as entry point", "leave out 'private' of one")


def _function_of(op: Operation, module: ModuleOp) -> Operation:
    """The op of the module that is or holds `op`; the module for itself."""
    while (parent := op.parent_op()) is not None and parent is not module:
        op = parent
    return op
