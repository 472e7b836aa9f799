"""Which generator makes the code of a GEMM: the first one whose condition holds in a call, else packed panels.

Those for small M or small N come first. A condition that is known when the code is made costs nothing; one on symbolic
sizes becomes a branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.cost_model import (
    LONG_DOT_MIN_K,
    SKINNY_MAX_M,
    SMALL_M_MAX_M,
    SMALL_M_MIN_M,
    SMALL_M_MIN_N,
    SMALL_N,
    SWAP_MAX_N,
)
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
