"""The body of a stage at given axis values, for one element or as explicit vector ops.

Unlike a vectorised loop this yields vector values, which a micro-kernel keeps in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.cpu.emit.shuffles import shuffle
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.contraction import access_of
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.new_ops import new_op
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp, lanes_of
from tir_dialect.ops.scalars import DimOp, RampOp
from tir_dialect.ops.vectors import by_lane


@dataclass(frozen=True)
class Lanes:
    """Consecutive values of an axis as lanes: all, or the first `on` of them."""

    axis: int
    count: int
    on: SSAValue | None = None


class Explicit:
    """The values of a stage at given axis values; the last axis of a group has the value of all."""

    def __init__(
        self,
        kernel: Kernel,
        stage: Stage,
        at: Mapping[int, SSAValue],
        lanes: Lanes | None = None,
        further: SSAValue | None = None,
    ):
        """All loads are offset by `further` elements."""
        self.kernel = kernel
        self.code = kernel.code
        self.stage = stage
        self.at = at
        self.lanes = lanes
        self.further = further
        self.fills_cache_lines = False
        """Whether the loops around write results in whole cache lines, so that stores may be non-temporal."""
        self.values: dict[SSAValue, SSAValue] = {}

    def run(self, ops: Iterable[Operation]) -> None:
        """Emits ops of the stage whose results are not known yet; lane-invariant ones are emitted as scalars."""
        for op in ops:
            if op.results and op.results[0] in self.values:
                continue
            match op:
                case LoadOp():
                    self.values[op.result] = self._load(op)
                case StoreOp():
                    self._store(op)
                case IfOp():
                    self._branch(op)
                case _:
                    self._repeat(op)

    def value(self, old: SSAValue) -> SSAValue:
        """The new value for one of the old function."""
        found = self.values.get(old)
        if found is None:
            found = self.kernel.values.get(old)
        if found is None:
            number = next(number for number, axis in enumerate(self.stage.axes) if axis.value is old)
            found = self.at[number]
        return found

    def widened(self, value: SSAValue) -> SSAValue:
        """A value as a vector, if there are lanes."""
        return value if self.lanes is None or lanes_of(value.type) else self.code.splat(value, self.lanes.count)

    def _repeat(self, op: Operation) -> None:
        """An op without memory, on vectors if any operand is one."""
        if isinstance(op, DimOp):
            self.values[op.result] = self.code.dim(op.dim)
            return
        operands = [self.value(operand) for operand in op.operands]
        if self.lanes is not None and any(lanes_of(operand.type) for operand in operands):
            # A lane-invariant condition stays a scalar.
            whole = isinstance(op, arith.SelectOp) and lanes_of(operands[0].type) is None
            operands = [*operands[:whole], *map(self.widened, operands[whole:])]
            copy = by_lane(op, operands, self.lanes.count)
        else:
            copy = new_op(type(op), operands, (op.results[0].type,), op.properties)
        self.values[op.results[0]] = self.code.value(copy, op.results[0].name_hint)

    def _load(self, op: LoadOp) -> SSAValue:
        access, memory = access_of(self.stage, op), self.kernel.flat[op.buffer]
        index, lanes = self._index(access), self.lanes
        index = index if self.further is None else self.code.add(index, self.further)
        step = None if lanes is None else access.strides[lanes.axis]
        if lanes is None or step is None or not step.terms:
            return self.code.load(memory, [index])
        if step.constant_value == 2 and lanes.on is not None:
            return self._every_second(memory, index, lanes.count, lanes.on)
        if step.constant_value != 1:
            index = self.code.value(RampOp(index, self.code.dim(step), lanes.count))
        return self.code.load(memory, [index], lanes.count, self._mask(lanes))

    def _mask(self, lanes: Lanes) -> SSAValue | None:
        return None if lanes.on is None else self.code.leading(lanes.on, lanes.count)

    def _every_second(self, memory: SSAValue, index: SSAValue, count: int, on: SSAValue) -> SSAValue:
        """Every second element of two adjacent vectors: faster than a gather."""
        code = self.code
        length = code.sub(code.add(on, on), 1)
        low = code.load(memory, [index], count, code.leading(length, count))
        rest = code.leading(code.sub(length, count), count)
        high = code.load(memory, [code.add(index, count)], count, rest)
        return shuffle(code, (low, high), range(0, 2 * count, 2))

    def _store(self, op: StoreOp) -> None:
        if op.buffer in self.kernel.unread:
            return
        access, memory, lanes = access_of(self.stage, op), self.kernel.flat[op.buffer], self.lanes
        index, value = self._index(access), self.widened(self.value(op.value))
        if lanes is not None and access.strides[lanes.axis].constant_value != 1:
            index = self.code.value(RampOp(index, self.code.dim(access.strides[lanes.axis]), lanes.count))
        least = non_temporal_from(self.kernel, self.stage, op) if self.fills_cache_lines else None
        self.code.store(value, memory, [index], None if lanes is None else self._mask(lanes), least)

    def _index(self, access: AffineAccess) -> SSAValue:
        terms = [(number, access.strides[axis]) for axis, number in self.at.items()]
        terms += [(self.value(value), stride) for value, stride in access.computed]
        return self.code.linear(access.base, terms)

    def _branch(self, op: IfOp) -> None:
        """A branch for one element."""
        branch = IfOp(self.value(op.condition), result_types=op.outputs.types)
        self.code.emit(branch)
        self._fill(branch.then_body.block, op.then_body.block)
        self._fill(branch.else_body.block, op.else_body.block)
        self.values |= dict(zip(op.outputs, branch.outputs, strict=True))

    def _fill(self, target: Block, source: Block) -> None:
        outer = dict(self.values)
        with self.code.inside(target):
            for op in source.ops:
                if isinstance(op, YieldOp):
                    self.code.emit(YieldOp(*[self.value(value) for value in op.values]))
                elif op in self.stage.needed:
                    self.run([op])
        self.values = outer
