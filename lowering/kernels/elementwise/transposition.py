"""Transposing stages: square tiles are transposed in registers, so that both loads and stores are contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.emit.body import Body
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    masks_are_cheap,
    transposed,
    vector_iteration,
)
from lowering.kernels.structure.stages import AffineAccess, Stage, work_of
from lowering.tir_to_llvm.memory import MOST_STEPS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import BufferType

MAX_LANES, MAX_OPS = 16, 20
TILES_AT_ONCE = 8
"""Adjacent tiles that are done before the ones below: their pages stay in the TLB."""


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
    if len(stage.stores) != 1 or len(stage.needed) > MAX_OPS or any(isinstance(op, IfOp) for op in stage.needed):
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
    return min(kernel.target.lanes(8 * max(sizes)), MAX_LANES)


def _is_strided(access: AffineAccess, group: AxisGroup) -> bool:
    stride = access.strides[group.last]
    return bool(stride.terms) and stride.constant_value != 1


def _contiguous(accesses: Iterable[AffineAccess], group: AxisGroup) -> bool:
    return all(access.strides[group.last].constant_value == 1 for access in accesses)


def emit_transposition(kernel: Kernel, transposition: Transposition) -> None:
    """The loops over tiles and over the remainders."""
    first = transposition.others[0].extent if transposition.others else None
    with kernel.partition_2d(first, transposition.loaded.extent, work_of(transposition.stage), transposition.lanes) as (
        outer,
        inner,
    ):
        _loops(kernel, transposition, list(transposition.others), {}, outer, inner)


def _loops(
    kernel: Kernel,
    transposition: Transposition,
    groups: Sequence[AxisGroup],
    at: Mapping[int, SSAValue],
    outer: tuple[SSAValue, SSAValue] | None,
    inner: tuple[SSAValue, SSAValue] | None,
) -> None:
    if not groups:
        _Tiles(kernel, transposition, at, inner).emit()
        return
    low, high = (None, kernel.code.dim(groups[0].extent)) if outer is None else outer
    with kernel.code.loop(high, "o", lower=low) as index:
        _loops(kernel, transposition, groups[1:], {**at, groups[0].last: index}, None, inner)


class _Tiles:
    """The tiles of two groups of axes, for given values of the others."""

    def __init__(
        self,
        kernel: Kernel,
        transposition: Transposition,
        at: Mapping[int, SSAValue],
        chunk: tuple[SSAValue, SSAValue] | None,
    ):
        self.kernel, self.code, self.transposition, self.at = kernel, kernel.code, transposition, at
        self.low, self.high = (
            (self.code.index(0), self.code.dim(transposition.loaded.extent)) if chunk is None else chunk
        )
        self.width = self.code.dim(transposition.stored.extent)

    def emit(self) -> None:
        """Whole tiles, and the remainders at the edges."""
        code, contraction = self.code, self.transposition
        length = code.sub(self.high, self.low)
        if contraction.is_panel:
            self._cover(length)
        elif contraction.overlaps:
            self._overlapping(length)
        else:
            blocks, columns = code.divide(length, contraction.lanes), code.divide(self.width, contraction.lanes)
            self._whole(blocks, columns, None)
            end = code.add(self.low, code.mul(blocks, contraction.lanes))
            self._edge(self.low, end, code.mul(columns, contraction.lanes))
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
        panels = code.divide(code.add(columns, TILES_AT_ONCE - 1), TILES_AT_ONCE)
        with code.loop(panels, "panel") as panel:
            first = code.mul(panel, TILES_AT_ONCE)
            last = code.minimum(columns, code.add(first, TILES_AT_ONCE))
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
        code, contraction = self.code, self.transposition
        at = {**self.at, contraction.loaded.last: start}
        mask = None if length is None else code.leading(length, contraction.lanes)
        tiles = {load: self._transposed(load, at, column, mask) for load in contraction.transposed}
        for number in range(contraction.lanes):
            with ExitStack() as scope:
                if length is not None:
                    scope.enter_context(code.when(code.compare("sgt", length, number)))
                self._row(number, start, column, tiles)

    def _row(self, number: int, start: SSAValue, column: SSAValue, tiles: Mapping[LoadOp, SSAValue]) -> None:
        """A row of the output tile."""
        code, contraction = self.code, self.transposition
        here = {**self.at, contraction.loaded.last: code.add(start, number)}
        shared = Body(self.kernel, contraction.stage, here, contraction.stored.last)
        shared.hoist(contraction.stage.body, {store.buffer for store in contraction.stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body, lane = shared.at_index(index), code.sub(index, column)
            for load, tile in tiles.items():
                body.values[load.result] = code.load(tile, [code.add(lane, number * contraction.lanes)])
            body.run(contraction.stage.body)
            return []

        vector_iteration(self.kernel, column, contraction.lanes, None, [], step)

    def _transposed(
        self, load: LoadOp, at: Mapping[int, SSAValue], column: SSAValue, mask: SSAValue | None
    ) -> SSAValue:
        """A transposed tile of a load, with lanes along the stores, in a buffer that LLVM keeps in registers."""
        code, contraction = self.code, self.transposition
        rows: list[SSAValue] = []
        for number in range(contraction.lanes):
            body = Body(self.kernel, contraction.stage, {**at, contraction.stored.last: code.add(column, number)})
            rows.append(code.load(self.kernel.memory(load), [body.index(load)], contraction.lanes, mask))
        kind = BufferType([contraction.lanes * contraction.lanes], load.buffer_type.dtype, scope="local", align=64)
        tile = code.value(AllocBufferOp(kind), "tile")
        for number, row in enumerate(transposed(code, rows)):
            code.store(row, tile, [code.index(number * contraction.lanes)])
        return tile

    def _edge(self, low: SSAValue, high: SSAValue, first: SSAValue) -> None:
        """Elements one by one."""
        code, contraction = self.code, self.transposition
        with code.loop(high, "i", lower=low) as row, code.loop(self.width, "j", lower=first, vectorize=False) as column:
            at = {**self.at, contraction.loaded.last: row, contraction.stored.last: column}
            Body(self.kernel, contraction.stage, at).run(contraction.stage.body)
