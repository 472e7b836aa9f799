"""The body of a stage at given axis values: for loops that LLVM vectorises, for one element, or as explicit vector ops.

What is invariant along the innermost axis is hoisted out of its loop.

Unlike a vectorised loop this yields vector values, which a micro-kernel keeps in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, f32, f64
from xdsl.ir import Block, Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.guards import unneeded
from lowering.kernels.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.emit.vectorization import shuffle
from lowering.kernels.structure.contraction import access_of
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import AffineAccess, Stage
from tir_dialect.dims import Dim
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.arithmetic import DimOp, RampOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp, lanes_of
from tir_dialect.ops.vectors import by_lane


class StageValues:
    """The values of a stage in the new function, whose axes have values: those of the axes are `at`."""

    def __init__(self, kernel: Kernel, stage: Stage, at: Mapping[int, SSAValue]):
        self.kernel, self.code, self.stage, self.at = kernel, kernel.code, stage, at
        self.values: dict[SSAValue, SSAValue] = {}
        self.fills_cache_lines = False
        """Whether the loops around write results in whole cache lines, so that stores may be non-temporal."""

    def value(self, old: SSAValue) -> SSAValue:
        """The new value for one of the old function."""
        found = self.values.get(old)
        if found is None:
            found = self.kernel.values.get(old)
        if found is None:
            number = next(number for number, axis in enumerate(self.stage.axes) if axis.value is old)
            found = self.at[number]
        return found


class Body(StageValues):
    """The body of a stage whose axes have values."""

    def __init__(self, kernel: Kernel, stage: Stage, at: Mapping[int, SSAValue], axis: int | None = None):
        """`at` has the values of axes, or of the last axis of a group; `axis` is the innermost one."""
        super().__init__(kernel, stage, dict(at))
        self.axis = axis
        self.forwarded: dict[tuple[SSAValue, AffineAccess], SSAValue] = {}
        self.multiply = True
        """Whether divisions by a row-invariant divisor become multiplications by its reciprocal."""
        self._taken: Mapping[Operation, Block] = {}
        self._skipped: frozenset[Operation] = frozenset()
        self._staying: set[Operation] = set()
        self._before: dict[Operation, SSAValue | None] = {}
        self.reciprocals: dict[SSAValue, SSAValue] = {}
        """The reciprocals of row-invariant divisors."""

    def assume(self, branches: frozenset[IfOp], *, holds: bool = True) -> None:
        """From here on the conditions of some branches are known to hold, or not to."""
        self._taken = {op: (op.then_body if holds else op.else_body).block for op in branches}
        self._skipped = unneeded(self.stage, branches)

    def set_values(self, values: Mapping[SSAValue, SSAValue], skipped: frozenset[Operation]) -> None:
        """From here on some values are known, and some ops are not needed."""
        self.values |= values
        self._skipped |= skipped

    # Loop-invariant code

    def hoist(self, ops: Sequence[Operation], written: AbstractSet[SSAValue]) -> None:
        """Emits the ops that depend neither on the innermost axis nor on buffers that are `written` in the loop."""
        ops = self._with_taken(ops)
        for op in ops:
            if self._stays(op, written):
                self._staying.add(op)
        for op in ops:
            if op not in self._staying and op not in self._skipped and not self._is_known(op):
                self._emit(op)
        inner = (each for op in ops if op in self._staying for each in op.walk())
        for op in [op for op in inner if isinstance(op, LoadOp | StoreOp) and op in self.stage.needed]:
            self._before[op] = self._offset(op, self.kernel.access(self.stage, op))
        for op in ops:
            if op in self._staying and isinstance(op, arith.DivfOp) and self._is_row_divisor(op):
                divisor = op.rhs
                if divisor not in self.reciprocals:
                    self.reciprocals[divisor] = reciprocal(self.code, self.values[divisor])

    def _with_taken(self, ops: Sequence[Operation]) -> list[Operation]:
        """The ops, with those of known branches before each of these."""
        found: list[Operation] = []
        for op in ops:
            if op in self._taken:
                found += [inner for inner in self._taken[op].ops if inner in self.stage.needed]
            found.append(op)
        return found

    def _stays(self, op: Operation, written: AbstractSet[SSAValue]) -> bool:
        return isinstance(op, StoreOp) or any(self._varies(inner, written) for inner in op.walk())

    def _varies(self, op: Operation, written: AbstractSet[SSAValue]) -> bool:
        operands: Iterable[SSAValue] = op.operands
        if isinstance(op, LoadOp):
            access = self.kernel.access(self.stage, op)
            stride = None if self.axis is None else access.strides[self.axis]
            if stride is None or stride.terms or op.buffer in written:
                return True
            operands = [value for value, _ in access.computed]
        return any(operand.owner in self._staying or operand is self._axis_value for operand in operands)

    @property
    def _axis_value(self) -> SSAValue | None:
        return None if self.axis is None else self.stage.axes[self.axis].value

    def _is_row_divisor(self, op: arith.DivfOp) -> bool:
        value = self.values.get(op.rhs)
        return (
            value is not None
            and has_reciprocal(value)
            and op.rhs in self.kernel.divisors
            and op.lhs.owner in self._staying
        )

    @property
    def unsafe_divisors(self) -> list[SSAValue]:
        """Divisors whose reciprocals might not be normal. That of a square root always is, or the root is 0 or
        infinite.
        """
        return [self.values[old] for old in self.reciprocals if not _is_root(old)]

    # Emission

    def at_index(self, index: SSAValue) -> Body:
        """The body at an index of the innermost axis."""
        assert self.axis is not None
        copy = Body(self.kernel, self.stage, {**self.at, self.axis: index}, self.axis)
        copy.values = dict(self.values)
        copy.multiply, copy.fills_cache_lines = self.multiply, self.fills_cache_lines
        copy._taken, copy._skipped = self._taken, self._skipped
        copy._staying, copy._before, copy.reciprocals = self._staying, self._before, self.reciprocals
        return copy

    def run(self, ops: Iterable[Operation]) -> None:
        """Emits ops that have not been hoisted."""
        for op in ops:
            if op not in self._skipped and not self._is_known(op):
                self._emit(op)

    def _is_known(self, op: Operation) -> bool:
        return bool(op.results) and op.results[0] in self.values

    def _emit(self, op: Operation) -> None:
        match op:
            case LoadOp():
                access = self.kernel.access(self.stage, op)
                known = self.forwarded.get((op.buffer, access))
                if known is None:
                    known = self.code.load(self.kernel.memory(op), [self._index(op, access)])
                self.values[op.result] = known
            case StoreOp():
                access = self.kernel.access(self.stage, op)
                self.forwarded[op.buffer, access] = self.value(op.value)
                if op.buffer not in self.kernel.unread:
                    value, memory, index = self.value(op.value), self.kernel.memory(op), self._index(op, access)
                    least = non_temporal_from(self.kernel, self.stage, op) if self.fills_cache_lines else None
                    self.code.store(value, memory, [index], non_temporal_from=least)
            case IfOp():
                self._branch(op)
            case arith.DivfOp() if self.multiply and op.rhs in self.reciprocals and op in self._staying:
                product = arith.MulfOp(self.value(op.lhs), self.reciprocals[op.rhs])
                self.values[op.result] = self.code.value(product)
            case _:
                self.values[op.results[0]] = repeat(self.kernel, op, [self.value(each) for each in op.operands])

    def index(self, op: LoadOp | StoreOp) -> SSAValue:
        """The index of an access in its flat buffer."""
        return self._index(op, self.kernel.access(self.stage, op))

    def _index(self, op: LoadOp | StoreOp, access: AffineAccess) -> SSAValue:
        """The index of an access in its flat buffer."""
        code = self.code
        total = self._before[op] if op in self._before else self._offset(op, access)
        if self.axis is not None and access.strides[self.axis].terms and self.axis in self.at:
            total = self._plus(total, self.at[self.axis], access.strides[self.axis])
        for value, step in access.computed:
            total = self._plus(total, self.value(value), step)
        return code.index(0) if total is None else total

    def _offset(self, op: LoadOp | StoreOp, access: AffineAccess) -> SSAValue | None:
        """The linear part of an access without the innermost axis; `None` for 0."""
        total = self.code.dim(access.base) if access.base.terms else None
        block = self.kernel.block
        if block is not None and op.buffer in self.kernel.rows and access.strides[block.axis].terms:
            total = self._plus(total, block.offset, access.strides[block.axis])
        for number, stride in enumerate(access.strides):
            if stride.terms and number != self.axis and number in self.at:
                total = self._plus(total, self.at[number], stride)
        return total

    def _plus(self, total: SSAValue | None, value: SSAValue, step: Dim) -> SSAValue:
        term = value if step.constant_value == 1 else self.code.mul(value, self.code.dim(step))
        return term if total is None else self.code.add(total, term)

    def _branch(self, op: IfOp) -> None:
        if op in self._taken:
            self.values |= zip(op.outputs, self._yielded(self._taken[op].ops), strict=True)
            return
        branch = IfOp(self.value(op.condition), result_types=op.outputs.types)
        self.code.emit(branch)
        for region, source in ((branch.then_body, op.then_body), (branch.else_body, op.else_body)):
            with self.code.inside(region.block):
                self.code.emit(YieldOp(*self._yielded(source.block.ops)))
        for old, new in zip(op.outputs, branch.outputs, strict=True):
            self.values[old] = new

    def _yielded(self, ops: Iterable[Operation]) -> list[SSAValue]:
        outer, values = dict(self.values), list[SSAValue]()
        for op in ops:
            if isinstance(op, YieldOp):
                values = [self.value(value) for value in op.values]
            elif op in self.stage.needed and op.results[0] not in self.values:
                self._emit(op)
        self.values = outer
        return values


def repeat(kernel: Kernel, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """A pure op with one result, on other operands."""
    copy = new_op(type(op), operands, op.result_types, op.properties)
    return kernel.code.value(copy, op.results[0].name_hint)


def combined(
    kernel: Kernel, reduction: Reduction, left: Sequence[SSAValue], right: Sequence[SSAValue]
) -> list[SSAValue]:
    """Two partial results of a reduction, scalars or vectors, combined."""
    values: dict[SSAValue, SSAValue] = {load.result: a for load, a in zip(reduction.accumulators, left, strict=True)}
    values |= dict(zip(reduction.sources, right, strict=True))
    for op in reduction.combine:
        values[op.results[0]] = repeat(kernel, op, [values[operand] for operand in op.operands])
    return [values[store.value] for store in reduction.stores]


def has_reciprocal(value: SSAValue) -> bool:
    """Whether a division by a value may become a multiplication by its reciprocal."""
    return isinstance(value.type, Float32Type | Float64Type)


def reciprocal(code: Code, value: SSAValue) -> SSAValue:
    """1 divided by a value."""
    return code.value(arith.DivfOp(code.value(arith.ConstantOp(number_like(1.0, value))), value))


def number_like(number: float, value: SSAValue) -> FloatAttr:
    """A constant of the type of another value, which is f32 or f64."""
    return FloatAttr(number, f64 if isinstance(value.type, Float64Type) else f32)


def _is_root(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "math.sqrt"


@dataclass(frozen=True)
class Lanes:
    """Consecutive values of an axis as lanes: all, or the first `on` of them."""

    axis: int
    count: int
    on: SSAValue | None = None


class Explicit(StageValues):
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
        super().__init__(kernel, stage, at)
        self.lanes = lanes
        self.further = further

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
            # Every second element of two adjacent vectors: faster than a gather.
            count = lanes.count
            code = self.code
            length = code.sub(code.add(lanes.on, lanes.on), 1)
            low = code.load(memory, [index], count, code.leading(length, count))
            rest = code.leading(code.sub(length, count), count)
            high = code.load(memory, [code.add(index, count)], count, rest)
            return shuffle(code, (low, high), range(0, 2 * count, 2))
        if step.constant_value != 1:
            index = self.code.value(RampOp(index, self.code.dim(step), lanes.count))
        return self.code.load(memory, [index], lanes.count, self._mask(lanes))

    def prefetch(self, ops: Sequence[Operation], level: int) -> None:
        """Prefetches what ops of the stage load, which are left out, but for addresses that are looked up."""
        loads = [op for op in ops if isinstance(op, LoadOp)]
        wanted = [value for load in loads for value, _ in access_of(self.stage, load).computed]
        addresses: set[Operation] = set()
        while wanted:
            owner = wanted.pop().owner
            if owner in ops and isinstance(owner, Operation) and owner not in addresses:
                addresses.add(owner)
                wanted += owner.operands
        self.run(op for op in ops if op in addresses)
        for load in loads:
            if load not in addresses:
                self.code.prefetch(self.kernel.flat[load.buffer], [self._index(access_of(self.stage, load))], level)

    def _mask(self, lanes: Lanes) -> SSAValue | None:
        return None if lanes.on is None else self.code.leading(lanes.on, lanes.count)

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
