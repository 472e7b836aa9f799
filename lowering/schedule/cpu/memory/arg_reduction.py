"""Which reductions find the first place of the best f32 of a row, NaN before all."""

from __future__ import annotations

from itertools import product
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.kernel import Kernel
from lowering.schedule.cpu.emit.widths import masks_are_cheap
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.structure.arithmetic import evaluated
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.types import IteratorKind

_VALUES, _PLACES = (nan, inf, 1.0, 0.0, -1.0, -inf), (3, 5)


def direction(stage: Stage, reduction: Reduction) -> str | None:
    """How a better value compares with one (`ogt`, `olt`), if the reduction finds the best of a row."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    if len(reduction.sources) != 2 or len(reduced) != 1 or not isinstance(reduction.sources[0].type, Float32Type):
        return None
    place = reduction.sources[1].owner
    if not isinstance(place, arith.IndexCastOp) or place.input is not stage.axes[reduced[0]].value:
        return None
    found = next((found for found in ("ogt", "olt") if _finds(reduction, found)), None)
    return found if found is not None and _is_worst(reduction.first[0], found) else None


def _is_worst(first: SSAValue, better: str) -> bool:
    """Whether nothing is worse than a value, so that a lane without elements is never chosen before another."""
    value = first.owner.value if isinstance(first.owner, arith.ConstantOp) else None
    return isinstance(value, FloatAttr) and value.value.data == (-inf if better == "ogt" else inf)


def _finds(reduction: Reduction, better: str) -> bool:
    """Whether the reduction prefers what `better` says, NaN before all, and of equals the first: tried on all kinds."""
    for left, right in product(product(_VALUES, _PLACES), repeat=2):
        if left[1] == right[1]:
            continue
        known: dict[SSAValue, object] = dict(zip(reduction.sources, right, strict=True))
        known |= {load.result: value for load, value in zip(reduction.accumulators, left, strict=True)}
        if not evaluated(reduction.combine, known):
            return False
        got = tuple(known[store.value] for store in reduction.stores)
        if repr(got) != repr(_preferred(left, right, better)):
            return False
    return True


def _preferred(left: tuple[float, int], right: tuple[float, int], better: str) -> tuple[float, int]:
    sign = 1 if better == "ogt" else -1
    keys = [(each[0] == each[0], -sign * each[0] if each[0] == each[0] else 0.0, each[1]) for each in (left, right)]
    return left if keys[0] < keys[1] else right


def suits_lanes(kernel: Kernel, stage: Stage) -> bool:
    """Whether the machine has vectors, and masks for the last of a row."""
    return kernel.target.lanes(32) >= 8 and masks_are_cheap(kernel, [stage])
