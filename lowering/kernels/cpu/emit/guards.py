"""Branches whose conditions are linear in the axes, and the iterations of a loop for which the conditions hold.

So the interior of a padded image runs without conditions, and windows at its border are clipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.structure.accesses import linear
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp


@dataclass(frozen=True)
class Bound:
    """`base + sum(strides[a] * axis a) >= 0`."""

    base: Dim
    strides: tuple[Dim, ...]

    def moves_with(self, axis: int) -> bool:
        """Whether an axis matters."""
        return bool(self.strides[axis].terms)

    def step(self, axis: int) -> int | None:
        """The number that an axis is multiplied by, if it is one."""
        return self.strides[axis].constant_value

    def with_step(self, axis: int, step: int) -> Bound:
        """The same where an axis is multiplied by another number."""
        return Bound(self.base, tuple(constant(step) if i == axis else old for i, old in enumerate(self.strides)))


@dataclass(frozen=True)
class Guard:
    """A branch that is taken where all bounds hold."""

    op: IfOp
    bounds: tuple[Bound, ...]


def find_guards(stage: Stage) -> tuple[Guard, ...]:
    """The branches of a stage, outside of others, that are chosen by linear bounds."""
    branches = [op for op in stage.body if isinstance(op, IfOp)]
    if not branches:
        return ()
    space = IndexSpace(stage.block)
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    found = [(op, _bounds(space, names, op.condition)) for op in branches]
    return tuple(Guard(op, bounds) for op, bounds in found if bounds is not None)


def _bounds(space: IndexSpace, names: Sequence[str], condition: SSAValue) -> tuple[Bound, ...] | None:
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        left, right = (_bounds(space, names, operand) for operand in op.operands)
        return None if left is None or right is None else (*left, *right)
    if not isinstance(op, arith.CmpiOp):
        return None
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    left, right = linear(space, names, op.lhs), linear(space, names, op.rhs)
    if predicate not in ("slt", "sle", "sgt", "sge") or left.value is not None or right.value is not None:
        return None
    low, high = (left, right) if predicate.startswith("sl") else (right, left)
    base = high.base - low.base - (1 if predicate.endswith("t") else 0)
    return (Bound(base, tuple(a - b for a, b in zip(high.strides, low.strides, strict=True))),)


def unneeded(stage: Stage, taken: AbstractSet[Operation]) -> frozenset[Operation]:
    """The ops that only decide about branches that are `taken` anyhow, or compute indices of loads among these."""
    found: set[Operation] = set()
    for op in reversed(stage.body):
        uses = [use for result in op.results for use in result.uses]
        if uses and all(use.operation in found or use.operation in taken or _is_index(stage, use) for use in uses):
            found.add(op)
    return frozenset(op for op in found if not isinstance(op, LoadOp | IfOp))


def _is_index(stage: Stage, use: object) -> bool:
    """Whether a use is an index of an access that is known to be linear."""
    op, number = getattr(use, "operation", None), getattr(use, "index", 0)
    if not isinstance(op, LoadOp | StoreOp) or op not in stage.accesses:
        return False
    dimension = number - (1 if isinstance(op, LoadOp) else 2)
    return 0 <= dimension < len(stage.accesses[op]) and (
        op in stage.wholes or stage.accesses[op][dimension].value is None
    )


def range_of(
    code: Code, bounds: Sequence[Bound], axis: int, extent: Dim, at: Mapping[int, SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """The first iteration of a loop over an axis for which bounds hold, and the one behind the last.

    `at` has the other axes with which the bounds move, which move with the axis by numbers.
    """
    first, length = code.index(0), code.dim(extent)
    end = length
    for bound in bounds:
        step = bound.step(axis) or 1
        rest = code.linear(bound.base, [(index, bound.strides[other]) for other, index in at.items() if other != axis])
        if step > 0:
            least = code.maximum(code.sub(code.index(step - 1), rest), 0)
            first = code.maximum(first, _quotient(code, least, step))
        else:
            most = code.maximum(code.add(rest, -step), 0)
            end = code.minimum(end, _quotient(code, most, -step))
    first = code.minimum(first, length)
    return first, code.maximum(end, first)


def _quotient(code: Code, value: SSAValue, divisor: int) -> SSAValue:
    return value if divisor == 1 else code.divide(value, divisor)
