"""For how long the memory of the values of a function is used.

Program order is one number per op, inner ops between their parent's number and the next. A use inside a loop of a value
made outside counts until the end of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, Region, SSAValue

from relax_dialect.analysis.aliases import views
from relax_dialect.ops.memory import KillOp
from relax_dialect.traits import Loop


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
        for alias in views(value):
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
