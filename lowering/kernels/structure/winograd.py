"""Recognises Winograd convolutions: a linear transform of patches, a matrix product for each point, and a linear
transform of the sums to tiles of results.

They are recognised by structure: which transforms these are plays no role. Data and results lie in blocks of channels,
`[n, c, h, w, lane]`, or with channels last, `[n, h, w, c]`. Patches of `f32` are multiplied as they are, those of bytes
have 16 bits, and two products at a time are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, FloatAttr, IndexType, IntegerType, f32, i8, i16, i32
from xdsl.ir import SSAValue

from lowering.kernels.structure.contraction import Contraction, factors_of, starts_at_zero
from lowering.kernels.structure.padding import Padding, find_padding
from lowering.kernels.structure.stages import Access, Stage
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant, floordiv, mod
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.vectors import ui8
from tir_dialect.types import IteratorKind

Instruction = tuple[str, tuple[int, ...]]
"""An operation on earlier values, by their numbers."""


@dataclass(frozen=True)
class TileLayout:
    """Which axis of a transform, and which dimension of data and results, is what."""

    batch: int
    channel: int
    row: int
    column: int
    lane: int | None = None
    """Positions in a block of channels, if `channel` counts blocks."""

    @property
    def vector(self) -> int:
        """The axis along which neighbours are in one vector."""
        return self.channel if self.lane is None else self.lane

    @property
    def rank(self) -> int:
        """The number of axes."""
        return 4 if self.lane is None else 5

    @property
    def fixed(self) -> Sequence[int]:
        """The axes that no window moves along."""
        return [axis for axis in range(self.rank) if axis not in (self.row, self.column)]


BLOCKED, CHANNELS_LAST = TileLayout(0, 1, 2, 3, 4), TileLayout(0, 3, 1, 2)


@dataclass(frozen=True)
class LinearProgram:
    """Straight-line arithmetic: some inputs are loaded, and then values computed one after the other."""

    dtype: AnyFloat | IntegerType
    """In which it computes."""
    source: AnyFloat | IntegerType
    """The dtype of what is loaded, from which bytes are extended."""
    inputs: tuple[tuple[int, int], ...]
    """The row and column of each input: the first values."""
    numbers: tuple[float, ...]
    """Constants: the next values."""
    instructions: tuple[Instruction, ...]
    """`add`, `sub` and `mul` of two values, each of which makes another value."""
    outputs: tuple[int, ...]
    """The value for each position of the output."""

    @property
    def extends(self) -> bool:
        """Whether it loads bytes."""
        return self.source != self.dtype


@dataclass(frozen=True)
class Grid:
    """How the squares of tiles lie: those of tile number `i` begin at `i * tile`, or, with dilation `d`, at
    `i floordiv d * (tile * d) + i mod d`, and have every `d`-th element.
    """

    tile: int
    dilation: int


@dataclass(frozen=True)
class Transform:
    """A stage that computes a square of outputs from a square of inputs, for each tile and channel."""

    stage: Stage
    program: LinearProgram
    source: SSAValue
    target: SSAValue
    grid: Grid


@dataclass(frozen=True)
class PointProducts:
    """`[point, n, i, j, k] = sum over c of data[point, n, i, j, c] * weights`."""

    stage: Stage
    data: SSAValue
    weights: SSAValue
    width: int | None
    """The columns of a panel, if the weights are in panels."""
    group: int
    """How many products one multiply-add of 32 bits has: 1 of `f32`, 2 of 16 bits."""

    @property
    def sums(self) -> SSAValue:
        """The buffer of the sums."""
        return self.stage.stores[0].buffer

    def extent(self, axis: int) -> int:
        """The extent of an axis, which has to be known: 0 of the points, 4 of the filters, 5 of the channels."""
        return self.stage.extents[axis].constant_value or 0


@dataclass(frozen=True)
class Winograd:
    """A convolution, with the stages that are computed with it."""

    layout: TileLayout
    padding: Padding | None
    """A constant around the data, which needs no memory; without, patches are within the data."""
    data: SSAValue
    there: Transform
    products: PointProducts
    back: Transform
    steps: tuple[Stage, ...]
    """Elementwise stages on results."""
    unread: frozenset[SSAValue]
    """Buffers that need no memory."""

    @property
    def count(self) -> int:
        """The number of stages."""
        return 3 + (self.padding is not None) + len(self.steps)


def find_winograd(
    stages: Sequence[Stage], contractions: Mapping[Stage, Contraction], own: frozenset[SSAValue]
) -> Winograd | None:
    """The Winograd convolution that begins with the first stage, or `None`; `own` are the buffers of the function."""
    if len(stages) < 3:
        return None
    padding = find_padding(stages[0], any_end=True) if len(stages) > 3 else None
    first, rest = (None, stages) if padding is None else (stages[0], stages[1:])
    layout = BLOCKED if len(rest[0].axes) == BLOCKED.rank else CHANNELS_LAST
    if padding is not None and any(padding.low[axis] for axis in layout.fixed):
        return None
    contraction = contractions.get(rest[1])
    products = find_int16_products(rest[1]) if contraction is None else _float_products(contraction)
    there, back = _there(rest[0], layout), _back(rest[2], layout)
    if there is None or back is None or products is None or not _joins(there, products, back, layout):
        return None
    if first is not None and first.stores[0].buffer is not there.source:
        return None
    steps = _steps(back, rest[3:], layout)
    later = {load.buffer for stage in rest[3 + len(steps) :] for load in stage.loads}
    hidden = {there.target, back.source, *([] if first is None else [there.source])}
    if hidden & later or not hidden <= own:
        return None
    made = {back.target, *(store.buffer for step in steps for store in step.stores)} if steps else set[SSAValue]()
    unread = frozenset(hidden | (own.intersection(made) - later))
    data = there.source if padding is None else padding.load.buffer
    return Winograd(layout, padding, data, there, products, back, steps, unread)


def is_transform(stage: Stage) -> bool:
    """Whether a stage is one of both transforms: it writes several elements of a buffer, each once."""
    layout = BLOCKED if len(stage.axes) == BLOCKED.rank else CHANNELS_LAST
    return _there(stage, layout) is not None or _back(stage, layout) is not None


def _joins(there: Transform, products: PointProducts, back: Transform, layout: TileLayout) -> bool:
    """Whether what one transform makes is multiplied, point by point, for the other."""
    same = all(there.stage.extents[axis] is back.stage.extents[axis] for axis in (layout.row, layout.column))
    known = all(products.extent(axis) for axis in (0, 4, 5))
    in_order = there.target is products.data and products.sums is back.source
    return in_order and same and known and there.grid == back.grid


def _float_products(contraction: Contraction) -> PointProducts | None:
    """A contraction of `f32` as products of points, with weights that are loaded as they are."""
    rows, columns, stage = contraction.rows.value.owner, contraction.columns.value.owner, contraction.stage
    if not (isinstance(rows, LoadOp) and isinstance(columns, LoadOp) and isinstance(contraction.element, Float32Type)):
        return None
    roles = contraction.batch, contraction.column, contraction.reduced
    if roles != ((0,), (4,), (5,)) or columns.buffer_type.rank != 4 or not _is_of_points(stage, rows):
        return None
    return PointProducts(stage, rows.buffer, columns.buffer, contraction.columns.panels, 1)


def find_int16_products(stage: Stage) -> PointProducts | None:
    """Products of points of 16 bits, with weights at `[point, k floordiv w, c floordiv 2, k mod w, c mod 2]`."""
    if len(stage.stores) != 1 or len(stage.axes) != 6 or not starts_at_zero(stage, stage.stores[0]):
        return None
    pair = factors_of(stage, stage.stores[0])
    ops = [] if pair is None else [each.owner for each in pair]
    loads = [op.input.owner for op in ops if isinstance(op, arith.ExtSIOp) and op.result.type == i32]
    found = [each for each in loads if isinstance(each, LoadOp) and each.result.type == i16]
    if len(found) != 2 or not _is_of_points(stage, found[0]) or found[1].buffer_type.rank != 5:
        return None
    data, weights = found
    width, pairs = (extent.constant_value for extent in weights.buffer_type.shape[-2:])
    point, panel, step, column, half = weights.indices
    in_panels = _quotient(panel, column, width) is stage.axes[4].value and point is stage.axes[0].value
    if pairs != 2 or not in_panels or _quotient(step, half, 2) is not stage.axes[5].value:
        return None
    return PointProducts(stage, data.buffer, weights.buffer, width, 2)


def _is_of_points(stage: Stage, rows: LoadOp) -> bool:
    """Whether data are at `[point, n, i, j, c]` and sums at `[point, n, i, j, k]`."""
    accesses, store = stage.accesses, stage.stores[0]
    return (
        len(stage.axes) == 6
        and [axis.kind for axis in stage.axes] == [*[IteratorKind.SPATIAL] * 5, IteratorKind.REDUCE]
        and len(accesses[rows]) == len(accesses[store]) == 5
        and all(index.is_axis(axis) for axis, index in zip((0, 1, 2, 3, 5), accesses[rows], strict=True))
        and all(index.is_axis(axis) for axis, index in enumerate(accesses[store]))
    )


def _quotient(high: SSAValue, low: SSAValue, divisor: int | None) -> SSAValue | None:
    """The value whose quotient and remainder by a constant two indices are."""
    quotient, remainder = high.owner, low.owner
    if not isinstance(quotient, arith.DivUIOp | arith.FloorDivSIOp) or not isinstance(remainder, arith.RemUIOp):
        return None
    known = (dim_of(each.rhs) for each in (quotient, remainder))
    same = quotient.lhs is remainder.lhs and all(each is not None and each.constant_value == divisor for each in known)
    return quotient.lhs if same else None


def _there(stage: Stage, layout: TileLayout) -> Transform | None:
    """The transform of patches to points."""
    if not _is_map(stage, layout):
        return None
    source = next(iter(stage.loads)).buffer
    squares = _squares(stage, list(stage.loads), layout)
    points = {store: _point(stage, store, layout) for store in stage.stores}
    return None if squares is None else _transform(stage, source, squares[1], points, squares[0])


def _back(stage: Stage, layout: TileLayout) -> Transform | None:
    """The transform of points to a tile of results."""
    if not _is_map(stage, layout):
        return None
    source, side = next(iter(stage.loads)).buffer, round(len(list(stage.loads)) ** 0.5)
    points = {load: _point(stage, load, layout) for load in stage.loads}
    squares = _squares(stage, stage.stores, layout)
    if None in points.values() or squares is None:
        return None
    inputs = {load: divmod(point, side) for load, point in points.items() if point is not None}
    grid, positions = squares
    outputs = {store: row * grid.tile + column for store, (row, column) in positions.items()}
    return _transform(stage, source, inputs, outputs, grid)


def _is_map(stage: Stage, layout: TileLayout) -> bool:
    """Whether a stage has the axes of a transform, one input and one output, and no code but arithmetic."""
    if len(stage.axes) != layout.rank or stage.init or len({op.buffer for op in stage.stores}) != 1:
        return False
    if not stage.pinned <= {layout.row, layout.column}:  # with dilation, indices of these are quotients and remainders
        return False
    spatial = all(axis.kind is IteratorKind.SPATIAL for axis in stage.axes)
    known = stage.extents[layout.vector].constant_value is not None
    return spatial and known and len({load.buffer for load in stage.loads}) == 1


def _squares(
    stage: Stage, accesses: Sequence[Access], layout: TileLayout
) -> tuple[Grid, Mapping[Access, tuple[int, int]]] | None:
    """The grid of tiles, and the row and column in their tiles of some accesses."""
    indices = [stage.accesses[each] for each in accesses]
    if not all(len(each) == layout.rank for each in indices):
        return None
    if not all(each[axis].is_axis(axis) for each in indices for axis in layout.fixed):
        return None
    space = IndexSpace(stage.block)
    found = [_along(space, stage, accesses, axis) for axis in (layout.row, layout.column)]
    rows, columns = found
    if rows is None or columns is None or rows[0] != columns[0]:
        return None
    return rows[0], dict(zip(accesses, zip(rows[1], columns[1], strict=True), strict=True))


def _along(space: IndexSpace, stage: Stage, accesses: Sequence[Access], axis: int) -> tuple[Grid, Sequence[int]] | None:
    """The grid of the indices of a dimension, and the position of each in its tile."""
    own, found = space.variable(stage.axes[axis].value).dim, [space.dim_of(each.indices[axis]) for each in accesses]
    dims = [dim for dim in found if dim is not None]
    name = own.as_symbol
    if len(dims) != len(accesses) or name is None:
        return None
    offsets = [(dim - dims[0]).constant_value for dim in dims]
    known = [offset for offset in offsets if offset is not None]
    if len(known) != len(dims):
        return None
    least = min(known)
    dilation = min((offset - least for offset in known if offset > least), default=1)
    first = dims[known.index(least)]
    step = first.substitute({name: constant(dilation)}).constant_value
    if step is None or step % dilation or first is not _first(own, step, dilation):
        return None
    positions = [(offset - least) / dilation for offset in known]
    if not all(position.is_integer() for position in positions):
        return None
    return Grid(step // dilation, dilation), list(map(int, positions))


def _first(number: Dim, step: int, dilation: int) -> Dim:
    """Where the square of a tile begins: `dilation` tiles lie in each `step` elements."""
    if dilation == 1:
        return number * step
    return floordiv(number, constant(dilation)) * step + mod(number, constant(dilation))


def _point(stage: Stage, access: Access, layout: TileLayout) -> int | None:
    """The point of `[point, n, i, j, channel]`."""
    indices = stage.accesses[access]
    axes = layout.batch, layout.row, layout.column
    if len(indices) != 5 or not all(indices[at].is_axis(axis) for at, axis in enumerate(axes, start=1)):
        return None
    last, wanted = indices[4], [constant(0)] * layout.rank
    wanted[layout.vector] = constant(1)
    if layout.lane is not None:
        wanted[layout.channel] = stage.extents[layout.lane]
    is_channel = last.value is None and not last.base.terms and last.strides == tuple(wanted)
    is_constant = indices[0].value is None and all(not step.terms for step in indices[0].strides)
    return indices[0].base.constant_value if is_channel and is_constant else None


def _transform(
    stage: Stage,
    source: SSAValue,
    inputs: Mapping[LoadOp, tuple[int, int]] | Mapping[Access, tuple[int, int]],
    outputs: Mapping[StoreOp, int | None] | Mapping[Access, int],
    grid: Grid,
) -> Transform | None:
    if sorted(point for point in outputs.values() if point is not None) != list(range(len(outputs))):
        return None
    loads = {load: position for load, position in inputs.items() if isinstance(load, LoadOp)}
    stores = [store for store in outputs if isinstance(store, StoreOp)]
    ordered = sorted(stores, key=lambda store: outputs[store] or 0)
    program = _program(stage, loads, ordered)
    return None if program is None else Transform(stage, program, source, ordered[0].buffer, grid)


_NAMES: Mapping[type, str] = {
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MulfOp: "mul",
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
}
_DTYPES = (f32, i16, i32)
"""In which transforms are computed."""


def _program(stage: Stage, inputs: Mapping[LoadOp, tuple[int, int]], stores: Sequence[StoreOp]) -> LinearProgram | None:
    """The arithmetic of a stage; `None` if it has other ops than sums, differences and products, and extensions of
    what is loaded.
    """
    dtype = next((each for each in _DTYPES if each == stores[0].value.type), None)
    if dtype is None:
        return None
    source = dtype
    numbers = [op for op in stage.body if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr)]
    values: dict[SSAValue, int] = {op.results[0]: number for number, op in enumerate((*inputs, *numbers))}
    instructions: list[Instruction] = []
    for op in stage.body:
        if op.results and isinstance(op.results[0].type, IndexType):
            continue
        name = _NAMES.get(type(op))
        if name is not None:
            values[op.results[0]] = len(inputs) + len(numbers) + len(instructions)
            instructions.append((name, tuple(values[operand] for operand in op.operands)))
        elif isinstance(op, arith.ExtUIOp | arith.ExtSIOp) and op.input.type == i8 and op.input in values:
            source = ui8 if isinstance(op, arith.ExtUIOp) else i8
            values[op.result] = values[op.input]
        elif not isinstance(op, LoadOp | StoreOp | arith.ConstantOp):
            return None
    constants = tuple(float(op.value.value.data) for op in numbers if isinstance(op.value, FloatAttr))
    outputs = tuple(values[store.value] for store in stores)
    return LinearProgram(dtype, source, tuple(inputs.values()), constants, tuple(instructions), outputs)


def _steps(back: Transform, following: Sequence[Stage], layout: TileLayout) -> tuple[Stage, ...]:
    """The elementwise stages after the transform, over all results, that read what the one before makes."""
    made, found = {back.target}, list[Stage]()
    for stage in following:
        same = all(extent is first for extent, first in zip(stage.extents, (found or [stage])[0].extents, strict=False))
        read = [load for load in stage.loads if load.buffer in made]
        plain = len(stage.axes) == layout.rank and not stage.pinned and not stage.init and same and bool(read)
        spatial = all(axis.kind is IteratorKind.SPATIAL for axis in stage.axes)
        if not plain or not spatial or any(isinstance(op, IfOp) or op.regions for op in stage.body):
            break
        vector = layout.vector
        if stage.extents[vector] is not back.stage.extents[vector]:
            break
        if not all(_is_identity(stage, load) for load in read):
            break
        if any(store.buffer in made for store in stage.stores) or not _is_linear(stage, vector):
            break
        found.append(stage)
        made |= {store.buffer for store in stage.stores}
    return tuple(found)


def _is_linear(stage: Stage, vector: int) -> bool:
    """Whether all accesses are linear, and stores are to whole vectors along an axis."""
    linear = all(index.value is None for indices in stage.accesses.values() for index in indices)
    return linear and all(stage.accesses[store][-1].is_axis(vector) for store in stage.stores)


def _is_identity(stage: Stage, load: LoadOp) -> bool:
    return all(index.is_axis(axis) for axis, index in enumerate(stage.accesses[load]))
