"""How many numbers a range has, whose bounds may be data."""

from __future__ import annotations

from tir_dialect import te
from tir_dialect.te.coerce import is_float

_MOST = 2**63 - 1


def range_length(start: te.Expr, stop: te.Expr, step: te.Expr) -> te.Expr:
    """The length of `start`, `start + step`, ... before `stop` as an `i64`; -1, which is no length, for a step of 0.

    It is exact for all integers of `i64`, and computed in `f64` for floats: a rounded difference may end just before
    one more number. A length that `i64` has not is its greatest number.
    """
    if is_float(start.dtype):
        first, last, by = (te.cast(each, "f64") for each in (start, stop, step))
        length = te.maximum(te.cast(te.ceil((last - first) / te.select(by == 0, 1.0, by)), "i64"), 0)
    else:
        first, last, by = (te.cast(each, "i64") for each in (start, stop, step))
        up = te.select(first < last, _steps(last - first, by), te.const(0, "i64"))
        down = te.select(first > last, _steps(first - last, -by), te.const(0, "i64"))
        length = te.select(by > 0, up, down)
    return te.select(by == 0, te.const(-1, "i64"), length)


def _steps(span: te.Expr, step: te.Expr) -> te.Expr:
    """A distance of 1 or more by a step, rounded up; what `i64` would have as negative is read as unsigned."""
    steps = te.floordiv(te.cast(span, "ui64") - 1, te.maximum(te.cast(step, "ui64"), 1))
    return te.cast(te.minimum(steps, _MOST - 1), "i64") + 1
