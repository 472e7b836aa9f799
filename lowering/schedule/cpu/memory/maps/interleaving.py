"""Copies that interleave a few lines, element by element: vectors of the lines are shuffled in registers.

Results of transposed convolutions and pixel shuffles are such copies: every n-th element stored comes from the same
line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.groups import Group, group_axes
from lowering.schedule.cpu.emit.kernel import Kernel, work_of
from lowering.schedule.cpu.emit.transpose import shuffle
from lowering.schedule.cpu.structure.places import Place
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp, StoreOp

MOST_LINES, MOST_LANES = 4, 16


@dataclass(frozen=True)
class Interleaving:
    """A copy to `base + count * along + line`, `line` below `count`, of what is contiguous along `along`."""

    stage: Stage
    others: tuple[Group, ...]
    along: Group
    line: Group
    count: int
    lanes: int
    load: LoadOp


def find_interleaving(kernel: Kernel, stage: Stage) -> Interleaving | None:
    """The interleaving that a map is; `None` if it computes anything, or has other steps."""
    value = stage.stores[0].value.owner
    if len(stage.stores) != 1 or not isinstance(value, LoadOp):
        return None
    store, load = kernel.place(stage, stage.stores[0]), kernel.place(stage, value)
    if store.computed:
        return None
    groups = group_axes(kernel, [stage], range(len(stage.axes)))
    line = next((group for group in groups if store.strides[group.last].constant_value == 1), None)
    count = None if line is None else line.extent.constant_value
    if line is None or count is None or not 1 < count <= MOST_LINES:
        return None
    steps = (count, 1)
    found = (each for each in groups if _steps(store, load, each) == steps)
    along = next(found, None)
    lanes = min(kernel.target.lanes(8 * byte_size(value.buffer_type.dtype)), MOST_LANES)
    if along is None or lanes < MOST_LINES or not _is_uniform(kernel, stage, value, (along.last, line.last)):
        return None
    others = tuple(group for group in groups if group not in (line, along))
    return Interleaving(stage, others, along, line, count, lanes, value)


def _is_uniform(kernel: Kernel, stage: Stage, load: LoadOp, axes: Sequence[int]) -> bool:
    """Whether what the code computes is the same along some axes, such as the place of a row."""
    others = [kernel.place(stage, op) for op in stage.loads if op is not load]
    return stage.pinned.isdisjoint(axes) and not any(place.strides[axis].terms for place in others for axis in axes)


def _steps(store: Place, load: Place, group: Group) -> tuple[int | None, int | None]:
    return store.strides[group.last].constant_value, load.strides[group.last].constant_value


def emit_interleaving(kernel: Kernel, what: Interleaving) -> None:
    """The loops over vectors, and over what is left at the end of each line."""
    first = what.others[0] if what.others else what.along
    with kernel.shared(first.extent, work_of(what.stage), 1 if what.others else what.lanes) as part:
        _loops(kernel, what, list(what.others), {}, part)


def _loops(
    kernel: Kernel,
    what: Interleaving,
    groups: Sequence[Group],
    at: Mapping[int, SSAValue],
    part: tuple[SSAValue, SSAValue] | None,
) -> None:
    code = kernel.code
    if groups:
        low, high = (None, code.dim(groups[0].extent)) if part is None else part
        with code.loop(high, "o", lower=low) as index:
            _loops(kernel, what, groups[1:], {**at, groups[0].last: index}, None)
        return
    low, high = (code.index(0), code.dim(what.along.extent)) if part is None else part
    turns = code.divide(code.sub(high, low), what.lanes)
    with code.loop(turns, "v", vectorize=False) as turn:
        _vectors(kernel, what, {**at, what.along.last: code.add(low, code.mul(turn, what.lanes))})
    done = code.add(low, code.mul(turns, what.lanes))
    with code.loop(high, "e", lower=done, vectorize=False) as index:
        for number in range(what.count):
            here = {**at, what.along.last: index, what.line.last: code.index(number)}
            Body(kernel, what.stage, here).run(what.stage.body)


def _vectors(kernel: Kernel, what: Interleaving, at: Mapping[int, SSAValue]) -> None:
    """As many vectors of results as there are lines."""
    code, (store,), lanes = kernel.code, what.stage.stores, what.lanes
    lines: list[SSAValue] = []
    for number in range(what.count):
        here = {**at, what.line.last: code.index(number)}
        body = Body(kernel, what.stage, here)
        body.run([op for op in what.stage.body if op is not what.load and not isinstance(op, StoreOp)])
        lines.append(code.load(kernel.memory(what.load), [body.index(what.load)], lanes))
    first = Body(kernel, what.stage, {**at, what.line.last: code.index(0)}).index(store)
    for number in range(what.count):
        code.store(_mixed(kernel, what, lines, number), kernel.memory(store), [code.add(first, number * lanes)])


def _mixed(kernel: Kernel, what: Interleaving, lines: Sequence[SSAValue], number: int) -> SSAValue:
    """Vector `number` of the results: of each line its elements, in turns."""
    lanes = what.lanes
    places = [divmod(number * lanes + lane, what.count) for lane in range(lanes)]
    first = [place if line == 0 else lanes + place if line == 1 else 0 for place, line in places]
    value = shuffle(kernel.code, (lines[0], lines[1]), first)
    for more in range(2, what.count):
        order = [lanes + place if line == more else lane for lane, (place, line) in enumerate(places)]
        value = shuffle(kernel.code, (value, lines[more]), order)
    return value
