"""Expensive values that are computed once per row: they are computed for all rows of a block at once, one row per lane.

Examples are the logarithm of a row's sum, the square root of its variance, and reciprocals of divisors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.body import Body, has_reciprocal, reciprocal
from lowering.kernels.cpu.emit.kernel import Kernel, is_heavy
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType


@dataclass
class RowValues:
    """The values of one stage."""

    kernel: Kernel
    stage: Stage
    depth: int
    """How many axes choose the row."""
    written: frozenset[SSAValue]
    """What the pass writes."""
    memory: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue], init=False)
    """For values of the stage, those of all rows."""
    reciprocals: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue], init=False)

    def __post_init__(self) -> None:
        self.once: list[Operation] = []
        for op in self.stage.body:
            if self._is_once(op):
                self.once.append(op)

    def _is_once(self, op: Operation) -> bool:
        inner = {axis.value for axis in self.stage.axes[self.depth :]}
        if op.regions or isinstance(op, StoreOp):
            return False
        operands: Sequence[SSAValue] = op.operands
        if isinstance(op, LoadOp):
            access = self.kernel.access(self.stage, op)
            moves = any(access.strides[axis].terms for axis in range(self.depth, len(self.stage.axes)))
            if moves or op.buffer in self.written:
                return False
            operands = [value for value, _ in access.computed]
        body = set(self.stage.body)
        return all(value not in inner and (value.owner in self.once or value.owner not in body) for value in operands)

    def prepare(self, at: Mapping[int, SSAValue], axis: int, start: SSAValue, left: SSAValue, lanes: int) -> None:
        """The values of the first `left` of the rows from `start` on."""
        code, kept, divisors = self.kernel.code, self._kept(), self._divisors()
        if not kept and not divisors:
            return
        self.memory = {value: self._allocate(value, lanes) for value in kept}
        self.reciprocals = {value: self._allocate(value, lanes) for value in divisors}

        def step(lane: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body = Body(self.kernel, self.stage, {**at, axis: code.add(start, lane)}, axis)
            body.run(self._ancestors({*kept, *divisors}))
            for value, memory in self.memory.items():
                code.store(body.value(value), memory, [lane])
            for value, memory in self.reciprocals.items():
                code.store(reciprocal(code, body.value(value)), memory, [lane])
            return []

        loads = [op for op in self._ancestors({*kept, *divisors}) if isinstance(op, LoadOp)]
        mask = None if self.kernel.is_of_rows(self.stage, loads) else left
        vector_iteration(self.kernel, code.index(0), lanes, mask, [], step)

    def give(self, body: Body, row: SSAValue) -> None:
        """The values of a row of the block."""
        body.values |= {value: self.kernel.code.load(memory, [row]) for value, memory in self.memory.items()}
        body.reciprocals |= {value: self.kernel.code.load(memory, [row]) for value, memory in self.reciprocals.items()}

    def _allocate(self, value: SSAValue, lanes: int) -> SSAValue:
        assert isinstance(value.type, AnyFloat)  # nothing else is kept
        return self.kernel.code.value(AllocBufferOp(BufferType([lanes], value.type, scope="local", align=64)), "once")

    def _kept(self) -> list[SSAValue]:
        """What comes of operations that take long, and is needed for elements."""
        heavy: dict[SSAValue, None] = {}
        for op in self.once:
            if is_heavy(op) or any(operand in heavy for operand in op.operands):
                heavy.update(dict.fromkeys(op.results))
        return [value for value in heavy if isinstance(value.type, AnyFloat) and self._is_for_elements(value)]

    def _is_for_elements(self, value: SSAValue) -> bool:
        return any(use.operation in self.stage.needed and use.operation not in self.once for use in value.uses)

    def _divisors(self) -> list[SSAValue]:
        """What elements are divided by, of which reciprocals may be used."""
        found = [op for op in self.stage.body if isinstance(op, arith.DivfOp) and op not in self.once]
        once = {result for op in self.once for result in op.results}
        wanted = [op.rhs for op in found if op.rhs in self.kernel.divisors and op.lhs.owner not in self.once]
        return [value for value in dict.fromkeys(wanted) if value in once and has_reciprocal(value)]

    def _ancestors(self, values: set[SSAValue]) -> list[Operation]:
        needed, found = set(values), list[Operation]()
        for op in reversed(self.once):
            if any(result in needed for result in op.results):
                needed.update(op.operands)
                found.append(op)
        return found[::-1]
