"""The verifier of every op, without stopping at the first error."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding


def operation_findings(module: ModuleOp) -> list[Finding]:
    """Every op whose own verifier rejects it; one pass over the module if all is well.

    Also catches the structural rules of xDSL: terminators, successors, parent links, erased values in use.
    """
    try:
        module.verify()
    except (VerifyException, ValueError) as error:
        return list(_collect(module)) or [Finding.at(module, str(error))]
    return []


def _collect(module: ModuleOp) -> Iterator[Finding]:
    for op in module.walk():
        if (message := _error_of(op)) is not None:
            yield Finding.at(op, message)


def _error_of(op: Operation) -> str | None:
    """The message of the op's verifier; nested ops are not looked at."""
    try:
        # First the op's own rules: `Operation.verify` would wrap their error with a print of the whole module.
        op.verify_()
        op.verify(verify_nested_ops=False)
        for region in op.regions:
            for block in region.blocks:
                if not block.ops:
                    block.verify()
    except (VerifyException, ValueError) as error:
        return str(error)
    return None
