"""Who shares memory with whom in a function, for how long it is used, and what leaves the function.

Program order is one number per op, inner ops between their parent's number and the next. A use inside a loop of a value
made outside counts until the end of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.ir import Operation, Region, SSAValue

from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp, KillOp, StorageTensorOp
from relax_dialect.traits import AliasesOperand, Loop, OnlyReadsTensors


@dataclass
class Lifetimes:
    """Facts about the values of one function."""

    steps: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The number of every op in program order."""
    ends: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The number of the last op inside an op, its own if it has no regions."""

    def last_use(self, value: SSAValue) -> int:
        """The step of the last op that reads or writes the memory of `value`, through any alias."""
        last = self._definition(value)
        for alias in aliases(value):
            for use in alias.uses:
                if not isinstance(use.operation, KillOp):
                    last = max(last, self._end_of_use(use.operation, value))
        return last

    def _definition(self, value: SSAValue) -> int:
        owner = value.owner
        return self.steps[owner] if isinstance(owner, Operation) else 0

    def _end_of_use(self, user: Operation, value: SSAValue) -> int:
        """The step at which the use by `user` is over: after the outermost loop that does not contain the value."""
        end = self.steps[user]
        home = value.owner.parent_op()
        parent = user.parent_op()
        while parent is not None and parent is not home:
            if parent.has_trait(Loop):
                end = self.ends[parent]
            parent = parent.parent_op()
        return end


def lifetimes(body: Region) -> Lifetimes:
    """Numbers all ops of a function body."""
    facts = Lifetimes()
    step = 0

    def number(region: Region) -> None:
        nonlocal step
        for block in region.blocks:
            for op in block.ops:
                step += 1
                facts.steps[op] = step
                for inner in op.regions:
                    number(inner)
                facts.ends[op] = step

    number(body)
    return facts


def aliases(value: SSAValue) -> Iterator[SSAValue]:
    """`value` and every value that is certain to be a view of its memory, transitively."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        for use in current.uses:
            if use.operation.has_trait(AliasesOperand) and use.index == 0:
                pending.append(use.operation.results[0])
            elif isinstance(use.operation, StorageTensorOp):
                pending.append(use.operation.result)


def escapes(alloc: AllocTensorOp) -> bool:
    """Whether the tensor may be used after the function has returned or by code that we do not see."""
    return leaves(alloc.result)


def leaves(tensor: SSAValue, *, past_branches: bool = False) -> bool:
    """Whether a tensor, or a view of it, goes where it may be kept; `past_branches`, where the result of a branch does.

    Kernels and ops that only read a tensor's elements or metadata are known not to keep it; everything else (return,
    yield, tuple, capture, packed and relax functions) may.
    """
    for alias in aliases(tensor):
        for use in alias.uses:
            user = use.operation
            if isinstance(user, CallKernelOp | KillOp) or user.has_trait(OnlyReadsTensors):
                continue
            if user.has_trait(AliasesOperand) and use.index == 0:
                continue
            branch = user.parent_op() if past_branches and isinstance(user, YieldOp) else None
            if not isinstance(branch, IfOp) or leaves(branch.res[use.index], past_branches=True):
                return True
    return False
