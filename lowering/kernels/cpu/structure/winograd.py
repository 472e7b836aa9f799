"""Recognises Winograd convolutions: a linear transform of patches, a matrix product for each point, and a linear
transform of the sums to tiles of results.

They are recognised by structure: which transforms these are plays no role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.contraction import Contraction
from lowering.kernels.cpu.structure.padding import Padding, find_padding
from lowering.kernels.cpu.structure.stages import Access, Index, Stage
from tir_dialect.dims import constant
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind

BATCH, BLOCK, ROW, COLUMN, LANE = range(5)
"""The axes of the transforms, and the dimensions of data and results in blocks of channels."""

Instruction = tuple[str, tuple[int, ...]]
"""An operation on earlier values, by their numbers."""


@dataclass(frozen=True)
class LinearProgram:
    """Straight-line arithmetic: some inputs are loaded, and then values computed one after the other."""

    inputs: tuple[tuple[int, int], ...]
    """The row and column of each input: the first values."""
    numbers: tuple[float, ...]
    """Constants: the next values."""
    instructions: tuple[Instruction, ...]
    """`add`, `sub` and `mul` of two values, each of which makes another value."""
    outputs: tuple[int, ...]
    """The value for each position of the output."""


@dataclass(frozen=True)
class Transform:
    """A stage that computes a square of outputs from a square of inputs, for each tile and channel."""

    stage: Stage
    program: LinearProgram
    source: SSAValue
    target: SSAValue
    tile: int
    """How far the squares of data or results of neighbouring tiles are apart."""


@dataclass(frozen=True)
class Winograd:
    """A convolution, with the stages that are computed with it."""

    padding: Padding | None
    """Zeros around the data, which need no memory; without, patches are within the data."""
    data: SSAValue
    there: Transform
    contraction: Contraction
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
    padding = find_padding(stages[0], any_end=True) if len(stages) > 3 else None
    if padding is not None and not (padding.is_zero and padding.low[:2] == (0, 0) and padding.low[LANE:] == (0,)):
        return None
    first, rest = (None, stages) if padding is None else (stages[0], stages[1:])
    if len(rest) < 3 or (contraction := contractions.get(rest[1])) is None:
        return None
    there, back = _there(rest[0]), _back(rest[2])
    if there is None or back is None or not _joins(there, contraction, back):
        return None
    if first is not None and first.stores[0].buffer is not there.source:
        return None
    steps = _steps(back, rest[3:])
    later = {load.buffer for stage in rest[3 + len(steps) :] for load in stage.loads}
    hidden = {there.target, back.source, *([] if first is None else [there.source])}
    if hidden & later or not hidden <= own:
        return None
    made = {back.target, *(store.buffer for step in steps for store in step.stores)} if steps else set[SSAValue]()
    unread = frozenset(hidden | (own.intersection(made) - later))
    data = there.source if padding is None else padding.load.buffer
    return Winograd(padding, data, there, contraction, back, steps, unread)


def is_transform(stage: Stage) -> bool:
    """Whether a stage is one of both transforms: it writes several elements of a buffer, each once."""
    return _there(stage) is not None or _back(stage) is not None


def _joins(there: Transform, contraction: Contraction, back: Transform) -> bool:
    """Whether a contraction multiplies what one transform makes for the other, point by point, with panels."""
    rows, columns = contraction.rows.value.owner, contraction.columns.value.owner
    if not (isinstance(rows, LoadOp) and isinstance(columns, LoadOp) and isinstance(contraction.element, Float32Type)):
        return False
    if rows.buffer is not there.target or contraction.store.buffer is not back.source:
        return False
    accesses = contraction.stage.accesses
    in_order = all(index.is_axis(axis) for axis, index in zip((0, 1, 2, 3, 5), accesses[rows], strict=True)) and all(
        index.is_axis(axis) for axis, index in enumerate(accesses[contraction.store])
    )
    return (
        in_order
        and (contraction.batch, contraction.column, contraction.reduced) == ((0,), (4,), (5,))
        and columns.buffer_type.rank == 4
        and there.tile == back.tile
        and there.stage.extents[ROW : COLUMN + 1] == back.stage.extents[ROW : COLUMN + 1]
    )


def _there(stage: Stage) -> Transform | None:
    """The transform of patches to points: inputs are at `[n, c, tile * i + p, tile * j + q, lane]`."""
    if not _is_map(stage):
        return None
    loads, source = list(stage.loads), next(iter(stage.loads)).buffer
    squares = {load: _square(stage, load) for load in loads}
    points = {store: _point(stage, store) for store in stage.stores}
    return _transform(stage, source, squares, points)


def _back(stage: Stage) -> Transform | None:
    """The transform of points to a tile of results, at `[n, c, tile * i + p, tile * j + q, lane]`."""
    if not _is_map(stage):
        return None
    source, side = next(iter(stage.loads)).buffer, round(len(list(stage.loads)) ** 0.5)
    points = {load: _point(stage, load) for load in stage.loads}
    squares = {store: _square(stage, store) for store in stage.stores}
    tiles = {square[0] for square in squares.values() if square is not None}
    if None in points.values() or None in squares.values() or len(tiles) != 1:
        return None
    (tile,) = tiles
    inputs = {load: (tile, *divmod(point, side)) for load, point in points.items() if point is not None}
    outputs = {store: square[1] * tile + square[2] for store, square in squares.items() if square is not None}
    return _transform(stage, source, inputs, outputs)


def _is_map(stage: Stage) -> bool:
    """Whether a stage has the axes of a transform, one input and one output, and no code but arithmetic."""
    if len(stage.axes) != 5 or stage.pinned or stage.init or len({store.buffer for store in stage.stores}) != 1:
        return False
    spatial = all(axis.kind is IteratorKind.SPATIAL for axis in stage.axes)
    lanes = stage.extents[LANE].constant_value
    return spatial and lanes is not None and len({load.buffer for load in stage.loads}) == 1


def _square(stage: Stage, access: Access) -> tuple[int, int, int] | None:
    """The tile, row and column of `[n, c, tile * i + row, tile * j + column, lane]`."""
    indices = stage.accesses[access]
    if len(indices) != 5 or not all(indices[axis].is_axis(axis) for axis in (BATCH, BLOCK, LANE)):
        return None
    found = [_multiple(indices[axis], axis) for axis in (ROW, COLUMN)]
    (tile, row), (other, column) = (each or (0, 0) for each in found)
    return (tile, row, column) if tile == other > 0 else None


def _multiple(index: Index, axis: int) -> tuple[int, int] | None:
    """The factor and the offset of an index that is a multiple of one axis and a constant."""
    factor, base = index.strides[axis].constant_value, index.base.constant_value
    alone = index.value is None and all(not step.terms for at, step in enumerate(index.strides) if at != axis)
    return (factor, base) if alone and factor is not None and base is not None else None


def _point(stage: Stage, access: Access) -> int | None:
    """The point of `[point, n, i, j, lanes * c + lane]`."""
    indices = stage.accesses[access]
    if len(indices) != 5 or not all(indices[at].is_axis(axis) for at, axis in ((1, BATCH), (2, ROW), (3, COLUMN))):
        return None
    last, zero = indices[4], constant(0)
    wanted = (zero, stage.extents[LANE], zero, zero, constant(1))
    is_channel = last.value is None and not last.base.terms and last.strides == wanted
    is_constant = indices[0].value is None and all(not step.terms for step in indices[0].strides)
    return indices[0].base.constant_value if is_channel and is_constant else None


def _transform(
    stage: Stage,
    source: SSAValue,
    inputs: Mapping[LoadOp, tuple[int, int, int] | None],
    outputs: Mapping[StoreOp, int | None],
) -> Transform | None:
    squares = [square for square in inputs.values() if square is not None]
    if len(squares) != len(inputs) or len({tile for tile, *_ in squares}) != 1:
        return None
    positions = {load: (square[1], square[2]) for load, square in inputs.items() if square is not None}
    if sorted(point for point in outputs.values() if point is not None) != list(range(len(outputs))):
        return None
    ordered = sorted(outputs, key=lambda store: outputs[store] or 0)
    program = _program(stage, positions, [store.value for store in ordered])
    return None if program is None else Transform(stage, program, source, ordered[0].buffer, squares[0][0])


_NAMES: Mapping[type, str] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}


def _program(
    stage: Stage, inputs: Mapping[LoadOp, tuple[int, int]], outputs: Iterable[SSAValue]
) -> LinearProgram | None:
    """The arithmetic of a stage; `None` if it has other ops than sums, differences and products."""
    numbers = [op for op in stage.body if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr)]
    values: dict[SSAValue, int] = {op.results[0]: number for number, op in enumerate((*inputs, *numbers))}
    instructions: list[Instruction] = []
    for op in stage.body:
        name = _NAMES.get(type(op))
        if name is not None:
            values[op.results[0]] = len(inputs) + len(numbers) + len(instructions)
            instructions.append((name, tuple(values[operand] for operand in op.operands)))
        elif not isinstance(op, LoadOp | StoreOp | arith.ConstantOp):
            return None
    constants = tuple(float(op.value.value.data) for op in numbers if isinstance(op.value, FloatAttr))
    return LinearProgram(
        tuple(inputs.values()), constants, tuple(instructions), tuple(values[output] for output in outputs)
    )


def _steps(back: Transform, following: Sequence[Stage]) -> tuple[Stage, ...]:
    """The elementwise stages after the transform, over all results, that read what the one before makes."""
    made, found = {back.target}, list[Stage]()
    for stage in following:
        same = all(extent is first for extent, first in zip(stage.extents, (found or [stage])[0].extents, strict=False))
        read = [load for load in stage.loads if load.buffer in made]
        plain = len(stage.axes) == 5 and not stage.pinned and not stage.init and same and bool(read)
        spatial = all(axis.kind is IteratorKind.SPATIAL for axis in stage.axes)
        if not plain or not spatial or any(isinstance(op, IfOp) or op.regions for op in stage.body):
            break
        if stage.extents[LANE] is not back.stage.extents[LANE] or not all(_is_identity(stage, load) for load in read):
            break
        if any(store.buffer in made for store in stage.stores) or not _is_linear(stage):
            break
        found.append(stage)
        made |= {store.buffer for store in stage.stores}
    return tuple(found)


def _is_linear(stage: Stage) -> bool:
    """Whether all accesses are linear, and stores are to whole vectors."""
    linear = all(index.value is None for indices in stage.accesses.values() for index in indices)
    return linear and all(stage.accesses[store][-1].is_axis(LANE) for store in stage.stores)


def _is_identity(stage: Stage, load: LoadOp) -> bool:
    return all(index.is_axis(axis) for axis, index in enumerate(stage.accesses[load]))
