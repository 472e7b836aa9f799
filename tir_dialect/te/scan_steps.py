"""The parts of a scan: the nests that compute the first slices, and the nests of each step."""

from __future__ import annotations

from dataclasses import dataclass, field

from tir_dialect.dims import Dim, constant
from tir_dialect.te.compute import Nest
from tir_dialect.te.expr import Expr
from tir_dialect.te.operations import Operation
from tir_dialect.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Step(Nest):
    """A nest that computes slices of tensors, from index `first` on; its first axis starts at 0."""

    first: Dim = field(default_factory=lambda: constant(0))

    @property
    def places(self) -> tuple[Expr, ...]:
        """The indices of the output element that an iteration computes."""
        count, *others = self.axes
        return (count + self.first if self.first.terms else count, *others)


@dataclass(frozen=True, eq=False)
class Scan(Operation):
    """Tensors whose first slices are computed by `starts`, and each further one by an execution of all `steps`."""

    length: Dim
    """The number of steps."""
    locals: tuple[Tensor, ...] = field(init=False)
    """Intermediate tensors, computed by one step nest for another."""
    starts: tuple[Step, ...] = field(init=False)
    steps: tuple[Step, ...] = field(init=False)
