"""Partial results of running reductions: one vector per unrolled iteration, in buffers that LLVM promotes to registers
because every access to them has constant indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel, buffer_type
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.extremes import extreme_of, folds_as_integers
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.types import BufferType, LoopKind


def accumulator(kernel: Kernel, kind: BufferType, length: int) -> SSAValue:
    """Memory for `length` parts of results that go to a buffer of some type."""
    type_ = BufferType([length], kind.dtype, scope="local", align=64)
    return kernel.code.value(AllocBufferOp(type_), "sums")


def folded(kernel: Kernel, buffer: SSAValue, combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """One value of all parts, whose number is a power of 2: halves are combined until one is left."""
    code, kind = kernel.code, buffer_type(buffer)
    width = kind.shape[0].constant_value
    assert width is not None  # some vectors
    while width > 1:
        width //= 2
        half = accumulator(kernel, kind, width)
        with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
            pair = code.load(buffer, [lane]), code.load(buffer, [code.add(lane, width)])
            code.store(combine(*pair), half, [lane])
        buffer = half
    return code.load(buffer, [code.index(0)])


@dataclass
class Accumulators:
    """The accumulators of several reductions."""

    kernel: Kernel
    stages: Sequence[Stage]
    reductions: Mapping[int, Reduction]
    """By the number of the stage."""
    width: int
    """How many parts each result has."""
    at: Mapping[int, SSAValue]
    """The values of the axes around."""
    elsewhere: Mapping[Stage, Mapping[int, SSAValue]] = field(default_factory=dict[Stage, Mapping[int, SSAValue]])
    """Those that stages have which are at another row."""
    buffers: dict[int, list[SSAValue]] = field(default_factory=dict[int, list[SSAValue]], init=False)

    def __post_init__(self) -> None:
        self.code = self.kernel.code

    @property
    def all(self) -> list[SSAValue]:
        """The buffers of all reductions, in order."""
        return [buffer for buffers in self.buffers.values() for buffer in buffers]

    def start(self) -> None:
        """Makes the accumulators, each with the first value."""
        for position, reduction in self.reductions.items():
            body = self._body(position)
            body.run([op for op in body.stage.init if not isinstance(op, StoreOp)])
            self.buffers[position] = []
            for load, first in zip(reduction.accumulators, reduction.first, strict=True):
                buffer = accumulator(self.kernel, load.buffer_type, self.width)
                with self.code.loop(self.code.index(self.width), "lane", kind=LoopKind.VECTORIZED) as lane:
                    self.code.store(body.value(first), buffer, [lane])
                self.buffers[position].append(buffer)

    def _body(self, position: int) -> Body:
        stage = self.stages[position]
        return Body(self.kernel, stage, {**self.at, **self.elsewhere.get(stage, {})})

    def take(self, wide: Accumulators, are_first: bool) -> None:
        """Combines the parts with those of others, which are more; if these `are_first`, there is nothing in it yet."""
        code = self.code
        for position, buffers in self.buffers.items():
            reduction, parts, width = self.reductions[position], wide.buffers[position], wide.width
            while width > self.width:
                width //= 2
                parts = self._halved(position, parts, width)
            with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
                values = [code.load(part, [lane]) for part in parts]
                if not are_first:
                    values = reduction.combined(self.kernel, [code.load(each, [lane]) for each in buffers], values)
                for value, buffer in zip(values, buffers, strict=True):
                    code.store(value, buffer, [lane])

    def finish(self) -> dict[int, list[SSAValue]]:
        """One value for each result of each reduction."""
        return {position: self._finish(position) for position in self.buffers}

    def _finish(self, position: int) -> list[SSAValue]:
        buffers, width = self.buffers[position], self.width
        combine = self.reductions[position].combine
        if width > 1 and folds_as_integers(self.kernel, combine):
            return [extreme_of(self.kernel, buffers[0], type(combine[0]))]
        while width > 1:
            width //= 2
            buffers = self._halved(position, buffers, width)
        return [self.code.load(buffer, [self.code.index(0)]) for buffer in buffers]

    def _halved(self, position: int, buffers: Sequence[SSAValue], width: int) -> list[SSAValue]:
        """The two halves of accumulators combined, in new buffers of half the length."""
        code, kernel, reduction = self.code, self.kernel, self.reductions[position]
        halves = [accumulator(kernel, load.buffer_type, width) for load in reduction.accumulators]
        with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
            left = [code.load(buffer, [lane]) for buffer in buffers]
            right = [code.load(buffer, [code.add(lane, width)]) for buffer in buffers]
            for value, half in zip(reduction.combined(kernel, left, right), halves, strict=True):
                code.store(value, half, [lane])
        return halves

    def write(self, results: Mapping[int, Sequence[SSAValue]]) -> None:
        """Puts results where they belong."""
        for position, values in results.items():
            reduction, body = self.reductions[position], self._body(position)
            body.values |= {store.value: value for store, value in zip(reduction.stores, values, strict=True)}
            body.run(reduction.stores)
