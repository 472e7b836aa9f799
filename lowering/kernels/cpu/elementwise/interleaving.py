"""Copies between a few lines and memory in which they are interleaved: vectors are shuffled in registers.

Results of transposed convolutions, pixel shuffles and changes from `NCHW` to `NHWC` interleave lines: every n-th
element stored comes from the same line. Pictures whose channels lie side by side are split into lines.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.shuffles import interleaved, split
from lowering.kernels.cpu.emit.vectorization import Group, group_axes, masks_are_registers
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.stages import Stage, work_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp

MOST_LINES, MOST_LANES = 8, 16
MOST_SPLIT = 6
"""Where masks are cheap, tiles of more lines are transposed faster than split."""
LEAST_LANES = 4
FEW_LINES, LONG = (2, 3, 4), 256
"""There is code for so many lines where only the call knows how many there are, if they may be so long: as there may be
a few channels, but hardly a few pixels.
"""


@dataclass(frozen=True)
class Interleaving:
    """A copy between `count * along + line` on one side, and what is contiguous along `along` on the other."""

    stage: Stage
    others: tuple[Group, ...]
    along: Group
    line: Group
    counts: Sequence[int]
    """How many lines there may be; code is only run for one of them."""
    lanes: int
    load: LoadOp
    splits: bool
    """Whether lines are stored; else they are loaded."""

    @property
    def is_known(self) -> bool:
        """Whether this is the code for all calls."""
        return self.line.extent.constant_value is not None


def find_interleavings(kernel: Kernel, stage: Stage) -> list[Interleaving]:
    """The interleavings that a map is, one if that is known; none if it computes anything, or has other steps."""
    value = stage.stores[0].value.owner
    if len(stage.stores) != 1 or not isinstance(value, LoadOp):
        return []
    store, load = kernel.access(stage, stage.stores[0]), kernel.access(stage, value)
    if store.computed:
        return []
    groups = group_axes(kernel, [stage], range(len(stage.axes)))
    lanes = min(kernel.target.lanes(8 * byte_size(value.buffer_type.dtype)), MOST_LANES)
    found: list[Interleaving] = []
    for mixed, lines, splits in ((load, store, True), (store, load, False)):
        pair = _along_and_line(groups, mixed, lines)
        counts = () if pair is None else _counts(kernel, *pair, lanes, splits)
        if pair is not None and counts and _is_uniform(kernel, stage, value, [each.last for each in pair]):
            others = tuple(group for group in groups if group not in pair)
            found.append(Interleaving(stage, others, *pair, counts, lanes, value, splits))
    return [each for each in found if each.is_known][:1] or found


def _along_and_line(groups: Sequence[Group], mixed: AffineAccess, lines: AffineAccess) -> tuple[Group, Group] | None:
    """The group along lines, and the one from line to line, whose elements lie side by side in `mixed`."""
    line = next((group for group in groups if mixed.strides[group.last].constant_value == 1), None)
    if line is None:
        return None
    for group in groups:
        if lines.strides[group.last].constant_value == 1 and mixed.strides[group.last] is line.extent:
            return group, line
    return None


def _counts(kernel: Kernel, along: Group, line: Group, lanes: int, splits: bool) -> Sequence[int]:
    """For how many lines there is code."""
    length, known = along.extent.constant_value, line.extent.constant_value
    if lanes < LEAST_LANES or (length is not None and length < lanes):
        return []
    if known is None:
        is_worthwhile = length is None or length >= LONG
        return FEW_LINES if is_worthwhile and line.extent.as_symbol else []
    most = MOST_SPLIT if splits and masks_are_registers(kernel) else MOST_LINES
    return [known] if 1 < known <= min(most, lanes) else []


def _is_uniform(kernel: Kernel, stage: Stage, load: LoadOp, axes: Sequence[int]) -> bool:
    """Whether what the code computes is the same along some axes, such as the start of a row."""
    others = [kernel.access(stage, op) for op in stage.loads if op is not load]
    return stage.pinned.isdisjoint(axes) and not any(access.strides[axis].terms for access in others for axis in axes)


@contextmanager
def when_lines_have_code(kernel: Kernel, what: Interleaving) -> Generator[IfOp]:
    """What happens if a call has as many lines as there is code for, a vector or longer; gives the branch."""
    code, least, most = kernel.code, what.counts[0], what.counts[-1]
    few = code.compare("ule", code.sub(code.dim(what.line.extent), least), most - least)
    with code.when(code.value(arith.AndIOp(few, _has_vectors(kernel, what)))) as branch:
        yield branch


def emit_interleaving(kernel: Kernel, what: Interleaving) -> None:
    """The loops over vectors; lines shorter than one are copied element by element."""
    first = what.others[0].extent if what.others else None
    with kernel.shared_by_parts(first, what.along.extent, work_of(what.stage), what.lanes) as (outer, inner):
        _loops(kernel, what, list(what.others), {}, outer, inner)


def _loops(
    kernel: Kernel,
    what: Interleaving,
    groups: Sequence[Group],
    at: Mapping[int, SSAValue],
    outer: tuple[SSAValue, SSAValue] | None,
    inner: tuple[SSAValue, SSAValue] | None,
) -> None:
    """All vectors; parts of the outermost loop, and of the lines, if not all."""
    code = kernel.code
    if groups:
        low, high = (None, code.dim(groups[0].extent)) if outer is None else outer
        with code.loop(high, "o", lower=low) as index:
            _loops(kernel, what, groups[1:], {**at, groups[0].last: index}, None, inner)
        return
    low, high = (code.index(0), code.dim(what.along.extent)) if inner is None else inner
    if not what.is_known:
        for count in what.counts:
            with code.when(code.compare("eq", code.dim(what.line.extent), count)):
                _line(kernel, what, at, low, high, count)
        return
    with code.when(_has_vectors(kernel, what)) as is_long:
        _line(kernel, what, at, low, high, what.counts[0])
    with (
        code.otherwise(is_long),
        code.loop(high, "e", lower=low, vectorize=False) as index,
        code.loop(code.dim(what.line.extent), "l", vectorize=False) as line,
    ):
        Body(kernel, what.stage, {**at, what.along.last: index, what.line.last: line}).run(what.stage.body)


def _has_vectors(kernel: Kernel, what: Interleaving) -> SSAValue:
    """Whether lines have a vector or more."""
    return kernel.code.compare("sge", kernel.code.dim(what.along.extent), what.lanes)


def _line(
    kernel: Kernel, what: Interleaving, at: Mapping[int, SSAValue], low: SSAValue, high: SSAValue, count: int
) -> None:
    """A part of the lines, which have a vector or more: the last vectors begin early enough to be whole, if a thread's
    part is shorter with elements of the part before, which both threads copy.
    """
    code, lanes = kernel.code, what.lanes
    iterations = code.divide(code.add(code.sub(high, low), lanes - 1), lanes)
    with code.loop(iterations, "v", vectorize=False) as iteration:
        start = code.minimum(code.add(low, code.mul(iteration, lanes)), code.sub(high, lanes))
        _vectors(kernel, what, {**at, what.along.last: start}, count)


def _vectors(kernel: Kernel, what: Interleaving, at: Mapping[int, SSAValue], count: int) -> None:
    """A vector of each line."""
    code, (store,), lanes = kernel.code, what.stage.stores, what.lanes
    bodies = [Body(kernel, what.stage, {**at, what.line.last: code.index(number)}) for number in range(count)]
    indices: list[SSAValue] = []
    for number in range(count):
        body = bodies[0 if what.splits else number]
        body.run([op for op in what.stage.body if op is not what.load and not isinstance(op, StoreOp)])
        index = body.index(what.load)
        indices.append(code.add(index, number * lanes) if what.splits else index)
    loaded = [code.load(kernel.memory(what.load), [index], lanes) for index in indices]
    if what.splits:
        results = [line[0] for line in split(code, loaded, count)]
    else:
        results = interleaved(code, [[vector] for vector in loaded])
    for number, result in enumerate(results):
        body = bodies[number if what.splits else 0]
        index = body.index(store) if what.splits else code.add(body.index(store), number * lanes)
        code.store(result, kernel.memory(store), [index])
