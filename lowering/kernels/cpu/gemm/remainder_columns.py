"""The columns after the last whole panel or vector: very few of them are multiplied separately, as small N.

A panel takes at least as long as one vector of columns, even for a single column. Where the last panel may be as narrow
as a vector, a very small number of columns after that is separate, too.
"""

from __future__ import annotations

from lowering.kernels.cpu.gemm.cost_model import (
    REMAINDER_COLUMNS,
    REMAINDER_MIN_M,
    SMALL_N,
    SMALL_N_K_PER_COLUMN,
    SMALL_N_M_PER_COLUMN,
)
from lowering.kernels.cpu.gemm.problem import Gemm
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum


def has_contiguous_rows(gemm: Gemm) -> bool:
    """Whether rows are contiguous along K, and columns in no panels, so that a small N can be multiplied."""
    contraction = gemm.contraction
    plain = contraction.longest is None and not contraction.outer and contraction.columns.panels is None
    several = bool(contraction.row) and gemm.m.constant_value != 1
    return plain and several and gemm.is_contiguous(contraction.rows, contraction.reduced)


def narrow_step(gemm: Gemm) -> int:
    """The width of the last panel, if it may be narrow: a vector, if that has more lanes than columns are few."""
    lanes = gemm.tiles.lanes
    return lanes if lanes > REMAINDER_COLUMNS else gemm.tiles.nr


def has_remainder(gemm: Gemm, step: int | None = None) -> bool:
    """Whether very few columns may remain after whole vectors or panels."""
    contraction, rows = gemm.contraction, gemm.m.constant_value
    if gemm.is_swapped or not has_contiguous_rows(gemm) or gemm.is_contiguous(contraction.columns, contraction.reduced):
        return False
    if not gemm.is_contiguous(contraction.columns, contraction.column) or (
        rows is not None and rows <= REMAINDER_MIN_M
    ):
        return False
    known = gemm.n.constant_value
    step = step or narrow_step(gemm)
    return known is None or (known > REMAINDER_COLUMNS and 0 < known % step <= REMAINDER_COLUMNS)


def max_small_n(gemm: Gemm) -> Dim:
    """The largest N that is small, at least one."""
    longer = floordiv(gemm.k, constant(SMALL_N_K_PER_COLUMN))
    most = minimum(constant(SMALL_N), maximum(longer, constant(1)))
    if gemm.is_contiguous(gemm.contraction.columns, gemm.contraction.reduced):
        return most
    return minimum(most, maximum(floordiv(gemm.m, constant(SMALL_N_M_PER_COLUMN)), constant(REMAINDER_COLUMNS)))


def is_small_n(gemm: Gemm) -> bool | None:
    """Whether N is small; `None` if that depends on the call."""
    columns, most = gemm.n.constant_value, max_small_n(gemm).constant_value
    if columns is None or (1 < columns <= SMALL_N and most is None):
        return None
    return columns <= (most or SMALL_N)


def max_remainder(gemm: Gemm, step: int) -> Dim:
    """The most columns that may remain after whole steps, fewer than a step has."""
    return minimum(constant(min(step - 1, REMAINDER_COLUMNS)), max_small_n(gemm))


def main_columns(gemm: Gemm, step: int) -> Dim:
    """N without the columns that remain after whole steps, where N is not small."""
    if not has_remainder(gemm, step):
        return gemm.n
    steps = floordiv(gemm.n + (constant(step - 1) - max_remainder(gemm, step)), constant(step))
    return minimum(gemm.n, maximum(steps, constant(1)) * step)


def main_panels(gemm: Gemm, step: int) -> Dim:
    """How many panels have these columns."""
    return ceildiv(main_columns(gemm, step), constant(gemm.tiles.nr)) * gemm.rounds
