"""Verification of what a region may hold: purity, dataflow regions, recursion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region
from xdsl.utils.exceptions import VerifyException

from relax_dialect.scope import called_functions, find_function
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.traits import ControlFlow, HoldsDataflow, RunsWhenCalled, visible_impurity


@dataclass(frozen=True)
class Violation:
    """A rule that is broken, and the op that breaks it."""

    op: Operation
    message: str


class Violations(VerifyException):
    """All that is wrong with an op and what it holds; as text, the first of it."""

    def __init__(self, violations: Sequence[Violation]):
        super().__init__(violations[0].message)
        self.violations = tuple(violations)

    @staticmethod
    def check(violations: Iterable[Violation]) -> None:
        """Raises `Violations` if there are any."""
        if found := list(violations):
            raise Violations(found)


def walk_body(region: Region) -> Iterator[Operation]:
    """The ops in `region`, those of nested regions too, but not the bodies of closures: these run when called."""
    for op in region.ops:
        yield op
        if not op.has_trait(RunsWhenCalled):
            for nested in op.regions:
                yield from walk_body(nested)


def unsolvable(func: FuncType) -> str | None:
    """Why the parameters of `func` do not tell all its symbols; `None` if they do."""
    try:
        entry_match(func)
    except Mismatch as mismatch:
        return f"cannot be entered: {mismatch.reason}"
    return None


def purity_violations(region: Region, subject: str) -> Iterator[Violation]:
    """The impure ops of a pure function, which the messages call `subject`; dataflow regions look after their own."""
    for op in walk_body(region):
        parent = op.parent_op()
        inside = parent is not None and parent.has_trait(HoldsDataflow)
        if not inside and (message := purity_violation(op, subject)) is not None:
            yield Violation(op, message)


def purity_violation(op: Operation, subject: str) -> str | None:
    """Why an op must not stand in a pure function; `None` if it may."""
    reason = visible_impurity(op)
    if reason is None:
        return None
    return f"{subject} is pure, but holds '{op.name}', which is impure: it {reason}; write 'impure' before the body"


def dataflow_violations(body: Block) -> Iterator[Violation]:
    """What the block of a dataflow region must not hold."""
    for op in body.ops:
        if (message := dataflow_violation(op)) is not None:
            yield Violation(op, message)


def dataflow_violation(op: Operation) -> str | None:
    """Why an op must not stand where it stands in the block of a dataflow region; `None` if it may."""
    if op.has_trait(ControlFlow):
        return f"'relax.dataflow' op holds '{op.name}', which is control flow"  # C2
    if op.has_trait(HoldsDataflow):
        return "'relax.dataflow' op holds another 'relax.dataflow'"  # C2
    if (reason := visible_impurity(op)) is not None:
        return f"'relax.dataflow' op holds '{op.name}', which is impure: it {reason}; put it outside"  # C1
    if op.has_trait(RunsWhenCalled) and _captures_of_block(op):
        return "'relax.dataflow' op holds a closure that captures a value of the region"  # C3
    return None


def _captures_of_block(closure: Operation) -> bool:
    """Whether a closure uses a value of the block it stands in (specification, well-formedness 11)."""
    owners = (operand.owner for op in closure.walk() if op is not closure for operand in op.operands)
    return any(isinstance(owner, Operation) and owner.parent is closure.parent for owner in owners)


def recursion_violations(func: Operation, func_name: str) -> Iterator[Violation]:
    """The calls in dataflow regions of a function of functions from which it is reached."""
    elsewhere: set[str] = set()
    for dataflow in walk_body(func.regions[0]):
        for op in dataflow.regions[0].ops if dataflow.has_trait(HoldsDataflow) else ():
            for name in called_functions(op):
                if _reaches(name, func, func_name, elsewhere):
                    message = f"'relax.dataflow' op calls @{name} recursively"
                    yield Violation(op, f"{message}; recursion is control flow, call outside the region")


def _reaches(name: str, func: Operation, func_name: str, elsewhere: set[str]) -> bool:
    """Whether a function has that name or is called from there; `elsewhere` collects names from which it is not."""
    pending, seen = [name], set[str]()
    while pending:
        name = pending.pop()
        if name == func_name:
            return True
        if name not in seen and name not in elsewhere:
            seen.add(name)
            callee = find_function(func, name)
            pending += [] if callee is None else [each for op in callee.walk() for each in called_functions(op)]
    elsewhere |= seen
    return False
