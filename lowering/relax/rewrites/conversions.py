"""Conversions of numbers that are known to be in the range of a dtype."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.binary import BinaryOp, MaximumOp, MinimumOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype


def direct(op: AstypeOp) -> AstypeOp | None:
    """An integer made of a narrower one that was made of a float within its range: made of the float at once."""
    narrow = op.x.owner
    if not isinstance(narrow, AstypeOp) or not is_never_written(narrow.x) or not is_never_written(narrow.result):
        return None
    inner, outer = integer_range(narrow.dtype), integer_range(op.dtype)
    if inner is None or outer is None or not (outer[0] <= inner[0] and inner[1] <= outer[1]):
        return None
    return AstypeOp(narrow.x, op.dtype) if _is_float(narrow.x) and _is_within(narrow.x, *inner) else None


def integer_range(dtype: Attribute) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype; `None` for others."""
    kind = np.dtype(numpy_dtype(dtype))
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    return None if limits is None else (int(limits.min), int(limits.max))


def _is_float(value: SSAValue) -> bool:
    info = value.type
    return isinstance(info, TensorType) and info.dtype is not None and np.dtype(numpy_dtype(info.dtype)).kind == "f"


def _is_within(value: SSAValue, low: int, high: int) -> bool:
    """Whether a value is `minimum(maximum(x, a), b)` of constants within a range."""
    found = clipped(value)
    return found is not None and low <= found[1] and found[2] <= high


def clipped(value: SSAValue) -> tuple[SSAValue, float, float] | None:
    """The `x`, `a` and `b` if a value is `minimum(maximum(x, a), b)` of constants."""
    top, upper = _bound(value, MinimumOp)
    source, lower = (None, None) if top is None else _bound(top, MaximumOp)
    return None if source is None or lower is None or upper is None else (source, lower, upper)


def _bound(value: SSAValue, kind: type[BinaryOp]) -> tuple[SSAValue, float] | tuple[None, None]:
    """The operand of an op that is no constant, and the number that the other one is."""
    op = value.owner
    if isinstance(op, kind):
        for constant, other in ((op.y, op.x), (op.x, op.y)):
            array = constant.owner.array if isinstance(constant.owner, ConstantOp) else None
            if array is not None and array.size == 1:
                return other, float(array.reshape(-1)[0])
    return None, None
