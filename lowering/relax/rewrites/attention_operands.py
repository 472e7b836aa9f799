"""Operands of attention, seen through what exporters put around them: permutations, scales, repeated heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from relax_dialect.ops.binary import DivideOp, MultiplyOp
from relax_dialect.ops.joining import RepeatOp
from relax_dialect.ops.manipulation import BroadcastToOp, ExpandDimsOp, PermuteDimsOp, ReshapeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class Operand:
    """A value in the order of `letters`, that is multiplied by `scale` where it is read."""

    value: SSAValue
    letters: str
    """What each dimension is: batch, sequence, head, feature; without the head, there is one."""
    scale: float = 1.0

    def dim(self, letter: str) -> Dim | None:
        """The dimension of a letter, if it is known."""
        dims = dims_of(self.value)
        return dims[self.letters.index(letter)] if len(dims) == len(self.letters) else None


def queries(value: SSAValue, letters: str) -> Operand:
    """Queries before orders were changed and numbers multiplied."""
    return _look_through(Operand(value, letters), _permuted, _scaled)


def keys(value: SSAValue, letters: str) -> Operand:
    """Keys before orders were changed, numbers multiplied and heads repeated."""
    return _look_through(Operand(value, letters), _permuted, _scaled, _repeated)


def values(value: SSAValue, letters: str) -> Operand:
    """Values before orders were changed and heads repeated."""
    return _look_through(Operand(value, letters), _permuted, _repeated)


def in_any_order(value: SSAValue, letters: str) -> Operand:
    """A value before its order was changed."""
    return _look_through(Operand(value, letters), _permuted)


def _look_through(operand: Operand, *steps: Callable[[Operand], Operand | None]) -> Operand:
    while len(dims_of(operand.value)) == len(operand.letters):
        found = next((found for step in steps if (found := step(operand)) is not None), None)
        if found is None:
            break
        operand = found
    return operand


def dims_of(value: SSAValue) -> tuple[Dim | None, ...]:
    """The dimensions of a tensor; none where the rank is not known."""
    info = value.type
    return info.dims or () if isinstance(info, TensorType) else ()


def permutation(op: PermuteDimsOp) -> tuple[int, ...]:
    """The dimension of the operand for each of the result."""
    rank = len(dims_of(op.x))
    axes = reversed(range(rank)) if op.axes is None else op.axes.get_values()
    return tuple(axis % rank for axis in axes)


def scalar(value: SSAValue) -> float | None:
    """The number that a constant of one element is."""
    op = value.owner
    array = op.array if isinstance(op, ConstantOp) else None
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _permuted(operand: Operand) -> Operand | None:
    op = operand.value.owner
    if not isinstance(op, PermuteDimsOp) or not dims_of(op.x):
        return None
    axes = permutation(op)
    letters = "".join(operand.letters[axes.index(axis)] for axis in range(len(axes)))
    return replace(operand, value=op.x, letters=letters)


def _scaled(operand: Operand) -> Operand | None:
    op = operand.value.owner
    if isinstance(op, MultiplyOp):
        for x, y in ((op.x, op.y), (op.y, op.x)):
            factor = scalar(y)
            if factor is not None and dims_of(x) == dims_of(operand.value):
                return replace(operand, value=x, scale=operand.scale * factor)
    if isinstance(op, DivideOp):
        divisor = scalar(op.y)
        if divisor and dims_of(op.x) == dims_of(operand.value):
            return replace(operand, value=op.x, scale=operand.scale / divisor)
    return None


def _repeated(operand: Operand) -> Operand | None:
    """The heads of which each was repeated for consecutive heads of queries."""
    if "H" not in operand.letters:
        return None
    position, op = operand.letters.index("H"), operand.value.owner
    if isinstance(op, RepeatOp):
        same = op.axis is not None and op.axis.value.data % len(operand.letters) == position
        return replace(operand, value=op.x) if same else None
    wide = op.x.owner if isinstance(op, ReshapeOp) else None
    if not isinstance(wide, BroadcastToOp):
        return None
    narrow = wide.x.owner
    source = narrow.x if isinstance(narrow, ReshapeOp | ExpandDimsOp) else None
    if source is None or not _is_repetition(source, wide, dims_of(operand.value), position):
        return None
    return replace(operand, value=source)


def _is_repetition(source: SSAValue, wide: BroadcastToOp, result: Sequence[Dim | None], index: int) -> bool:
    """Whether `source` has got a dimension after `position`, which was broadcast and then became one with that
    before.
    """
    old, one, many = dims_of(source), dims_of(wide.x), dims_of(wide.result)
    if None in (*old, *one, *many, *result) or len(old) != len(result) or len(many) != len(result) + 1:
        return False
    count = one[index + 1]
    rest = [(*dims[: index + 1], *dims[index + 2 :]) for dims in (one, many)]
    joined = (*result[:index], *result[index + 1 :])
    same = old == rest[0] == rest[1] and (*old[:index], *old[index + 1 :]) == joined
    return same and count is not None and count.constant_value == 1
