"""Everything that has to hold of any module, and of one that is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding, fail, refuse
from lowering.verify.dominance import dominance_findings
from lowering.verify.operations import declaration_error, operation_findings
from relax_dialect.ops.structure import FuncOp
from tir_dialect.ops.function import PrimFuncOp


def verify_module(module: ModuleOp) -> None:
    """Raises `InvalidModule` with all errors: of ops, then of dominance and symbols; one for each op."""
    findings = operation_findings(module)
    if not findings:
        refuse(dominance_findings(module))
    wrong = {finding.op for finding in findings}
    refuse([*findings, *(finding for finding in _dominance_findings(module) if finding.op not in wrong)])


def _dominance_findings(module: ModuleOp) -> Iterator[Finding]:
    """What can be said about the functions of a module with wrong ops, whose parts need not fit together."""
    for func in module.ops:
        if func.has_trait(IsolatedFromAbove) and declaration_error(func) is None:
            try:
                yield from dominance_findings(func)
            except (VerifyException, ValueError):
                continue


def verify_program(module: ModuleOp) -> None:
    """`verify_module`, and an entry point: a function that is not private (specification, well-formedness 12)."""
    verify_module(module)
    functions = [op for op in module.ops if isinstance(op, FuncOp | PrimFuncOp)]
    if any(isinstance(func, FuncOp) for func in functions) and all(func.is_private for func in functions):
        fail(module, "expected a function that is not private, as entry point", "leave out 'private' of one")
