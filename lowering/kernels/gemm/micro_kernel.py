"""The micro-kernel as a routine: a register tile of accumulators from operands in strided memory, or computed from
memory.

Where possible it is a function of its own, shared by all kernels with tiles of the same kind, whatever their sizes. The
last panel may have fewer columns than a tile, and gets narrow tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel, Routine, buffer_type, flat
from lowering.kernels.emit.vectorization import is_power_of_two, masks_are_registers
from lowering.kernels.gemm.epilogue import OutputTile
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import TileColumns, emit_split_tile, emit_tile, main_columns, narrow_step
from lowering.kernels.structure.contraction import Factor, is_chain
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType


class Operand(Protocol):
    """Some rows or columns of a factor; `r` is a step along K."""

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """The element of row `i`."""
        ...

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """The columns from `j` on: all lanes of a vector, or the first `on` of them."""
        ...

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """Prefetches column `j` of a step that is so many later, which need not exist."""
        ...


@dataclass
class Matrix:
    """Strided elements of a one-dimensional buffer: row or column `i` at step `r` is element `first + i * each + r *
    step`.
    """

    buffer: SSAValue
    first: SSAValue
    each: SSAValue | int
    step: SSAValue | int
    lanes: int
    _row: tuple[SSAValue, SSAValue] | None = None

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """A load."""
        away = code.mul(self.each, i) if isinstance(self.each, SSAValue) else i * self.each
        return code.load(self.buffer, [code.add(self._at(code, r), away)])

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """A load; columns lie side by side."""
        mask = None if on is None else code.leading(on, self.lanes)
        return code.load(self.buffer, [code.add(self._at(code, r), j)], self.lanes, mask)

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """A hint."""
        away = code.mul(self.step, steps) if isinstance(self.step, SSAValue) else steps * self.step
        code.prefetch(self.buffer, [code.add(code.add(self._at(code, r), away), j)], level)

    def store(self, code: Code, r: SSAValue, j: int, value: SSAValue) -> None:
        """Puts a vector at the columns from `j` on."""
        code.store(value, self.buffer, [code.add(self._at(code, r), j)])

    def _at(self, code: Code, r: SSAValue) -> SSAValue:
        """Where the step is; made once for all accesses of an iteration of the loop."""
        if self._row is None or self._row[0] is not r:
            self._row = r, code.add(self.first, code.mul(r, self.step))
        return self._row[1]


@dataclass(frozen=True)
class Computed:
    """Rows or columns of a factor, computed by the code of the kernel."""

    gemm: Gemm
    factor: Factor
    coords: Coords
    """The coordinates of the first of them at step 0, which is where K begins unless they say otherwise."""
    along: tuple[int, ...]
    """The axes that number them."""

    def element(self, code: Code, i: int, r: SSAValue) -> SSAValue:
        """One element."""
        return self.gemm.element(self.factor, self._at_step(code, r, i))

    def vector(self, code: Code, r: SSAValue, j: int, on: SSAValue | None) -> SSAValue:
        """Neighbouring elements; in panels, `further` elements on."""
        further = self.gemm.panel_jump(self.coords[self.along]) if self.factor.panels is not None else None
        return self.gemm.vector(self.factor, self._at_step(code, r, j), self.along, on, further)

    def prefetch(self, code: Code, r: SSAValue, steps: int, j: SSAValue | int, level: int) -> None:
        """Prefetches everything that is read there."""
        coords = self._at_step(code, code.add(r, steps), j)
        further = self.gemm.panel_jump(self.coords[self.along]) if self.factor.panels is not None else None
        for load, each in zip(self.factor.loads, self.factor.accesses, strict=True):
            if load.buffer in self.gemm.kernel.flat:
                index = self.gemm.offset(each, coords)
                index = index if further is None else code.add(index, further)
                code.prefetch(self.gemm.kernel.flat[load.buffer], [index], level)

    def _at_step(self, code: Code, r: SSAValue, i: SSAValue | int) -> Coords:
        reduced = self.gemm.contraction.reduced
        step = code.add(self.coords[reduced], r) if reduced in self.coords else r
        return {**self.coords, self.along: code.add(self.coords[self.along], i), reduced: step}


def lies_evenly(gemm: Gemm, factor: Factor, along: tuple[int, ...]) -> bool:
    """Whether a factor is a strided matrix in memory: nothing is computed, and its axes are evenly spaced."""
    load, extents = factor.value.owner, gemm.contraction.stage.extents
    if not isinstance(load, LoadOp) or factor.value.type != factor.element or not factor.is_linear:
        return False
    buffer = gemm.kernel.flat.get(load.buffer)
    even = all(is_chain(factor.accesses, extents, axes) for axes in (along, gemm.contraction.reduced))
    return buffer is not None and even and buffer_type(buffer).scope == "global"


def operand(gemm: Gemm, factor: Factor, coords: Coords, along: tuple[int, ...]) -> Operand:
    """Rows or columns of a factor from given coordinates on, which say the first one and where K begins."""
    load, reduced = factor.value.owner, gemm.contraction.reduced
    if not isinstance(load, LoadOp) or not lies_evenly(gemm, factor, along):
        return Computed(gemm, factor, coords, along)
    buffer, (access,) = gemm.kernel.flat[load.buffer], factor.accesses
    first = gemm.offset(access, coords)
    if factor.panels is not None:
        first = gemm.code.add(first, gemm.panel_jump(coords[along]))
    each, step = (_spacing(gemm.code, access.strides[axes[-1]] if axes else constant(0)) for axes in (along, reduced))
    return Matrix(buffer, first, each, step, gemm.tiles.lanes)


def _spacing(code: Code, stride: Dim) -> SSAValue | int:
    known = stride.constant_value
    return code.dim(stride) if known is None else known


def elements_before_alignment(gemm: Gemm, factor: Factor, coords: Coords) -> SSAValue:
    """How many elements lie before the first aligned one, from given coordinates of a factor on.

    0 where it is not loaded from one buffer, so that no two loads would have to agree.
    """
    code, lanes = gemm.code, gemm.tiles.lanes
    buffer = gemm.kernel.flat.get(factor.loads[0].buffer) if len(factor.loads) == 1 else None
    if buffer is None or not factor.is_linear or not is_power_of_two(lanes):
        return code.index(0)
    late = code.misalignment(buffer, [gemm.offset(factor.accesses[0], coords)], lanes)
    return code.remainder(code.sub(code.index(lanes), late), lanes)


Masks: TypeAlias = Literal["never", "always", "if needed"]
"""Whether columns may be missing, and if so whether vectors are masked always or only then."""


@dataclass(frozen=True)
class Prefetch:
    """A prefetch in each step: column `column` of so many steps later, to the cache of this level.

    Without a number the call says which column.
    """

    steps: int
    column: int | None
    level: int


@dataclass(frozen=True)
class MicroKernel(Routine):
    """The kind of a register tile: its shape, its masks and its prefetches.

    The call adds the layout of its operands: strides are constants, or `None` if they are arguments.
    """

    dtype: AnyFloat | IntegerType
    mr: int
    vectors: int
    lanes: int
    unroll: int = 1
    parts: int = 1
    """The number of slices of K that have accumulators of their own."""
    masks: Masks = "never"
    prefetches: tuple[Prefetch, ...] = ()
    ahead: tuple[tuple[int, int], ...] = ()
    """What else is prefetched: how far from one element each is, and how far it moves on in a step."""
    packs: bool = False
    """Whether the columns are also stored, vector beside vector."""
    rows: tuple[int | None, int | None] = (None, None)
    columns: int | None = None
    room: tuple[int, ...] = ()
    """The shape of the memory that the accumulators go to; nothing if these are rows of the output."""

    @property
    @override
    def label(self) -> str:
        """The shape of the tile."""
        return f"tile.{self.dtype}.{self.mr}x{self.vectors * self.lanes}"

    def call(self, kernel: Kernel, where: TileOperands) -> None:
        """Calls the function; code with computed operands, which are known to one kernel only, is inlined."""
        rows, columns = where.rows, where.columns
        if not isinstance(rows, Matrix) or not isinstance(columns, Matrix) or where.soon is not None:
            self.emit(kernel.code, where)
            return
        if self.packs and isinstance(columns.step, int):  # any matrix may be packed by one function
            columns = replace(columns, step=kernel.code.index(columns.step))
        spacings = [each if isinstance(each, int) else None for each in (rows.each, rows.step, columns.step)]
        tile = where.tile.buffer if isinstance(where.tile, OutputTile) else where.tile
        shape = () if isinstance(where.tile, OutputTile) else buffer_type(where.tile).shape
        room = tuple(dim.constant_value or 0 for dim in shape)
        routine = replace(self, rows=(spacings[0], spacings[1]), columns=spacings[2], room=room)
        into = [] if where.into is None else [where.into]
        more = [each for each in (where.ahead, where.into) if each is not None]
        told = [each for each in (where.count, where.prefetched) if each is not None]
        values = [where.lower, where.upper, *told, rows.first, columns.first]
        values += [each for each in (rows.each, rows.step, columns.step) if isinstance(each, SSAValue)]
        values += [each.first for each in more]
        if isinstance(where.tile, OutputTile):
            assert where.tile.k_block is not None  # what is called has a K block
            values += [where.tile.first, where.tile.each, where.tile.k_block]
        buffers = [*(each.buffer for each in (rows, columns, *into)), tile]
        kernel.routines.call(kernel.code, routine, values, buffers)

    # As a routine.

    @property
    def _is_told(self) -> bool:
        """Whether a call says which column is prefetched."""
        return any(each.column is None for each in self.prefetches)

    @property
    def _spacings(self) -> Mapping[str, int | None]:
        return dict(zip(("row_each", "row_step", "column_step"), (*self.rows, self.columns), strict=True))

    @override
    def sizes(self) -> Sequence[str]:
        sizes = ["lower", "upper", *["count"] * (self.masks != "never"), *["asked"] * self._is_told, "row", "column"]
        sizes += [name for name, known in self._spacings.items() if known is None]
        sizes += ["ahead"] * bool(self.ahead) + ["packed"] * self.packs
        return sizes + ["first", "each", "k_block"] * (not self.room)

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        operands = flat(self.dtype, "rows", "columns", *["into"] * self.packs)
        tile = {"tile": BufferType(self.room, self.dtype, align=64)} if self.room else flat(self.dtype, "tile")
        return {**operands, **tile}

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""
        spacing = {name: size[name] if known is None else known for name, known in self._spacings.items()}
        rows = Matrix(buffer["rows"], size["row"], spacing["row_each"], spacing["row_step"], self.lanes)
        columns = Matrix(buffer["columns"], size["column"], 1, spacing["column_step"], self.lanes)
        ahead = Matrix(buffer["columns"], size["ahead"], 1, 1, self.lanes) if self.ahead else None
        width = self.vectors * self.lanes
        into = Matrix(buffer["into"], size["packed"], 1, width, self.lanes) if self.packs else None
        tile = buffer["tile"] if self.room else OutputTile(buffer["tile"], size["first"], size["each"], size["k_block"])
        count, prefetched = size.get("count"), size.get("asked")
        self.emit(code, TileOperands(rows, columns, size["lower"], size["upper"], tile, count, into, ahead, prefetched))

    def emit(self, code: Code, where: TileOperands) -> None:
        """Inlines the code: for short K, where a call would take long."""
        if self.masks != "if needed" or where.count is None:
            self._tile(code, where, self.masks == "always")
            return
        with code.when(code.compare("sge", where.count, self.vectors * self.lanes)) as branch:
            self._tile(code, where, False)
        with code.otherwise(branch):
            self._tile(code, where, True)

    def _tile(self, code: Code, where: TileOperands, masked: bool) -> None:
        starts = range(0, self.vectors * self.lanes, self.lanes)
        counts = [code.sub(where.count, j) if masked and where.count is not None else None for j in starts]

        def element(i: int, r: SSAValue) -> SSAValue:
            return where.rows.element(code, i, r)

        def vector(r: SSAValue, v: int) -> SSAValue:
            value = where.columns.vector(code, r, starts[v], counts[v])
            if where.into is not None:
                where.into.store(code, r, starts[v], value)
            return value

        def prefetch(r: SSAValue) -> None:
            for each in self.prefetches:
                column = where.prefetched if each.column is None else each.column
                assert column is not None  # a call says which
                where.columns.prefetch(code, r, each.steps, column, each.level)
            if where.soon is not None:
                where.soon.prefetch(code, r, 0, 0, 1)
            if where.ahead is not None:
                for away, step in self.ahead:
                    position = code.add(code.add(where.ahead.first, code.mul(r, step)), away)
                    code.prefetch(where.ahead.buffer, [position], 2)

        grid, tile = TileColumns(code, self.dtype, self.lanes, self.vectors), where.tile
        if isinstance(tile, OutputTile) and masked:
            tile = replace(tile, count=where.count)
        if self.parts > 1:
            emit_split_tile(grid, where.upper, self.mr, element, vector, tile, prefetch, self.parts)
        else:
            bounds = where.lower, where.upper
            emit_tile(grid, bounds, self.mr, element, vector, tile, prefetch, self.unroll)


@dataclass(frozen=True)
class TileOperands:
    """The operands of a tile, and the destination of its accumulators."""

    rows: Operand
    columns: Operand
    lower: SSAValue
    upper: SSAValue
    """The first step of K, and the one after the last."""
    tile: SSAValue | OutputTile
    """Memory that the accumulators go to."""
    count: SSAValue | None = None
    """How many columns there are, if some may be missing."""
    into: Matrix | None = None
    """Where the columns are stored."""
    ahead: Matrix | None = None
    """An element in the buffer of the columns that is prefetched too."""
    prefetched: SSAValue | None = None
    """The column that is prefetched, where the tile does not say it."""
    soon: Matrix | None = None
    """What is also prefetched, an element in each step; such a tile is no function of its own."""


def micro_kernel(gemm: Gemm, mr: int) -> MicroKernel:
    """A tile of a GEMM with so many rows, all of whose columns are there."""
    tiles = gemm.tiles
    return MicroKernel(gemm.contraction.element, mr, tiles.vectors, tiles.lanes)


def masks_of(gemm: Gemm) -> Masks:
    """How vectors of columns past the end are masked."""
    return "always" if masks_are_registers(gemm.kernel) else "if needed"


EmitTile = Callable[[MicroKernel, SSAValue], None]
"""Emits a tile, whose first column in the panel is the value."""


def has_narrow_panel(gemm: Gemm) -> bool:
    """Whether the last panel may have fewer columns."""
    known = main_columns(gemm, narrow_step(gemm)).constant_value
    return known is None or known % gemm.tiles.nr != 0


def emit_narrow_tiles(code: Code, kind: MicroKernel, count: SSAValue, emit: EmitTile) -> None:
    """Emits `count` columns of a panel, or all if there are more, in a tile with as few vectors as have them.

    Where a vector is a whole cache line, the processor multiplies two halves of one at a time, and the narrowest tile
    is half a vector. After a narrow tile there are no columns, of which prefetches would take as long as loads.
    """
    half, zero = _half(kind), code.index(0)
    if kind.vectors > 1:
        fewer = replace(kind, vectors=kind.vectors - 1, prefetches=())
        last = half.lanes if half is not None and fewer.vectors == 1 else 0
        with code.when(code.compare("sle", count, fewer.vectors * fewer.lanes + last)) as branch:
            if last:
                # The same for a vector and half of one, if there are columns for more than a vector.
                pieces = code.select(code.compare("sgt", count, fewer.lanes), code.index(2), code.index(1))
                with code.loop(pieces, "piece", vectorize=False) as piece:
                    first = code.mul(piece, fewer.lanes)
                    rest = code.sub(count, first)
                    emit_narrow_tiles(code, fewer, rest, lambda narrow, at: emit(narrow, code.add(first, at)))
            else:
                emit_narrow_tiles(code, fewer, count, emit)
        with code.otherwise(branch):
            emit(kind, zero)
    elif half is None:
        emit(kind, zero)
    else:
        with code.when(code.compare("sle", count, half.lanes)) as branch:
            emit(half, zero)
        with code.otherwise(branch):
            emit(kind, zero)


def _half(kind: MicroKernel) -> MicroKernel | None:
    """A tile of half a vector, where a whole one is a cache line, so that both halves are multiplied in turn."""
    if kind.lanes * byte_size(kind.dtype) < LINE_BYTES:
        return None
    return replace(kind, vectors=1, lanes=kind.lanes // 2, prefetches=())
