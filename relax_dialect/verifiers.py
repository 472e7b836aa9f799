"""Verification of what a region may hold: purity, dataflow regions, recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xdsl.ir import Operation, Region
from xdsl.utils.exceptions import VerifyException

from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.symbols import called_functions, find_function
from relax_dialect.traits import ControlFlow, visible_impurity

if TYPE_CHECKING:
    from relax_dialect.ops.dataflow import DataflowOp
    from relax_dialect.ops.structure import FuncOp


def walk_body(region: Region) -> Iterator[Operation]:
    """The ops in `region`, those of nested regions too, but not the bodies of closures: these run when called."""
    from relax_dialect.ops.structure import ClosureOp

    for op in region.ops:
        yield op
        if not isinstance(op, ClosureOp):
            for nested in op.regions:
                yield from walk_body(nested)


def verify_solvable(func: FuncType, subject: str) -> None:
    """Raises `VerifyException` unless every symbol of `func` can be solved from its parameters."""
    try:
        entry_match(func)
    except Mismatch as mismatch:
        raise VerifyException(f"{subject} cannot be entered: {mismatch.reason}") from mismatch


def verify_body_purity(region: Region, subject: str) -> None:
    """Raises `VerifyException` at the first impure op of a pure function, which the message calls `subject`."""
    for op in walk_body(region):
        if (reason := visible_impurity(op)) is not None:
            raise VerifyException(
                f"{subject} is pure, but holds '{op.name}', which is impure: it {reason}; declare the function impure"
            )


def verify_dataflow_body(dataflow: DataflowOp) -> None:
    """Raises `VerifyException` at the first op that a dataflow region must not hold."""
    from relax_dialect.ops.dataflow import DataflowOp
    from relax_dialect.ops.structure import ClosureOp

    for op in dataflow.body.ops:
        if op.has_trait(ControlFlow):
            raise VerifyException(f"'relax.dataflow' op holds '{op.name}', which is control flow")  # C2
        if isinstance(op, DataflowOp):
            raise VerifyException("'relax.dataflow' op holds another 'relax.dataflow'")  # C2
        if (reason := visible_impurity(op)) is not None:
            raise VerifyException(f"'relax.dataflow' op holds '{op.name}', which is impure: it {reason}")  # C1
        if isinstance(op, ClosureOp):
            _verify_captures(op, dataflow)


def _verify_captures(closure: Operation, dataflow: DataflowOp) -> None:
    """Specification, well-formedness 11: closures do not capture what is local to the dataflow region."""
    for op in closure.walk():
        for operand in op.operands:
            if operand.owner is not op and _is_in(operand.owner, dataflow):
                raise VerifyException("'relax.dataflow' op holds a closure that captures a value of the region")  # C3


def _is_in(owner: object, dataflow: DataflowOp) -> bool:
    return isinstance(owner, Operation) and owner.parent is dataflow.body.block


def verify_no_recursion_in_dataflow(func: FuncOp) -> None:
    """Raises `VerifyException` if a dataflow region of `func` calls a function from which `func` is reached."""
    from relax_dialect.ops.dataflow import DataflowOp

    pending = [
        callee
        for op in walk_body(func.body)
        if isinstance(op, DataflowOp)
        for inner in op.body.ops
        for callee in called_functions(inner)
    ]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name == func.sym_name.data:
            raise VerifyException(
                f"'relax.dataflow' op calls @{name} recursively; recursion is control flow, call outside the region"
            )
        callee = None if name in seen else find_function(func, name)
        seen.add(name)
        if callee is not None:
            pending.extend(name for op in callee.walk() for name in called_functions(op))
