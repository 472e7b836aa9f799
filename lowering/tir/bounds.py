"""Constant loop bounds."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tir_dialect.analysis.dims import dim_of
from tir_dialect.ops.loops import ForOp


def constant_value(value: SSAValue) -> int | None:
    """The integer that a value is, or None."""
    dim = dim_of(value)
    return None if dim is None else dim.constant_value


def constant_bounds(loop: ForOp) -> tuple[int, int] | None:
    """Lower and upper bound of a loop, if they are constants; the upper one is at least the lower one."""
    lower = 0 if loop.lower is None else constant_value(loop.lower)
    upper = constant_value(loop.upper)
    return None if lower is None or upper is None else (lower, max(lower, upper))
