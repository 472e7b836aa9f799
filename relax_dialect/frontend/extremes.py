"""The greatest and the least element along axes that may have none, for source languages where that is no error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import constant

Extreme = Literal["max", "min"]


def extreme(bb: BlockBuilder, x: Expr, axes: Sequence[int], kind: Extreme, *, keepdims: bool = False) -> Expr:
    """The greatest (`max`) or the least element along axes; of none the identity: of floats an infinity, of integers
    the end of their range.

    An axis that surely has elements is left to `relax.max` and `relax.min`, which passes know.
    """
    dims = x.type.known_dims if isinstance(x.type, TensorType) else None
    if dims is None or all(DEFAULT_PROVER.less_equal(1, dims[axis]) for axis in axes):
        return (op.max if kind == "max" else op.min)(x, axes, keepdims=keepdims)

    def along(x: te.Tensor) -> te.Tensor:
        return _extreme_along(x, axes, kind)

    made = bb.emit_te(along, x, name_hint=f"reduce_{kind}")
    assert isinstance(made, Expr)  # one tensor
    return made if keepdims else op.squeeze(made, axes)


def _extreme_along(x: te.Tensor, axes: Sequence[int], kind: Extreme) -> te.Tensor:
    over = {axis % len(x.shape): te.reduce_axis(x.shape[axis], f"r{axis % len(x.shape)}") for axis in axes}
    shape = [constant(1) if axis in over else dim for axis, dim in enumerate(x.shape)]

    def element(*i: te.Expr) -> te.Expr:
        positions = list(i)
        for axis, position in over.items():
            positions[axis] = position
        return (te.max if kind == "max" else te.min)(x[tuple(positions)], list(over.values()))

    return te.compute(shape, element, name=f"reduce_{kind}")
