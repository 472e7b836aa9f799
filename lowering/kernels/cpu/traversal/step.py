"""All stages of a traversal for one vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.reduction import Reduction
from tir_dialect.ops.memory import StoreOp


@dataclass(frozen=True)
class Step:
    """All stages at one position of a row; later ones use what earlier ones have just computed."""

    bodies: Sequence[Body]
    reductions: Mapping[int, Reduction]
    """By the number of the stage."""

    @property
    def rows(self) -> int:
        """At how many rows the stages are."""
        return len({tuple(body.at.values()) for body in self.bodies})

    def __call__(self, index: SSAValue | None, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Emits the vector, or what does not vary along the row; from old sums to new ones."""
        old, new = iter(sums), list[SSAValue]()
        for position, here in enumerate(self._at(index)):
            reduction = self.reductions.get(position)
            if reduction is None:
                here.run(here.stage.body)
                continue
            here.values |= {load.result: next(old) for load in reduction.accumulators}
            here.run([op for op in here.stage.body if not isinstance(op, StoreOp)])
            new += [here.value(store.value) for store in reduction.stores]
        return new

    def values_of(self, index: SSAValue, late: Sequence[tuple[Body, StoreOp]]) -> list[SSAValue]:
        """Emits the vector without some stores; gives what these store."""
        found = dict(zip(self.bodies, self._at(index), strict=True))
        for body, here in found.items():
            here.run([op for op in here.stage.body if (body, op) not in late])
        return [found[body].value(store.value) for body, store in late]

    def _at(self, index: SSAValue | None) -> Iterator[Body]:
        """The stages for a vector, those of a row with what was just stored."""
        forwarded: dict[tuple[SSAValue, ...], dict[tuple[SSAValue, AffineAccess], SSAValue]] = {}
        for body in self.bodies:
            here = body if index is None else body.at_index(index)
            here.forwarded = forwarded.setdefault(tuple(body.at.values()), {})
            yield here
