"""Everything that has to hold of any module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from lowering.diagnostics import refuse
from lowering.verify.dominance import dominance_findings
from lowering.verify.operations import operation_findings


def verify_module(module: ModuleOp) -> None:
    """Raises `InvalidModule` with all errors of ops; if there are none, with all of dominance and symbols."""
    refuse(operation_findings(module))
    refuse(dominance_findings(module))
