"""Which generator makes the code of a GEMM: the first one whose condition holds in a call, else packed panels.

Those for small M or small N come first. A condition that is known when the code is made costs nothing; one on symbolic
sizes becomes a branch.

Operand swap is one of them: small N and a transposed A, computed as the transposed GEMM, which has small M.
`C = A B` becomes `C^T = B^T A^T`, along long rows of `A^T` as it lies in memory. The results are transposed in
registers; they are fewer than the multiply-adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    LONG_DOT_MIN_K,
    SKINNY_MAX_M,
    SMALL_M_MAX_M,
    SMALL_M_MIN_M,
    SMALL_M_MIN_N,
    SMALL_N,
    SWAP_MAX_N,
    SWAP_MIN_K,
    TASK_MACS,
)
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import is_power_of_two
from lowering.kernels.gemm.dot import DotGemm, LongDotGemm, can_dot, can_long_dot, dot_may_be_profitable
from lowering.kernels.gemm.epilogue import SinglePassGemm, can_store_tiles, output_tile
from lowering.kernels.gemm.gemv import Gemv, can_be_gemv
from lowering.kernels.gemm.micro_kernel import lies_evenly
from lowering.kernels.gemm.packed import PackedGemm
from lowering.kernels.gemm.packing import TransposeRoutine
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import has_remainder, max_small_n, narrow_step
from lowering.kernels.gemm.skinny import SkinnyGemm, can_be_skinny
from lowering.kernels.gemm.small_m import SmallMGemm, can_be_small_m, replaces_skinny
from lowering.kernels.gemm.small_n import SmallNGemm, can_be_small_n
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, ceildiv, constant, minimum


def can_swap_operands(gemm: Gemm) -> bool:
    """Whether A is transposed and N may be small, both operands lie in memory, and there is no epilogue."""
    contraction, known = gemm.contraction, gemm.n.constant_value
    plain = (
        contraction.longest is None
        and not contraction.outer
        and contraction.columns.panels is None
        and can_store_tiles(gemm)
    )
    evenly = all(
        lies_evenly(gemm, *each)
        for each in ((contraction.rows, contraction.row), (contraction.columns, contraction.column))
    )
    few = known is None or 0 < known <= SWAP_MAX_N
    beside = gemm.is_contiguous(contraction.rows, contraction.row)
    return plain and evenly and few and beside and is_power_of_two(gemm.tiles.lanes)


class SwappedGemm(SinglePassGemm):
    """Emits a GEMM with swapped operands, for one batch."""

    @property
    def is_best(self) -> SSAValue:
        """Whether N is small, and K is not."""
        code, gemm = self.code, self.gemm
        few = code.compare("sle", code.dim(gemm.n, "n"), SWAP_MAX_N)
        return code.both(few, code.compare("sge", code.dim(gemm.k, "k"), SWAP_MIN_K))

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code, gemm, lanes = self.code, self.gemm, self.lanes
        pitch = ceildiv(gemm.m, constant(lanes)) * lanes
        most = gemm.n if gemm.n.constant_value is not None else minimum(gemm.n, constant(SWAP_MAX_N))
        accumulators = code.alloc([most * pitch], gemm.contraction.element, "swapped")
        inner = self._swapped(accumulators, pitch)
        generators: list[Gemv | SmallMGemm | SkinnyGemm] = []
        if can_be_gemv(inner):
            generators.append(Gemv(inner))
        if can_be_small_m(inner):
            generators.append(SmallMGemm(inner))
        self._emit_best([*generators, SkinnyGemm(inner)], coords)
        # Transposes the results into rows of the output.
        code, gemm, contraction, lanes = self.code, self.gemm, self.gemm.contraction, self.lanes
        zero, m = code.index(0), code.dim(gemm.m)
        out = output_tile(gemm, {**coords, contraction.row: zero, contraction.column: zero}, zero)
        routine = TransposeRoutine(contraction.element, lanes, is_exact=True)
        vectors = ceildiv(gemm.m, constant(lanes))
        tasks = minimum(vectors, gemm.threads(TASK_MACS))
        with shared_units(code, vectors, tasks, whole=True) as (lower, upper):
            first, end = code.mul(lower, lanes), code.minimum(code.mul(upper, lanes), m)
            begin = code.add(out.first, code.mul(first, out.each))
            sizes = [zero, code.dim(ceildiv(gemm.n, constant(lanes))), code.dim(gemm.n), code.sub(end, first)]
            sizes += [first, code.dim(pitch), begin, out.each]
            gemm.kernel.routines.call(code, routine, sizes, [accumulators, out.buffer])

    def _emit_best(self, generators: Sequence[Gemv | SmallMGemm | SkinnyGemm], coords: Coords) -> None:
        """The first generator that is best in a call, or else the last one."""
        generator, *others = generators
        is_best = generator.is_best if others else None
        if is_best is None:
            generator.emit(coords)
            return
        with self.code.when(is_best) as branch:
            generator.emit(coords)
        with self.code.otherwise(branch):
            self._emit_best(others, coords)

    def _swapped(self, accumulators: SSAValue, pitch: Dim) -> Gemm:
        """The transposed GEMM, whose output is memory for its rows."""
        gemm, contraction = self.gemm, self.gemm.contraction
        extents, strides = contraction.stage.extents, [constant(0)] * len(contraction.stage.axes)
        for axes, step in ((contraction.row, constant(1)), (contraction.column, pitch)):
            for axis in reversed(axes):
                strides[axis], step = step, step * extents[axis]
        access = AffineAccess(constant(0), tuple(strides))
        stage = replace(contraction.stage, wholes={**contraction.stage.wholes, contraction.store: access})
        swapped = replace(
            contraction,
            stage=stage,
            rows=contraction.columns,
            columns=contraction.rows,
            row=contraction.column,
            column=contraction.row,
        )
        flat = {**gemm.kernel.flat, contraction.store.buffer: accumulators}
        return replace(gemm, kernel=replace(gemm.kernel, flat=flat), contraction=swapped, is_swapped=True)


Generator = Gemv | SmallNGemm | SwappedGemm | SmallMGemm | SkinnyGemm | LongDotGemm | DotGemm

REASONS: Mapping[type[Generator], tuple[str, str]] = {
    Gemv: ("gemv", "M = 1"),
    SmallMGemm: ("small-m", f"{SMALL_M_MIN_M} <= M <= {SMALL_M_MAX_M} and N >= {SMALL_M_MIN_N}"),
    SmallNGemm: ("small-n", f"N <= {SMALL_N} and A is contiguous along K"),
    LongDotGemm: ("long-dot", f"M = 1, K >= {LONG_DOT_MIN_K}, and A and B are contiguous along K"),
    DotGemm: ("dot", f"M <= {SKINNY_MAX_M} and few for K, and A and B are contiguous along K"),
    SwappedGemm: ("operand-swap", f"N <= {SWAP_MAX_N} and A is transposed"),
    SkinnyGemm: ("skinny", "M or N is small, or B fits the second-level cache"),
}
"""The name of each generator, and when it is best."""


def generators(gemm: Gemm) -> list[Generator]:
    """Those that may be best in some call, in the order in which their conditions are tested."""
    found: list[Generator] = []
    if can_be_gemv(gemm):
        found.append(Gemv(gemm))
    if can_be_small_m(gemm):
        found.append(SmallMGemm(gemm))
    if can_be_small_n(gemm):
        found.append(SmallNGemm(gemm))
    if can_long_dot(gemm):
        found.append(LongDotGemm(gemm))
    if can_dot(gemm) and dot_may_be_profitable(gemm):
        found.append(DotGemm(gemm))
    if can_swap_operands(gemm):
        found.append(SwappedGemm(gemm))
    if can_be_skinny(gemm) and not replaces_skinny(gemm):
        found.append(SkinnyGemm(gemm))
    return found


def emit_best(gemm: Gemm, candidates: Sequence[Generator], coords: Coords) -> list[str]:
    """The code of the first candidate that is best in a call, for one batch; packed panels if none is.

    Says which candidates are in the code, and when they run.
    """
    if not candidates:
        PackedGemm(gemm).emit(coords)
        return [f"packed in tiles of {gemm.tiles.mr} x {gemm.tiles.nr}"]
    generator, *others = candidates
    name, reason = REASONS[type(generator)]
    if isinstance(generator, SmallNGemm) and has_remainder(gemm):
        generator.emit_last(coords, _remainder_step(gemm, others))
        n, most = gemm.code.dim(gemm.n, "n"), gemm.code.dim(max_small_n(gemm))
        with gemm.code.when(gemm.code.compare("sgt", n, most)):
            rest = emit_best(gemm, others, coords)
        return [f"{name} where {reason}, and for columns that remain after whole panels", *rest]
    is_best = generator.is_best
    if is_best is None:
        generator.emit(coords)
        return [f"{name} since {reason}"]
    with gemm.code.when(is_best) as branch:
        generator.emit(coords)
    with gemm.code.otherwise(branch):
        rest = emit_best(gemm, others, coords)
    return [f"{name} where {reason}", *rest]


def _remainder_step(gemm: Gemm, candidates: Sequence[Generator]) -> SSAValue:
    """The steps of columns after which very few are multiplied separately: narrow ones for a skinny GEMM."""
    code, width, narrow = gemm.code, gemm.tiles.nr, narrow_step(gemm)
    skinny = [candidate for candidate in candidates if isinstance(candidate, SkinnyGemm)]
    if not skinny:
        return code.index(width)
    is_best = skinny[0].is_best
    return code.index(narrow) if is_best is None else code.select(is_best, code.index(narrow), code.index(width))
