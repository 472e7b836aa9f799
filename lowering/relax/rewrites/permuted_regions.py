"""Elementwise operators that can all stand before a permutation, and what they need there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from lowering.relax.movement import dims_of, is_elementwise, is_single_element
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.manipulation import PermuteDimsOp, ReshapeOp, permutation
from relax_dialect.ops.reduction import MaxOp, MeanOp, MinOp, ReductionOp, SumOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dims import Dim
from tir_dialect.elements import tensor_attr

MOST_ELEMENTS = 1 << 16
"""Constants up to this size are permuted when the program is compiled."""

EarlyReductionOp: TypeAlias = SumOp | MeanOp | MaxOp | MinOp
"""Reductions that give the same in any order of their elements, but for rounding."""

_MOST_OPS = 32
"""Regions up to this size are looked for."""


def moves_only_ones(dims: Sequence[Dim], axes: Sequence[int]) -> bool:
    """Whether a permutation leaves the order of all dimensions that are not 1, and so of the elements."""
    kept = [axis for axis in axes if dims[axis].constant_value != 1]
    return kept == sorted(kept)


def can_precede(operand: SSAValue, axes: Sequence[int]) -> bool:
    """Whether it is known what an operand was before a permutation by `axes`, without a copy when the program runs."""
    return _is_permuted_by(operand.owner, axes) or is_single_element(operand) or _is_cheap(operand, _back(axes))


def before_permutation(operand: SSAValue, axes: Sequence[int], new: list[Operation]) -> SSAValue:
    """What an operand was before a permutation by `axes`, where it can precede that; makers are added to `new`."""
    maker = operand.owner
    if isinstance(maker, PermuteDimsOp) and _is_permuted_by(maker, axes):
        return maker.x
    if is_single_element(operand):
        return operand
    array, dims = _small_array(operand), dims_of(operand)
    if array is None and dims is not None:
        return viewed(operand, [dims[axis] for axis in _back(axes)], new)
    assert array is not None  # the caller has asked whether it can
    full = array.reshape((1,) * (len(axes) - array.ndim) + array.shape)
    made = ConstantOp(tensor_attr(np.ascontiguousarray(full.transpose(_back(axes)))))
    made.result.name_hint = operand.name_hint
    new.append(made)
    return made.result


def viewed(value: SSAValue, dims: Sequence[Dim], new: list[Operation]) -> SSAValue:
    """The elements of a value, in their order, with other dimensions; ops that make it are added to `new`."""
    maker = value.owner
    if isinstance(maker, ReshapeOp) and dims_of(maker.x) == tuple(dims) and is_never_written(maker.x):
        return maker.x
    shape = ShapeOp(dims)
    new += [shape, view := ReshapeOp(value, shape)]
    return view.result


def keeps_order(op: ReductionOp, axes: Sequence[int]) -> bool:
    """Whether the result of a reduction of what is permuted by `axes` has its elements in the order before that."""
    dims = dims_of(op.result)
    return op.keepdims is not None and op.axes is not None and dims is not None and moves_only_ones(dims, _back(axes))


def is_left_by_one(permuted: PermuteDimsOp) -> bool:
    """Whether all users of a permuted value can come before the permutation, with users of theirs until one is left.

    The one result that is used elsewhere is permuted then: a program with as many permutations, whose elementwise ops
    are next to what made their operands. Reductions after which order does not matter use what is not permuted.
    """
    axes, dims = permutation(permuted), dims_of(permuted.result)
    if axes is None or dims is None or not is_never_written(permuted.x):
        return False
    region: set[Operation] = set()
    inside: set[SSAValue] = {permuted.result}
    waiting = _users(permuted.result, axes)
    while waiting and len(region) < _MOST_OPS:
        user = waiting.pop(0)
        if user in region or not _can_join(user, inside, axes, dims):
            continue
        region.add(user)
        inside.add(user.results[0])
        left = [value for value in inside if any(each not in region for each in _users(value, axes))]
        if permuted.result not in left and len(left) <= 1:
            return True
        # What waited for the result of this op may follow now
        waiting += _users(user.results[0], axes)
    return False


def _back(axes: Sequence[int]) -> list[int]:
    return [list(axes).index(axis) for axis in range(len(axes))]


def _is_permuted_by(maker: object, axes: Sequence[int]) -> bool:
    return isinstance(maker, PermuteDimsOp) and permutation(maker) == tuple(axes) and is_never_written(maker.x)


def _small_array(operand: SSAValue) -> np.ndarray | None:
    array = operand.owner.array if isinstance(operand.owner, ConstantOp) else None
    return array if array is not None and array.size <= MOST_ELEMENTS else None


def _is_cheap(operand: SSAValue, back: Sequence[int]) -> bool:
    if _small_array(operand) is not None:
        return True
    dims = dims_of(operand)
    if dims is None or len(dims) != len(back) or not is_never_written(operand):
        return False
    return moves_only_ones(dims, back)


def _users(value: SSAValue, axes: Sequence[int]) -> list[Operation]:
    """The users of a value, without reductions that can come before its permutation."""
    users = dict.fromkeys(use.operation for use in value.uses)
    return [user for user in users if not (isinstance(user, EarlyReductionOp) and keeps_order(user, axes))]


def _can_join(op: Operation, inside: set[SSAValue], axes: Sequence[int], dims: Sequence[Dim]) -> bool:
    if not is_elementwise(op) or dims_of(op.results[0]) != tuple(dims):
        return False
    return all(operand in inside or can_precede(operand, axes) for operand in op.operands)
