"""Which generator makes the code of a GEMM: the first one whose condition holds in a call, else packed panels.

Those for few rows or columns come first. A condition that is known when the code is made costs nothing; one on symbolic
sizes becomes a branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.dot import DotGemm, LongDotGemm, can_dot, can_long_dot, dot_may_be_profitable
from lowering.kernels.cpu.gemm.gemv import Gemv, can_be_gemv
from lowering.kernels.cpu.gemm.operand_swap import SwappedGemm, can_swap_operands
from lowering.kernels.cpu.gemm.packed import PackedGemm
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.gemm.remainder_columns import has_remainder, max_small_n, narrow_step
from lowering.kernels.cpu.gemm.skinny import SkinnyGemm, can_be_skinny
from lowering.kernels.cpu.gemm.small_m import SmallMGemm, can_be_small_m, replaces_skinny
from lowering.kernels.cpu.gemm.small_n import SmallNGemm, can_be_small_n

Generator = Gemv | SmallNGemm | SwappedGemm | SmallMGemm | SkinnyGemm | LongDotGemm | DotGemm


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


def emit_best(gemm: Gemm, candidates: Sequence[Generator], coords: Coords) -> None:
    """The code of the first candidate that is best in a call, for one batch; packed panels if none is."""
    if not candidates:
        PackedGemm(gemm).emit(coords)
        return
    generator, *others = candidates
    if isinstance(generator, SmallNGemm) and has_remainder(gemm):
        generator.emit_last(coords, _remainder_step(gemm, others))
        n, most = gemm.code.dim(gemm.n, "n"), gemm.code.dim(max_small_n(gemm))
        with gemm.code.when(gemm.code.compare("sgt", n, most)):
            emit_best(gemm, others, coords)
        return
    is_best = generator.is_best
    if is_best is None:
        generator.emit(coords)
        return
    with gemm.code.when(is_best) as branch:
        generator.emit(coords)
    with gemm.code.otherwise(branch):
        emit_best(gemm, others, coords)


def _remainder_step(gemm: Gemm, candidates: Sequence[Generator]) -> SSAValue:
    """The steps of columns after which very few are multiplied separately: narrow ones for a skinny GEMM."""
    code, width, narrow = gemm.code, gemm.tiles.width, narrow_step(gemm)
    skinny = [candidate for candidate in candidates if isinstance(candidate, SkinnyGemm)]
    if not skinny:
        return code.index(width)
    is_best = skinny[0].is_best
    return code.index(narrow) if is_best is None else code.select(is_best, code.index(narrow), code.index(width))
