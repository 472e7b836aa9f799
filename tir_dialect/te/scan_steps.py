"""What a scan consists of: nests that start it, and nests that run in each of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from tir_dialect.dims import Dim, constant
from tir_dialect.te.compute import Nest
from tir_dialect.te.expr import Expr
from tir_dialect.te.operations import Operation
from tir_dialect.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Step(Nest):
    """A nest that computes slices of tensors: those from `first` on, which its first axis counts from 0."""

    first: Dim = field(default_factory=lambda: constant(0))

    @property
    def places(self) -> tuple[Expr, ...]:
        """The indices of the elements of the outputs that an instance computes."""
        count, *others = self.axes
        return (count + self.first if self.first.terms else count, *others)


@dataclass(frozen=True, eq=False)
class Scan(Operation):
    """Tensors of which the first slices come from `starts`, and one more from each round of all `steps`."""

    length: Dim
    """How many rounds there are."""
    locals: tuple[Tensor, ...] = field(init=False)
    """What steps compute for steps behind them."""
    starts: tuple[Step, ...] = field(init=False)
    steps: tuple[Step, ...] = field(init=False)
