"""Unary elementwise operators: the scalar function of the op, on arrays."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops import unary
from relax_dialect.ops.binary import BroadcastOp
from relax_dialect.ops.unary import UnaryOp


def elementwise(op: UnaryOp | BroadcastOp, *operands: Array) -> Array:
    """NumPy's function, rounded once to the dtype that the op declares."""
    result = np.asarray(op.SCALAR.evaluate(*map(wide, operands)))
    return result.astype(bool if op.SCALAR.predicate else operands[0].dtype, copy=False)


for _op in vars(unary).values():
    if isinstance(_op, type) and issubclass(_op, UnaryOp) and "name" in vars(_op):
        computes(_op)(elementwise)
