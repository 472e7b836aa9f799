"""Stages that store along other axes than they load, with vectors that are rearranged in registers.

*Transpositions* go through square tiles, so that both loads and stores are contiguous.

*Interleavings* copy between an array of structures and a structure of arrays, with a few components. Transposed
convolutions, pixel shuffles and changes from `NCHW` to `NHWC` interleave components: every n-th element stored comes
from the same component. The inverse deinterleaves, as for images in `NHWC`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    INTERLEAVE_MAX_COMPONENTS,
    INTERLEAVE_MAX_SHUFFLED,
    INTERLEAVE_MIN_LANES,
    INTERLEAVE_MIN_SYMBOLIC_ELEMENTS,
    INTERLEAVE_SYMBOLIC_COMPONENTS,
    TRANSPOSE_MAX_LANES,
    TRANSPOSE_MAX_OPS,
    TRANSPOSE_TILES,
)
from lowering.kernels.emit.body import Body
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    deinterleave,
    interleave,
    masks_are_cheap,
    masks_are_registers,
    transposed,
    vector_iteration,
)
from lowering.kernels.structure.stages import AffineAccess, Stage, work_of
from lowering.tir_to_llvm.memory import MOST_STEPS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Transposition:
    """An elementwise stage whose stores are contiguous along one group of axes and some of whose loads along
    another.
    """

    stage: Stage
    others: tuple[AxisGroup, ...]
    stored: AxisGroup
    loaded: AxisGroup
    lanes: int
    transposed: tuple[LoadOp, ...]
    """The loads that are contiguous along `loaded`."""
    overlaps: bool
    """Whether elements may be stored twice, so that the last tiles overlap the ones before."""
    masks: bool
    """Whether tiles with fewer rows are loaded under a mask."""

    @property
    def is_panel(self) -> bool:
        """Whether one tile covers all columns."""
        return self.overlaps and self.masks and self.stored.extent.constant_value == self.lanes


def find_transposition(kernel: Kernel, stage: Stage) -> Transposition | None:
    """The transposition that a stage is; `None` if it is none, or computes more than a few ops for each element."""
    if (
        len(stage.stores) != 1
        or len(stage.needed) > TRANSPOSE_MAX_OPS
        or any(isinstance(op, IfOp) for op in stage.needed)
    ):
        return None
    if any(kernel.access(stage, op).computed for op in stage.accesses):
        return None
    groups = collapse_axes(kernel, [stage], range(len(stage.axes)))
    stored = next((group for group in groups if _contiguous([kernel.access(stage, stage.stores[0])], group)), None)
    if stored is None:
        return None
    accesses = {load: kernel.access(stage, load) for load in stage.loads}
    transposed = {load: access for load, access in accesses.items() if _is_strided(access, stored)}
    others = tuple(group for group in groups if group is not stored)
    loaded = next((group for group in others if _contiguous(transposed.values(), group)), None)
    if not transposed or loaded is None or not {stored.last, loaded.last}.isdisjoint(stage.pinned):
        return None
    lanes = _lanes(kernel, stage, [access.strides[stored.last] for access in transposed.values()])
    # Elements may be stored twice if the output is not an input.
    again = not any(load.buffer is stage.stores[0].buffer for load in accesses)
    others = tuple(group for group in others if group is not loaded)
    masks = masks_are_cheap(kernel, [stage])
    return None if lanes < 4 else Transposition(stage, others, stored, loaded, lanes, tuple(transposed), again, masks)


def _lanes(kernel: Kernel, stage: Stage, strides: Sequence[Dim]) -> int:
    """The rows of a tile; 0 if it is faster to deinterleave, with strides of two to four."""
    sizes = {byte_size(access.buffer_type.dtype) for access in (*stage.loads, stage.stores[0])}
    steps = [stride.constant_value for stride in strides]
    if len(sizes) == 1 and all(step is not None and step <= MOST_STEPS for step in steps):
        return 0
    return min(kernel.target.lanes(8 * max(sizes)), TRANSPOSE_MAX_LANES)


def _is_strided(access: AffineAccess, group: AxisGroup) -> bool:
    stride = access.strides[group.last]
    return bool(stride.terms) and stride.constant_value != 1


def _contiguous(accesses: Iterable[AffineAccess], group: AxisGroup) -> bool:
    return all(access.strides[group.last].constant_value == 1 for access in accesses)


@contextmanager
def _tasks(
    kernel: Kernel, stage: Stage, others: Sequence[AxisGroup], rows: AxisGroup, lanes: int
) -> Generator[tuple[Mapping[int, SSAValue], tuple[SSAValue, SSAValue]]]:
    """The loops over all other axes, with their values, and the range of `rows` that a task has."""
    code, at = kernel.code, dict[int, SSAValue]()
    first = others[0].extent if others else None
    with kernel.partition_2d(first, rows.extent, work_of(stage), lanes) as (outer, chunk), ExitStack() as loops:
        for group in others:
            low, high = (None, code.dim(group.extent)) if outer is None else outer
            at[group.last] = loops.enter_context(code.loop(high, "o", lower=low))
            outer = None
        yield at, (code.index(0), code.dim(rows.extent)) if chunk is None else chunk


def emit_transposition(kernel: Kernel, transposition: Transposition) -> None:
    """The loops over tiles and over the remainders."""
    rows, lanes = transposition.loaded, transposition.lanes
    with _tasks(kernel, transposition.stage, transposition.others, rows, lanes) as (at, chunk):
        _Tiles(kernel, transposition, at, chunk).emit()


class _Tiles:
    """The tiles of two groups of axes, for given values of the others."""

    def __init__(
        self,
        kernel: Kernel,
        transposition: Transposition,
        at: Mapping[int, SSAValue],
        chunk: tuple[SSAValue, SSAValue],
    ):
        self.kernel, self.code, self.transposition, self.at = kernel, kernel.code, transposition, at
        self.low, self.high = chunk
        self.width = self.code.dim(transposition.stored.extent)

    def emit(self) -> None:
        """Whole tiles, and the remainders at the edges."""
        code, transposition = self.code, self.transposition
        length = code.sub(self.high, self.low)
        if transposition.is_panel:
            self._cover(length)
        elif transposition.overlaps:
            self._overlapping(length)
        else:
            blocks, columns = code.divide(length, transposition.lanes), code.divide(self.width, transposition.lanes)
            self._whole(blocks, columns, None)
            end = code.add(self.low, code.mul(blocks, transposition.lanes))
            self._edge(self.low, end, code.mul(columns, transposition.lanes))
            self._edge(end, self.high, code.index(0))

    def _overlapping(self, length: SSAValue) -> None:
        """Whole tiles that overlap at the ends; fewer rows are masked, fewer columns are done one by one."""
        code, lanes, known = self.code, self.transposition.lanes, self.transposition.stored.extent.constant_value
        if known is not None and known >= lanes:
            self._wide(length)
            return
        with code.when(code.compare("sge", self.width, lanes)) as is_wide:
            self._wide(length)
        with code.otherwise(is_wide):
            self._edge(self.low, self.high, code.index(0))

    def _wide(self, length: SSAValue) -> None:
        """At least as many columns as a tile has."""
        code, lanes = self.code, self.transposition.lanes
        blocks, columns = (code.divide(code.add(size, lanes - 1), lanes) for size in (length, self.width))
        with code.when(code.compare("sge", length, lanes)) as is_high:
            self._whole(blocks, columns, length)
        with code.otherwise(is_high):
            if self.transposition.masks:
                with code.loop(columns, "tile") as tile:
                    self._tile(self.low, self._column(tile), length)
            else:
                self._edge(self.low, self.high, code.index(0))

    def _column(self, tile: SSAValue) -> SSAValue:
        """The first column of a tile; the last tile overlaps the one before."""
        code, lanes = self.code, self.transposition.lanes
        return code.minimum(code.mul(tile, lanes), code.sub(self.width, lanes))

    def _whole(self, blocks: SSAValue, columns: SSAValue, length: SSAValue | None) -> None:
        """Whole tiles; with a `length`, the last ones overlap those before."""
        code, lanes = self.code, self.transposition.lanes
        panels = code.divide(code.add(columns, TRANSPOSE_TILES - 1), TRANSPOSE_TILES)
        with code.loop(panels, "panel") as panel:
            first = code.mul(panel, TRANSPOSE_TILES)
            last = code.minimum(columns, code.add(first, TRANSPOSE_TILES))
            with code.loop(blocks, "block") as block:
                row = code.mul(block, lanes)
                start = code.add(self.low, row if length is None else code.minimum(row, code.sub(length, lanes)))
                with code.loop(last, "tile", lower=first) as tile:
                    self._tile(start, code.mul(tile, lanes) if length is None else self._column(tile), None)

    def _cover(self, length: SSAValue) -> None:
        """Only tiles; the last one overlaps the one before, if there is one."""
        code, lanes = self.code, self.transposition.lanes
        with code.loop(code.divide(code.add(length, lanes - 1), lanes), "block") as block:
            first = code.maximum(code.minimum(code.mul(block, lanes), code.sub(length, lanes)), 0)
            self._tile(code.add(self.low, first), code.index(0), length)

    def _tile(self, start: SSAValue, column: SSAValue, length: SSAValue | None) -> None:
        """A tile, of `length` rows if these are fewer than it has."""
        code, transposition = self.code, self.transposition
        at = {**self.at, transposition.loaded.last: start}
        mask = None if length is None else code.leading(length, transposition.lanes)
        tiles = {load: self._transposed(load, at, column, mask) for load in transposition.transposed}
        for number in range(transposition.lanes):
            with ExitStack() as scope:
                if length is not None:
                    scope.enter_context(code.when(code.compare("sgt", length, number)))
                self._row(number, start, column, tiles)

    def _row(self, number: int, start: SSAValue, column: SSAValue, tiles: Mapping[LoadOp, SSAValue]) -> None:
        """A row of the output tile."""
        code, transposition = self.code, self.transposition
        here = {**self.at, transposition.loaded.last: code.add(start, number)}
        shared = Body(self.kernel, transposition.stage, here, transposition.stored.last)
        shared.hoist(transposition.stage.body, {store.buffer for store in transposition.stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body, lane = shared.at_index(index), code.sub(index, column)
            for load, tile in tiles.items():
                body.values[load.result] = code.load(tile, [code.add(lane, number * transposition.lanes)])
            body.run(transposition.stage.body)
            return []

        vector_iteration(self.kernel, column, transposition.lanes, None, [], step)

    def _transposed(
        self, load: LoadOp, at: Mapping[int, SSAValue], column: SSAValue, mask: SSAValue | None
    ) -> SSAValue:
        """A transposed tile of a load, with lanes along the stores, in a buffer that LLVM keeps in registers."""
        code, transposition = self.code, self.transposition
        rows: list[SSAValue] = []
        for number in range(transposition.lanes):
            body = Body(self.kernel, transposition.stage, {**at, transposition.stored.last: code.add(column, number)})
            rows.append(code.load(self.kernel.memory(load), [body.index(load)], transposition.lanes, mask))
        kind = BufferType([transposition.lanes * transposition.lanes], load.buffer_type.dtype, scope="local", align=64)
        tile = code.value(AllocBufferOp(kind), "tile")
        for number, row in enumerate(transposed(code, rows)):
            code.store(row, tile, [code.index(number * transposition.lanes)])
        return tile

    def _edge(self, low: SSAValue, high: SSAValue, first: SSAValue) -> None:
        """Elements one by one."""
        code, transposition = self.code, self.transposition
        with code.loop(high, "i", lower=low) as row, code.loop(self.width, "j", lower=first, vectorize=False) as column:
            at = {**self.at, transposition.loaded.last: row, transposition.stored.last: column}
            Body(self.kernel, transposition.stage, at).run(transposition.stage.body)


@dataclass(frozen=True)
class Interleaving:
    """A copy between `count * along + component` on one side and contiguous components on the other."""

    stage: Stage
    others: tuple[AxisGroup, ...]
    along: AxisGroup
    component: AxisGroup
    counts: Sequence[int]
    """The numbers of components that there is code for."""
    lanes: int
    load: LoadOp
    deinterleaves: bool
    """Whether components are stored; otherwise they are loaded."""

    @property
    def is_known(self) -> bool:
        """Whether the number of components is known when the kernel is compiled."""
        return self.component.extent.constant_value is not None


def find_interleavings(kernel: Kernel, stage: Stage) -> list[Interleaving]:
    """The interleavings that a stage may be; none if it computes anything, or has other strides."""
    value = stage.stores[0].value.owner
    if len(stage.stores) != 1 or not isinstance(value, LoadOp):
        return []
    store, load = kernel.access(stage, stage.stores[0]), kernel.access(stage, value)
    if store.computed:
        return []
    groups = collapse_axes(kernel, [stage], range(len(stage.axes)))
    lanes = min(kernel.target.lanes(8 * byte_size(value.buffer_type.dtype)), TRANSPOSE_MAX_LANES)
    found: list[Interleaving] = []
    for mixed, components, deinterleaves in ((load, store, True), (store, load, False)):
        pair = _along_and_component(groups, mixed, components)
        counts = () if pair is None else _counts(kernel, *pair, lanes, deinterleaves)
        if pair is not None and counts and _is_uniform(kernel, stage, value, [each.last for each in pair]):
            others = tuple(group for group in groups if group not in pair)
            found.append(Interleaving(stage, others, *pair, counts, lanes, value, deinterleaves))
    return [each for each in found if each.is_known][:1] or found


def _along_and_component(
    groups: Sequence[AxisGroup], mixed: AffineAccess, components: AffineAccess
) -> tuple[AxisGroup, AxisGroup] | None:
    """The axes along components and over components, if components are adjacent in `mixed`."""
    component = next((group for group in groups if mixed.strides[group.last].constant_value == 1), None)
    if component is None:
        return None
    for group in groups:
        if components.strides[group.last].constant_value == 1 and mixed.strides[group.last] is component.extent:
            return group, component
    return None


def _counts(kernel: Kernel, along: AxisGroup, component: AxisGroup, lanes: int, deinterleaves: bool) -> Sequence[int]:
    """The numbers of components that there is code for."""
    length, known = along.extent.constant_value, component.extent.constant_value
    if lanes < INTERLEAVE_MIN_LANES or (length is not None and length < lanes):
        return []
    if known is None:
        is_worthwhile = length is None or length >= INTERLEAVE_MIN_SYMBOLIC_ELEMENTS
        return INTERLEAVE_SYMBOLIC_COMPONENTS if is_worthwhile and component.extent.as_symbol else []
    most = INTERLEAVE_MAX_SHUFFLED if deinterleaves and masks_are_registers(kernel) else INTERLEAVE_MAX_COMPONENTS
    return [known] if 1 < known <= min(most, lanes) else []


def _is_uniform(kernel: Kernel, stage: Stage, load: LoadOp, axes: Sequence[int]) -> bool:
    """Whether the rest of the code is the same along some axes, such as the start of a row."""
    others = [kernel.access(stage, op) for op in stage.loads if op is not load]
    return stage.pinned.isdisjoint(axes) and not any(access.strides[axis].terms for access in others for axis in axes)


@contextmanager
def when_components_have_code(kernel: Kernel, interleaving: Interleaving) -> Generator[IfOp]:
    """What happens if there is code for the number of components of a call, and a component fills a vector."""
    code, least, most = kernel.code, interleaving.counts[0], interleaving.counts[-1]
    few = code.compare("ule", code.sub(code.dim(interleaving.component.extent), least), most - least)
    with code.when(code.value(arith.AndIOp(few, _has_vectors(kernel, interleaving)))) as branch:
        yield branch


def emit_interleaving(kernel: Kernel, interleaving: Interleaving) -> None:
    """The loops over vectors; components shorter than one are copied element by element."""
    code, stage, along, component = kernel.code, interleaving.stage, interleaving.along, interleaving.component
    with _tasks(kernel, stage, interleaving.others, along, interleaving.lanes) as (at, (low, high)):
        if not interleaving.is_known:
            for count in interleaving.counts:
                with code.when(code.compare("eq", code.dim(component.extent), count)):
                    _row(kernel, interleaving, at, low, high, count)
            return
        with code.when(_has_vectors(kernel, interleaving)) as is_long:
            _row(kernel, interleaving, at, low, high, interleaving.counts[0])
        with (
            code.otherwise(is_long),
            code.loop(high, "e", lower=low, vectorize=False) as index,
            code.loop(code.dim(component.extent), "l", vectorize=False) as number,
        ):
            Body(kernel, stage, {**at, along.last: index, component.last: number}).run(stage.body)


def _has_vectors(kernel: Kernel, interleaving: Interleaving) -> SSAValue:
    """Whether a component fills a vector."""
    return kernel.code.compare("sge", kernel.code.dim(interleaving.along.extent), interleaving.lanes)


def _row(
    kernel: Kernel, interleaving: Interleaving, at: Mapping[int, SSAValue], low: SSAValue, high: SSAValue, count: int
) -> None:
    """A range of the components. The last vector overlaps the one before; if the range of a thread is shorter
    than a vector, it overlaps the range of another thread, which writes the same values.
    """
    code, lanes = kernel.code, interleaving.lanes
    iterations = code.divide(code.add(code.sub(high, low), lanes - 1), lanes)
    with code.loop(iterations, "v", vectorize=False) as iteration:
        start = code.minimum(code.add(low, code.mul(iteration, lanes)), code.sub(high, lanes))
        _vectors(kernel, interleaving, {**at, interleaving.along.last: start}, count)


def _vectors(kernel: Kernel, interleaving: Interleaving, at: Mapping[int, SSAValue], count: int) -> None:
    """A vector of each component."""
    code, (store,), lanes = kernel.code, interleaving.stage.stores, interleaving.lanes
    bodies = [
        Body(kernel, interleaving.stage, {**at, interleaving.component.last: code.index(number)})
        for number in range(count)
    ]
    indices: list[SSAValue] = []
    for number in range(count):
        body = bodies[0 if interleaving.deinterleaves else number]
        body.run([op for op in interleaving.stage.body if op is not interleaving.load and not isinstance(op, StoreOp)])
        index = body.index(interleaving.load)
        indices.append(code.add(index, number * lanes) if interleaving.deinterleaves else index)
    loaded = [code.load(kernel.memory(interleaving.load), [index], lanes) for index in indices]
    if interleaving.deinterleaves:
        results = [component[0] for component in deinterleave(code, loaded, count)]
    else:
        results = interleave(code, [[vector] for vector in loaded])
    for number, result in enumerate(results):
        body = bodies[number if interleaving.deinterleaves else 0]
        index = body.index(store) if interleaving.deinterleaves else code.add(body.index(store), number * lanes)
        code.store(result, kernel.memory(store), [index])
