"""The range of integers, and bounds of values."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from relax_dialect.ops.binary import BinaryOp, MaximumOp, MinimumOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dtypes import numpy_dtype


def integer_range(dtype: Attribute) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype; `None` for others."""
    kind = np.dtype(numpy_dtype(dtype))
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    return None if limits is None else (int(limits.min), int(limits.max))


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
