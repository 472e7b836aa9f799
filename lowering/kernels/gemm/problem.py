"""A contraction as a batched GEMM, `C[m, n] += A[m, k] * B[k, n]`: its sizes and the values of its operands."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType
from xdsl.ir import SSAValue

from lowering.kernels.emit.body import Explicit, Lanes
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import masks_are_cheap, masks_are_registers
from lowering.kernels.gemm.tiling import Tiling
from lowering.kernels.structure.contraction import Contraction, Epilogue, Factor, is_chain
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.control_flow import LoopKind
from tir_dialect.ops.memory import lanes_of
from tir_dialect.target import LINE_BYTES

Coords = Mapping[tuple[int, ...], SSAValue]
"""Values of axes; of several axes that count as one, the last changing fastest, one number for all."""


@dataclass(frozen=True)
class Gemm:
    """A contraction whose code is being emitted: A is the factor of the rows, B that of the columns, C the output."""

    kernel: Kernel
    contraction: Contraction
    epilogue: Epilogue
    tiles: Tiling
    is_swapped: bool = False
    """Whether its operands are swapped: it is the transpose of a GEMM with small N, and has one generator."""

    @property
    def code(self) -> Code:
        """Where the code goes."""
        return self.kernel.code

    def size(self, axes: Sequence[int]) -> Dim:
        """How many values some axes have together."""
        return product_of(self.contraction.stage.extents[axis] for axis in axes)

    @property
    def accumulators(self) -> SSAValue:
        """Memory for the partial sums between K blocks, and for results unless an epilogue follows."""
        return self.kernel.flat[self.contraction.store.buffer]

    @property
    def mr_sizes(self) -> tuple[int, ...]:
        """Rows of the tiles. If M is known, the last tile has as many as are left."""
        rows, known = self.tiles.mr, self.m.constant_value
        if known is None:
            return self.tiles.mr_sizes + (self.tiles.low if self.contraction.columns.panels else ())
        rest = known % rows
        return (rest,) if 0 < known < rows else (rows, rest) if rest else (rows,)

    @property
    def m(self) -> Dim:
        """M, the number of rows."""
        return self.size(self.contraction.row)

    @property
    def n(self) -> Dim:
        """N, the number of columns of one set."""
        return self.size(self.contraction.column)

    @property
    def k(self) -> Dim:
        """K, the length of the reduction."""
        return self.size(self.contraction.reduced)

    @property
    def rounds(self) -> Dim:
        """How many sets of columns there are."""
        return self.size(self.contraction.outer)

    def threads(self, least: int, work: Dim | None = None) -> Dim:
        """How many threads have `least` multiply-adds to do, at least one and at most all.

        `work` is the number of multiply-adds, unless it is that of one batch.
        """
        work = self.m * self.n * self.rounds * self.k if work is None else work
        worthwhile = floordiv(work, constant(self.kernel.least_work(least)))
        return maximum(minimum(worthwhile, constant(self.kernel.target.cores)), constant(1))

    # Coordinates

    def at(self, accesses: Iterable[AffineAccess], pinned: Iterable[int], coords: Coords) -> dict[int, SSAValue]:
        """The values of single axes; of axes that count as one for these accesses, that of the last."""
        accesses, pinned = tuple(accesses), frozenset(pinned)
        extents = self.contraction.stage.extents
        found: dict[int, SSAValue] = {}
        for axes, number in coords.items():
            if axes and not pinned.intersection(axes) and is_chain(accesses, extents, axes):
                found[axes[-1]] = number
            elif axes:
                found.update(zip(axes, self._digits(number, axes), strict=True))
        missing = (axis for axis in pinned if axis not in found)
        return found | {axis: self.code.index(0) for axis in missing}

    def _digits(self, number: SSAValue, axes: Sequence[int]) -> list[SSAValue]:
        found: list[SSAValue] = []
        for axis in reversed(axes[1:]):
            extent = self.code.dim(self.contraction.stage.extents[axis])
            found.append(self.code.remainder(number, extent))
            number = self.code.divide(number, extent)
        return [number, *reversed(found)]

    def panel_position(self, coords: Coords, number: SSAValue, width: int | None = None) -> tuple[Coords, SSAValue]:
        """The set of columns that a panel is in, and its first column; as wide as a tile unless told."""
        code, outer, width = self.code, self.contraction.outer, width or self.tiles.nr
        if not outer:
            return coords, code.mul(number, width)
        each = code.dim(ceildiv(self.n, constant(width)))
        here = {**coords, outer: code.divide(number, each)}
        return here, code.mul(code.remainder(number, each), width)

    def is_contiguous(self, factor: Factor, axes: Sequence[int]) -> bool:
        """Whether a factor lies in memory along some axes as one, element beside element."""
        moves = bool(axes) and factor.is_linear and is_chain(factor.accesses, self.contraction.stage.extents, axes)
        return moves and factor.stride(axes[-1]) == 1

    def has_vectors(self, factor: Factor, axes: Sequence[int]) -> bool:
        """Whether neighbours along some axes as one lie beside each other, if the first of them is a multiple of the
        lanes of a vector.

        As `is_contiguous`, but along other axes addresses may be looked up, as those of pages are.
        """
        if self.is_contiguous(factor, axes):
            return True
        moves = bool(axes) and factor.is_linear_along(axes, self.tiles.lanes)
        return moves and is_chain(factor.accesses, self.contraction.stage.extents, axes)

    def offset(self, access: AffineAccess, coords: Coords) -> SSAValue:
        """An access that is linear in the axes, in elements from the start of the buffer."""
        terms = [(number, access.strides[axis]) for axis, number in self.at([access], (), coords).items()]
        return self.code.linear(access.base, terms)

    # Values

    def element(self, factor: Factor, coords: Coords) -> SSAValue:
        """One element of a factor."""
        body = Explicit(self.kernel, self.contraction.stage, self.at(factor.accesses, factor.pinned, coords))
        body.run(factor.ops)
        return self._as_float(factor, body.value(factor.value))

    def vector(
        self, factor: Factor, coords: Coords, along: Sequence[int], on: SSAValue | None, further: SSAValue | None = None
    ) -> SSAValue:
        """A factor at the lanes of a vector, that start at the value in `coords` of the axes `along`.

        All lanes, or `on` lanes or more take part; the loads are `further` elements on than the coordinates say.
        """
        lanes = Lanes(along[-1], self.tiles.lanes, on)
        body = Explicit(
            self.kernel, self.contraction.stage, self.at(factor.accesses, factor.pinned, coords), lanes, further
        )
        body.run(factor.ops)
        return self._as_float(factor, body.widened(body.value(factor.value)))

    def prefetch(self, factor: Factor, coords: Coords, level: int) -> None:
        """Prefetches what one element of a factor is computed from; addresses may be looked up."""
        at = self.at(factor.accesses, factor.pinned, coords)
        Explicit(self.kernel, self.contraction.stage, at).prefetch(factor.ops, level)

    def panel_jump(self, left: SSAValue) -> SSAValue:
        """How much further the panel with the column `left` is than if all columns were in the first panel."""
        width = self.contraction.columns.panels
        if width is not None and width != self.tiles.nr:  # of a machine with other tiles
            left = self.code.sub(left, self.code.remainder(left, width))
        return self.code.mul(left, self.code.dim(self.k - 1))

    def _as_float(self, factor: Factor, value: SSAValue) -> SSAValue:
        if factor.value.type == factor.element:
            return value
        lanes = lanes_of(value.type)
        if lanes is None:
            return self.code.value(arith.SIToFPOp.create(operands=[value], result_types=[factor.element]))
        return self.code.value(ConvertOp("sitofp", value, VectorType(factor.element, [lanes])))

    @property
    def has_cheap_masks(self) -> bool:
        """Whether vectors can be loaded under masks from all its buffers for next to nothing."""
        return masks_are_cheap(self.kernel, [self.contraction.stage, *(step.stage for step in self.epilogue.steps)])

    def masked(self, on: SSAValue, lanes: int, emit: Callable[[bool], None]) -> None:
        """What is done with `lanes` lanes of which `on` are on: where masks take long, without them if all are on."""
        if masks_are_registers(self.kernel):
            emit(True)
            return
        with self.code.when(self.code.compare("sge", on, lanes)) as branch:
            emit(False)
        with self.code.otherwise(branch):
            emit(True)

    # Loops

    @contextmanager
    def batches(self) -> Generator[Coords]:
        """The loops over the batch axes, whose GEMMs share nothing; threads take chunks of them."""
        contraction, code = self.contraction, self.code
        if not contraction.batch:
            yield {}
            return
        with code.loop(code.dim(self.size(contraction.batch), "batches"), "batch", kind=LoopKind.PARALLEL) as batch:
            yield {contraction.batch: batch}


def cache_line_starts(gemm: Gemm) -> range:
    """The first column in each cache line of a row of a panel that begins with one."""
    return range(0, gemm.tiles.nr, _elements_per_line(gemm.tiles.nr, gemm.contraction.element))


def cache_line_ends(gemm: Gemm) -> range:
    """The last column in each of them: where a panel begins anywhere, its first may be in the line before."""
    return cache_line_ends_of(gemm.tiles.nr, gemm.contraction.element)


def cache_line_ends_of(width: int, element: AnyFloat | IntegerType) -> range:
    """The same for so many columns of a type."""
    step = _elements_per_line(width, element)
    return range(step - 1, width, step)


def _elements_per_line(width: int, element: AnyFloat | IntegerType) -> int:
    """Elements in a cache line, at most those of a row of a panel."""
    return min(width, LINE_BYTES // byte_size(element))
