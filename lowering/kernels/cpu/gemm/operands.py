"""Operands of a micro-kernel: strided memory, or values computed from memory; and their alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import buffer_type
from lowering.kernels.cpu.emit.shuffles import is_power_of_two
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.structure.contraction import Factor, is_chain
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.memory import LoadOp


class Operand(Protocol):
    """Some rows or columns of a factor; `r` is a step along K."""

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """The element of row `i`."""
        ...

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """The columns from `j` on: all lanes of a vector, or the first `on` of them."""
        ...

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """Prefetches column `j` of a step that is so many later, which need not exist."""
        ...


@dataclass
class Matrix:
    """Strided elements of a one-dimensional buffer: row or column `i` at step `r` is element `first + i * each + r *
    step`.
    """

    buffer: SSAValue
    first: SSAValue
    each: SSAValue | int
    step: SSAValue | int
    lanes: int
    _row: tuple[SSAValue, SSAValue] | None = None

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """A load."""
        away = code.mul(self.each, i) if isinstance(self.each, SSAValue) else i * self.each
        return code.load(self.buffer, [code.add(self._at(code, r), away)])

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """A load; columns lie side by side."""
        mask = None if on is None else code.leading(on, self.lanes)
        return code.load(self.buffer, [code.add(self._at(code, r), j)], self.lanes, mask)

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """A hint."""
        away = code.mul(self.step, steps) if isinstance(self.step, SSAValue) else steps * self.step
        code.prefetch(self.buffer, [code.add(code.add(self._at(code, r), away), j)], level)

    def store(self, code: Code, r: SSAValue, j: int, value: SSAValue) -> None:
        """Puts a vector at the columns from `j` on."""
        code.store(value, self.buffer, [code.add(self._at(code, r), j)])

    def _at(self, code: Code, r: SSAValue) -> SSAValue:
        """Where the step is; made once for all accesses of an iteration of the loop."""
        if self._row is None or self._row[0] is not r:
            self._row = r, code.add(self.first, code.mul(r, self.step))
        return self._row[1]


@dataclass(frozen=True)
class Computed:
    """Rows or columns of a factor, computed by the code of the kernel."""

    gemm: Gemm
    factor: Factor
    coords: Coords
    """The coordinates of the first of them at step 0, which is where K begins unless they say otherwise."""
    along: tuple[int, ...]
    """The axes that number them."""

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """One element."""
        return self.gemm.element(self.factor, self._at_step(code, r, i))

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """Neighbouring elements; in panels, `further` elements on."""
        further = self.gemm.panel_jump(self.coords[self.along]) if self.factor.panels is not None else None
        return self.gemm.vector(self.factor, self._at_step(code, r, j), self.along, on, further)

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """Prefetches everything that is read there."""
        coords = self._at_step(code, code.add(r, steps), j)
        further = self.gemm.panel_jump(self.coords[self.along]) if self.factor.panels is not None else None
        for load, each in zip(self.factor.loads, self.factor.accesses, strict=True):
            if load.buffer in self.gemm.kernel.flat:
                index = self.gemm.offset(each, coords)
                index = index if further is None else code.add(index, further)
                code.prefetch(self.gemm.kernel.flat[load.buffer], [index], level)

    def _at_step(self, code: Code, r: SSAValue, i: SSAValue | int) -> Coords:
        reduced = self.gemm.contraction.reduced
        step = code.add(self.coords[reduced], r) if reduced in self.coords else r
        return {**self.coords, self.along: code.add(self.coords[self.along], i), reduced: step}


def lies_evenly(gemm: Gemm, factor: Factor, along: tuple[int, ...]) -> bool:
    """Whether a factor is a strided matrix in memory: nothing is computed, and its axes are evenly spaced."""
    load, extents = factor.value.owner, gemm.contraction.stage.extents
    if not isinstance(load, LoadOp) or factor.value.type != factor.element or not factor.is_linear:
        return False
    buffer = gemm.kernel.flat.get(load.buffer)
    even = all(is_chain(factor.accesses, extents, axes) for axes in (along, gemm.contraction.reduced))
    return buffer is not None and even and buffer_type(buffer).scope == "global"


def operand(gemm: Gemm, factor: Factor, coords: Coords, along: tuple[int, ...]) -> Operand:
    """Rows or columns of a factor from given coordinates on, which say the first one and where K begins."""
    load, reduced = factor.value.owner, gemm.contraction.reduced
    if not isinstance(load, LoadOp) or not lies_evenly(gemm, factor, along):
        return Computed(gemm, factor, coords, along)
    buffer, (access,) = gemm.kernel.flat[load.buffer], factor.accesses
    first = gemm.offset(access, coords)
    if factor.panels is not None:
        first = gemm.code.add(first, gemm.panel_jump(coords[along]))
    each, step = (_spacing(gemm.code, access.strides[axes[-1]] if axes else constant(0)) for axes in (along, reduced))
    return Matrix(buffer, first, each, step, gemm.tiles.lanes)


def _spacing(code: Code, stride: Dim) -> SSAValue | int:
    known = stride.constant_value
    return code.dim(stride) if known is None else known


def elements_before_alignment(gemm: Gemm, factor: Factor, coords: Coords) -> SSAValue:
    """How many elements lie before the first aligned one, from given coordinates of a factor on.

    0 where it is not loaded from one buffer, so that no two loads would have to agree.
    """
    code, lanes = gemm.code, gemm.tiles.lanes
    buffer = gemm.kernel.flat.get(factor.loads[0].buffer) if len(factor.loads) == 1 else None
    if buffer is None or not factor.is_linear or not is_power_of_two(lanes):
        return code.index(0)
    late = code.misalignment(buffer, [gemm.offset(factor.accesses[0], coords)], lanes)
    return code.remainder(code.sub(code.index(lanes), late), lanes)
