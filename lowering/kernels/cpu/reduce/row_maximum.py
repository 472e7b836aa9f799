"""The maximum or minimum of a row, by one comparison per element if the row has no special values.

The exact maximum of two floats, where NaN wins and 0 is above -0, is five instructions on x86; the plain one is one.
The sum of all elements, one more instruction, tells whether there may be a NaN. Then, and if the result is a zero, the
row is reduced once more by the exact rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectorization import AxisGroup, collapse_axes, vector_iteration
from lowering.kernels.cpu.reduce.argmax import element_ops
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage, is_heavy
from lowering.kernels.cpu.traversal.accumulators import Accumulators, accumulator, folded, folds_as_integers
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.relaxed_float import GreaterOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind

VECTORS_AT_ONCE = 4


@dataclass(frozen=True)
class RowMaximum:
    """Generates one row."""

    kernel: Kernel
    stage: Stage
    reduction: Reduction
    row: AxisGroup

    @property
    def width(self) -> int:
        """Elements of an iteration; a row has one iteration at least."""
        return self.kernel.target.lanes(32) * VECTORS_AT_ONCE

    def emit_unless_special(self, at: Mapping[int, SSAValue]) -> SSAValue:
        """Writes the result, unless the row is short; returns whether the exact reduction is needed."""
        code, length = self.kernel.code, self.kernel.code.dim(self.row.extent)
        if self.row.extent.constant_value is not None:
            return self._find(at, length)
        is_short = code.compare("slt", length, self.width)
        branch = IfOp(is_short, result_types=[i1])
        code.emit(branch)
        with code.inside(branch.then_body.block):
            code.emit(YieldOp(is_short))
        with code.inside(branch.else_body.block):
            code.emit(YieldOp(self._find(at, length)))
        return branch.outputs[0]

    def _find(self, at: Mapping[int, SSAValue], length: SSAValue) -> SSAValue:
        """Writes the result, and returns whether it is a zero, or some element may be NaN."""
        code, first = self.kernel.code, Body(self.kernel, self.stage, at)
        first.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        best, total = self._full_of(first.value(self.reduction.first[0])), self._full_of(code.number(0.0, f32))
        body, ops = Body(self.kernel, self.stage, at, self.row.last), element_ops(self.stage, self.reduction)
        body.hoist(ops, {store.buffer for store in self.stage.stores})

        def meet(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            here = body.at_index(index)
            here.run(ops)
            number = here.value(self.reduction.sources[0])
            return [self._better(number, old[0]), code.add_floats(old[1], number)]

        # The last iteration overlaps the one before: repeated elements change neither the maximum nor whether there is
        # NaN.
        with code.loop(code.divide(code.add(length, self.width - 1), self.width), "v") as iteration:
            start = code.minimum(code.mul(iteration, self.width), code.sub(length, self.width))
            vector_iteration(self.kernel, start, self.width, None, [best, total], meet)
        result, total = folded(self.kernel, best, self._better), folded(self.kernel, total, code.add_floats)
        Accumulators(self.kernel, [self.stage], {0: self.reduction}, 1, at).write({0: [result]})
        is_zero = code.value(arith.CmpfOp(result, code.number(0.0, f32), "oeq"))
        return code.either(is_zero, code.value(arith.CmpfOp(total, total, "uno")))

    def _better(self, number: SSAValue, old: SSAValue) -> SSAValue:
        """The better of two elements."""
        code = self.kernel.code
        if isinstance(self.reduction.combine[0], arith.MaximumfOp):
            return code.value(GreaterOp(number, old))
        return code.select(code.value(arith.CmpfOp(number, old, "olt")), number, old)

    def _full_of(self, value: SSAValue) -> SSAValue:
        """A buffer for an iteration, filled with a value."""
        code = self.kernel.code
        buffer = accumulator(self.kernel, BufferType([1], f32), self.width)
        with code.loop(code.index(self.width), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(value, buffer, [lane])
        return buffer


def find_row_maximum(kernel: Kernel, stage: Stage, reduction: Reduction) -> RowMaximum | None:
    """The row whose maximum or minimum of f32 a stage takes, with contiguous elements; `None` if it does not."""
    rows = collapse_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
    loads = [load for load in stage.loads if load not in reduction.accumulators]
    if len(rows) != 1 or not folds_as_integers(kernel, reduction.combine) or any(map(is_heavy, stage.needed)):
        return None
    found = RowMaximum(kernel, stage, reduction, rows[0])
    length = rows[0].extent.constant_value
    side_by_side = all(kernel.access(stage, load).strides[rows[0].last].constant_value in (0, 1) for load in loads)
    return found if side_by_side and (length is None or length >= found.width) else None
