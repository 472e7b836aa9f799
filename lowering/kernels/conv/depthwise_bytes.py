"""Depthwise convolutions of bytes on channels-last data, by dot products of groups of four rows.

Bytes of four rows of the image, at the same pixel and channel, make a dot-product group (`tir.dot`); a vector has the
groups of as many channels as it has lanes. A dot product adds up the products of the taps in a column of the window.
Rows of a group are shared by several rows of outputs, whose weights are shifted within the group: with stride 1 and a
window of three rows, four rows of the image make two rows of outputs.

Padding is elided. Taps of rows out of bounds have no weights; accumulators begin with their products with the padding.
Where a column is out of bounds, groups of padding take its place. All of this is exact, since integers wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, VectorType, i8, i32
from xdsl.ir import Attribute, SSAValue

from lowering.kernels.conv.micro_kernel import PaddedAxis
from lowering.kernels.cost_model import DEPTHWISE_BYTES_GROUP_COST, DEPTHWISE_BYTES_MAX_TAPS, DOT_GROUP_TASK_MACS
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import bits_as, concatenated, shuffle
from lowering.kernels.gemm.dot_group_contraction import has_dot_products, narrow_factor
from lowering.kernels.gemm.dot_group_micro_kernel import (
    GROUP_BYTES,
    SIGN_GROUP,
    constant_number,
    dot,
    splat,
    with_flipped_sign,
)
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import access_of
from lowering.kernels.structure.padding import Padding
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, ceildiv, constant, minimum
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.vectors import ui8
from tir_dialect.types import row_major_strides

DOT_LANES = (4, 8, 16)

_NONE, _ONE = constant(0), constant(1)


@dataclass(frozen=True)
class ImageAxis:
    """A dimension of the data along which windows may slide: read at `stride * output + dilation * tap - low`."""

    output: int | None = None
    """The axis of the output; `None` if that has one element."""
    window: int | None = None
    """The reduced axis of the taps; `None` if there is one tap."""
    stride: int = 1
    dilation: int = 1
    low: int = 0
    length: Dim = _ONE
    """Elements of the data, without padding."""
    step: Dim = _NONE
    """Elements from one to the next in memory."""
    is_padded: bool = False


@dataclass(frozen=True)
class Image:
    """The dimensions of the data but for the channels."""

    tall: ImageAxis
    """Of rows, that make groups."""
    wide: ImageAxis
    """Of the pixels of a row."""
    others: tuple[ImageAxis, ...]


@dataclass(frozen=True)
class ByteDepthwise:
    """A depthwise convolution of bytes."""

    lane: int
    """The axis of the channels."""
    image: Image
    memory: SSAValue
    """The data, without padding."""
    weights: tuple[SSAValue, AffineAccess]
    dtypes: tuple[Attribute, Attribute]
    """Of data and weights."""
    filler: int
    """What is around the data."""

    @property
    def is_flipped(self) -> bool:
        """Whether the sign bit of the data is flipped: a dot product takes one factor with a sign."""
        return self.dtypes[0] == self.dtypes[1]

    @property
    def factors(self) -> tuple[Attribute, Attribute]:
        """The dtypes that are multiplied."""
        left, right = self.dtypes
        return (ui8 if left == i8 else i8, right) if self.is_flipped else self.dtypes


def data_of(gemm: Gemm) -> LoadOp | None:
    """The load of bytes that a contraction extends and multiplies first."""
    narrow = narrow_factor(gemm.contraction.rows)
    load = None if narrow is None else narrow[0].value.owner
    return load if isinstance(load, LoadOp) else None


def find_byte_depthwise(gemm: Gemm, padding: Padding | None) -> ByteDepthwise | None:
    """The depthwise convolution of bytes that a contraction over padded data is; `None` if it is none."""
    contraction, load = gemm.contraction, data_of(gemm)
    rows, columns = narrow_factor(contraction.rows), narrow_factor(contraction.columns)
    if load is None or rows is None or columns is None or gemm.tiles.lanes not in DOT_LANES:
        return None
    weights = columns[0].value.owner
    if not contraction.is_integer or contraction.column or contraction.outer or len(contraction.batch) != 1:
        return None
    access = access_of(contraction.stage, weights) if isinstance(weights, LoadOp) else None
    strides = contraction.output.strides, None if access is None else access.strides
    lane = contraction.batch[0]
    if not isinstance(weights, LoadOp) or access is None or access.computed:
        return None
    if gemm.size([lane]).constant_value is None or any(each[lane] is not constant(1) for each in strides if each):
        return None
    image = _find_image(gemm, lane, load, padding)
    if image is None or _taps(gemm, image) is None:
        return None
    filler = 0 if padding is None else _number(padding.filler)
    memory = load.buffer if padding is None else padding.load.buffer
    dtypes = rows[1], columns[1]
    return None if filler is None else ByteDepthwise(lane, image, memory, (weights.buffer, access), dtypes, filler)


def _number(filler: arith.ConstantOp) -> int | None:
    value = filler.value
    return value.value.data if isinstance(value, IntegerAttr) else None


def _taps(gemm: Gemm, image: Image) -> int | None:
    """How many taps a window has; `None` if that is not known, or it has too many."""
    windows = [axis.window for axis in (image.tall, image.wide) if axis.window is not None]
    outputs = [axis.output for axis in (image.tall, image.wide, *image.others) if axis.output is not None]
    contraction = gemm.contraction
    if sorted(windows) != sorted(contraction.reduced) or sorted(outputs) != sorted(contraction.row):
        return None
    taps = gemm.size(windows).constant_value
    return taps if taps is not None and taps <= DEPTHWISE_BYTES_MAX_TAPS else None


def _find_image(gemm: Gemm, lane: int, load: LoadOp, padding: Padding | None) -> Image | None:
    """The axes of the data; `None` if windows slide along more than two of them, or channels do not follow each other.

    Those of pixels are next to the channels.
    """
    indices = gemm.contraction.stage.accesses[load]
    shape = load.buffer_type.shape if padding is None else padding.data
    steps = load.buffer_type.strides if padding is None else row_major_strides(padding.data)
    found: list[ImageAxis] = []
    for number, (index, length, step) in enumerate(zip(indices, shape, steps, strict=True)):
        low = padding.low[number] if padding is not None else 0
        is_padded = padding is not None and padding.is_padded(number)
        # The axes with more than one element that move an index, with their strides; `None` for one that
        # is symbolic.
        extents = gemm.contraction.stage.extents
        pairs = enumerate(index.strides)
        moving = {axis: each.constant_value for axis, each in pairs if each.terms and extents[axis].constant_value != 1}
        if lane in moving:
            if moving != {lane: 1} or step is not constant(1) or is_padded:
                return None
            continue
        axis = None if index.value is not None or index.base.terms else _image_axis(gemm, moving)
        if axis is None:
            return None
        if axis.output is not None or axis.window is not None or is_padded:
            found.append(replace(axis, low=low, length=length, step=step, is_padded=is_padded))
    # The axes in their roles; outputs of neighbouring pixels are `beside` elements apart.
    beside = gemm.size([lane])
    sliding = [axis for axis in found if axis.window is not None or axis.is_padded]
    pixels = [
        axis for axis in found if axis.output is not None and gemm.contraction.output.strides[axis.output] is beside
    ]
    candidates = [axis for axis in pixels if axis in sliding] or (sliding[1:] if len(sliding) == 2 else pixels)
    wide = next(iter(candidates), ImageAxis())
    tall = [axis for axis in sliding if axis is not wide] or [axis for axis in found if axis is not wide][-1:]
    others = tuple(axis for axis in found if axis is not wide and axis not in tall)
    return Image(tall[0] if tall else ImageAxis(), wide, others) if len(tall) <= 1 else None


def _image_axis(gemm: Gemm, moving: Mapping[int, int | None]) -> ImageAxis | None:
    """A dimension that some axes move: one of the output, or one of the window, or both."""
    outputs = [axis for axis in moving if axis in gemm.contraction.row]
    windows = [axis for axis in moving if axis in gemm.contraction.reduced]
    steps = [moving[axis] or 0 for axis in (*outputs, *windows)]
    if len(outputs) > 1 or len(windows) > 1 or len(steps) != len(moving) or any(step < 1 for step in steps):
        return None
    output, window = next(iter(outputs), None), next(iter(windows), None)
    stride = 1 if output is None else moving[output] or 1
    return ImageAxis(output, window, stride, 1 if window is None else moving[window] or 1)


def byte_depthwise_of(gemm: Gemm) -> ByteDepthwise | None:
    """The depthwise convolution of bytes that a contraction is, with the padding that was elided before."""
    load = data_of(gemm)
    return None if load is None else find_byte_depthwise(gemm, gemm.kernel.elided_padding.get(load.buffer))


class ByteDepthwiseConvolution:
    """Generates a depthwise convolution of bytes, including its batch axes."""

    def __init__(self, gemm: Gemm, depthwise: ByteDepthwise):
        self.gemm, self.depthwise, self.code = gemm, depthwise, gemm.code
        self.lanes = gemm.tiles.lanes
        self.epilogue = EpilogueEmitter(gemm, None, None)
        self.memory = gemm.kernel.flat[depthwise.memory]
        self.weights_memory = gemm.kernel.flat[depthwise.weights[0]]
        tall, wide = depthwise.image.tall, depthwise.image.wide
        self.taps = self._size(tall.window).constant_value or 1, self._size(wide.window).constant_value or 1
        self.height, self.length = self._size(tall.output), self._size(wide.output)
        self.groups = -(-self.taps[0] // GROUP_BYTES)
        self.has_dot_products = has_dot_products(gemm.kernel.target, i8)
        self.rows, self.offsets = self._shared_rows()
        self.interior = PaddedAxis(0, wide.stride, 0, wide.dilation, wide.low, wide.length).interior(
            constant(self.taps[1]), self.length
        )
        self.mr = self._choose_mr()
        # A group of four bytes of padding.
        byte = (self.depthwise.filler & 0xFF) ^ (0x80 if self.depthwise.is_flipped else 0)
        word = byte * 0x01010101
        self.filler = word - (1 << 32) if word >= 1 << 31 else word
        self.mask: SSAValue | None = None
        """The channels that are there, of a vector that has more; `None` if all are."""

    def _size(self, axis: int | None) -> Dim:
        return constant(1) if axis is None else self.gemm.size([axis])

    def _shared_rows(self) -> tuple[int, list[int]]:
        """How many rows of outputs share groups, and the rows of the image in these, counted from the first."""
        axis, height = self.depthwise.image.tall, self.height.constant_value

        def offsets(rows: int) -> list[int]:
            return sorted({r * axis.stride + tap * axis.dilation for r in range(rows) for tap in range(self.taps[0])})

        rows, most = 1, height or GROUP_BYTES * self.groups
        if not self.has_dot_products:  # then each group of weights fills two registers
            most = min(most, self.gemm.kernel.target.vector_registers // (2 * self.taps[1] * self.groups))
        while rows < most and len(offsets(rows + 1)) <= self.groups * GROUP_BYTES:
            rows += 1
        return rows, offsets(rows)

    def _choose_mr(self) -> int:
        """MR, the pixels of a tile: the cheapest one for the length of a row, if that is known."""
        registers = self.gemm.kernel.target.vector_registers
        most = max(1, (registers - 8) // (self.rows * (2 if self.has_dot_products else 1)))
        length, wide = self.interior[1].constant_value, self.depthwise.image.wide
        if length is None:
            return max(1, most // 2)

        def cost(pixels: int) -> float:
            columns = min((pixels - 1) * wide.stride, pixels * self.taps[1]) + self.taps[1]
            return DEPTHWISE_BYTES_GROUP_COST * self.groups * columns + self.rows * pixels * (
                self.taps[1] * self.groups + 8
            )

        return min(
            range(1, most + 1),
            key=lambda pixels: length // pixels * cost(pixels) + length % pixels * cost(1),
        )

    def emit(self) -> None:
        """All rows, partitioned among threads; each block of rows goes in tiles of MR pixels."""
        image = self.depthwise.image
        padded = [axis.length for axis in (image.tall, image.wide) if axis.is_padded]
        unknown = [self.code.dim(length) for length in padded if not length.is_constant]
        self._emit_all() if not unknown else self._emit_unless_empty(unknown)

    def _emit_unless_empty(self, lengths: Sequence[SSAValue]) -> None:
        """All rows; data of which nothing is there are not read."""
        code = self.code
        least = reduce(code.minimum, lengths)
        with code.when(code.compare("sgt", least, 0)) as branch:
            self._emit_all()
        with code.otherwise(branch):
            self._emit_all(is_empty=True)

    def _emit_all(self, is_empty: bool = False) -> None:
        code, gemm, image = self.code, self.gemm, self.depthwise.image
        contraction = gemm.contraction
        outer = tuple(axis.output for axis in image.others if axis.output is not None)
        blocks = ceildiv(self.height, constant(self.rows))
        units, work = gemm.size(outer) * blocks, gemm.size((*contraction.batch, *contraction.row, *contraction.reduced))
        tasks = minimum(units, gemm.threads(DOT_GROUP_TASK_MACS, work))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            number = code.divide(unit, code.dim(blocks))
            first = code.mul(code.remainder(unit, code.dim(blocks)), self.rows)
            coords = {(axis,): at for axis, at in gemm.at((), outer, {outer: number}).items()}
            strip = Strip(self, coords, first, is_empty)
            channels = gemm.size([self.depthwise.lane]).constant_value or 0
            with code.loop(code.index(channels // self.lanes), "v") as v:
                strip.emit(code.mul(v, self.lanes), None)
            if channels % self.lanes:
                strip.emit(code.index(channels // self.lanes * self.lanes), code.index(channels % self.lanes))


class Strip:
    """Generates a block of rows of outputs that share groups."""

    def __init__(self, conv: ByteDepthwiseConvolution, coords: Coords, first: SSAValue, is_empty: bool):
        """`first` is the first row, `is_empty` whether there are no data, only padding."""
        self.conv, self.coords, self.first, self.is_empty = conv, coords, first, is_empty
        self.code, self.lanes = conv.code, conv.lanes
        self.factors = conv.depthwise.factors
        code, tall, others = self.code, conv.depthwise.image.tall, conv.depthwise.image.others
        begin = code.linear(
            constant(0), [(coords[a.output,], a.step * a.stride) for a in others if a.output is not None]
        )
        top = code.mul(first, tall.stride)
        last = code.sub(code.dim(tall.length), 1)
        self.valid: list[SSAValue] = []
        """Whether rows of the image are there."""
        self.starts: list[SSAValue] = []
        """The addresses of their first pixels, those of another row where they are not."""
        for offset in conv.offsets:
            row = code.sub(code.add(top, offset), tall.low)
            inside = code.both(code.compare("sge", row, 0), code.compare("sle", row, last))
            self.valid.append(inside)
            near = code.maximum(code.minimum(row, last), 0)
            self.starts.append(code.add(begin, code.mul(near, code.dim(tall.step))))

    @property
    def _may_miss_rows(self) -> bool:
        tall, conv = self.conv.depthwise.image.tall, self.conv
        return tall.is_padded or conv.height.constant_value is None or bool(conv.height.constant_value % conv.rows)

    def emit(self, channel: SSAValue, on: SSAValue | None) -> None:
        """A vector of channels for all pixels, `on` of them if some are not there."""
        code, conv = self.code, self.conv
        self.channel, self.on = channel, on
        self.mask = None if on is None else code.leading(on, self.lanes)
        count = conv.rows * conv.taps[1] * conv.groups
        self.weights = code.alloc([count, self.lanes], i32, "weights", scope="local")
        self.begin = code.alloc([conv.rows, self.lanes], i32, "begin", scope="local")
        self._take_weights()
        first, inside = (code.dim(each) for each in conv.interior)
        tiles = code.divide(inside, conv.mr)
        if conv.mr > 1:
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._pixels(code.add(first, code.mul(tile, conv.mr)), conv.mr)
        done = code.mul(tiles, conv.mr) if conv.mr > 1 else code.index(0)
        with code.loop(code.sub(code.dim(conv.length), done), "pixel", vectorize=False) as number:
            before = code.compare("slt", number, first)
            self._pixels(code.select(before, number, code.add(number, done)), 1)

    # Weights

    def _take_weights(self) -> None:
        """Groups of weights for each row of outputs, and what accumulators begin with."""
        code, conv, zeros = self.code, self.conv, splat(self.code, 0, i32, self.lanes)
        taps = {(ky, kx): self._weights_of_tap(ky, kx) for ky in range(conv.taps[0]) for kx in range(conv.taps[1])}
        none = splat(code, 0, i8, self.lanes)
        kept = [self._kept_bytes(group) for group in range(conv.groups)] if self._may_miss_rows else None
        tall = conv.depthwise.image.tall
        position = {offset: number for number, offset in enumerate(conv.offsets)}
        for row in range(conv.rows):
            used = {position[row * tall.stride + ky * tall.dilation]: ky for ky in range(conv.taps[0])}
            total = zeros
            for kx in range(conv.taps[1]):
                for group in range(conv.groups):
                    numbers = [used.get(group * GROUP_BYTES + at) for at in range(GROUP_BYTES)]
                    words = self._grouped([none if ky is None else taps[ky, kx] for ky in numbers])
                    if conv.depthwise.is_flipped:
                        signs = splat(code, SIGN_GROUP, i32, self.lanes)
                        total = code.value(arith.SubiOp(total, dot(code, self.factors, signs, words, zeros)))
                    if kept is not None:
                        whole, words = words, code.value(arith.AndIOp(words, kept[group]))
                        total = self._with_padding(total, code.value(arith.XOrIOp(whole, words)))
                    code.store(words, self.weights, self._weights_at(row, kx, group))
            code.store(total, self.begin, [code.index(row), code.index(0)])

    def _with_padding(self, total: SSAValue, missed: SSAValue) -> SSAValue:
        """Accumulators, with the products of padding and weights added."""
        code, filler = self.code, self.conv.filler
        if not filler:
            return total
        return dot(code, self.factors, splat(code, filler, i32, self.lanes), missed, total)

    def _weights_of_tap(self, ky: int, kx: int) -> SSAValue:
        conv, code = self.conv, self.code
        access, image = conv.depthwise.weights[1], conv.depthwise.image
        terms = [
            (code.index(tap), access.strides[axis.window])
            for tap, axis in ((ky, image.tall), (kx, image.wide))
            if axis.window is not None
        ]
        index = code.add(code.linear(access.base, terms), self.channel)
        return code.load(conv.weights_memory, [index], self.lanes, self.mask)

    def _kept_bytes(self, group: int) -> SSAValue:
        """The bytes of a group of weights whose rows of the image are there, as a vector of masks."""
        code, total = self.code, constant_number(self.code, 0, i32)
        for at, inside in enumerate(self.valid[group * GROUP_BYTES : (group + 1) * GROUP_BYTES]):
            byte = 0xFF << (8 * at)
            on = constant_number(code, byte - (1 << 32) if byte >= 1 << 31 else byte, i32)
            total = code.either(total, code.select(inside, on, constant_number(code, 0, i32)))
        return code.splat(total, self.lanes)

    def _weights_at(self, row: int, kx: int, group: int) -> list[SSAValue]:
        conv = self.conv
        return [self.code.index((row * conv.taps[1] + kx) * conv.groups + group), self.code.index(0)]

    def _grouped(self, rows: Sequence[SSAValue]) -> SSAValue:
        """Four vectors of bytes as a vector of groups."""
        if not self.conv.has_dot_products:
            # The same by shifts of 32 bits: dot products take the groups apart again, which leaves less of
            # it.
            code, wide = self.code, VectorType(i32, [self.lanes])
            total = code.value(ConvertOp("extui", rows[0], wide))
            for number, row in enumerate(rows[1:], 1):
                high = code.value(ConvertOp("extui", row, wide))
                bits = splat(code, 8 * number, i32, self.lanes)
                total = code.either(total, code.value(arith.ShLIOp(high, bits)))
            return total
        first, second = (concatenated(self.code, rows[at], rows[at + 1]) for at in (0, 2))
        order = [lane + self.lanes * row for lane in range(self.lanes) for row in range(GROUP_BYTES)]
        return bits_as(self.code, shuffle(self.code, (first, second), order), i32, self.lanes)

    # Pixels

    def _pixels(self, pixel: SSAValue, mr: int) -> None:
        """MR pixels whose windows are in bounds, or a single pixel."""
        code, conv = self.code, self.conv
        wide = conv.depthwise.image.wide
        partial = code.alloc([conv.rows * mr, self.lanes], i32, "sums", scope="local")
        sums = {(row, p): [code.index(row * mr + p), code.index(0)] for row in range(conv.rows) for p in range(mr)}
        for (row, _), at in sums.items():
            code.store(code.load(self.begin, [code.index(row), code.index(0)], self.lanes), partial, at)
        users: dict[int, list[tuple[int, int]]] = {}
        for p in range(mr):
            for kx in range(conv.taps[1]):
                users.setdefault(p * wide.stride + kx * wide.dilation, []).append((p, kx))
        left = code.sub(code.mul(pixel, wide.stride), wide.low)
        for column, found in sorted(users.items()):
            for group, words in enumerate(self._column(code.add(left, column), mr == 1)):
                for row in range(conv.rows):
                    for p, kx in found:
                        weights = code.load(self.weights, self._weights_at(row, kx, group), self.lanes)
                        at = sums[row, p]
                        total = code.load(partial, at, self.lanes)
                        code.store(dot(code, self.factors, words, weights, total), partial, at)
        self._store(partial, sums, pixel)

    def _column(self, column: SSAValue, is_edge: bool) -> list[SSAValue]:
        """The groups of a column of the image, those of padding if it is out of bounds."""
        code, conv = self.code, self.conv
        wide = conv.depthwise.image.wide
        if self.is_empty:
            return [splat(code, conv.filler, i32, self.lanes)] * conv.groups
        checked = is_edge and wide.is_padded
        last = code.sub(code.dim(wide.length), 1)
        near = code.maximum(code.minimum(column, last), 0) if checked else column
        further = code.add(code.mul(near, code.dim(wide.step)), self.channel)
        rows = [self._bytes(code.add(start, further)) for start in self.starts]
        none = rows[-1] if conv.has_dot_products else splat(code, 0, i8, self.lanes)
        rows += [none] * (conv.groups * GROUP_BYTES - len(rows))
        words = [self._grouped(rows[at : at + GROUP_BYTES]) for at in range(0, len(rows), GROUP_BYTES)]
        if not checked:
            return words
        inside = code.both(code.compare("sge", column, 0), code.compare("sle", column, last))
        filler = splat(code, conv.filler, i32, self.lanes)
        return [code.select(inside, each, filler) for each in words]

    def _bytes(self, index: SSAValue) -> SSAValue:
        values = self.code.load(self.conv.memory, [index], self.lanes, self.mask)
        return with_flipped_sign(self.code, values, self.lanes) if self.conv.depthwise.is_flipped else values

    def _store(self, partial: SSAValue, sums: Mapping[tuple[int, int], list[SSAValue]], pixel: SSAValue) -> None:
        """The results of some pixels of each row that is there."""
        code, conv = self.code, self.conv
        image = conv.depthwise.image
        for row in range(conv.rows):
            here = code.add(self.first, row)
            with ExitStack() as guards:
                if row and (conv.height.constant_value is None or conv.height.constant_value % conv.rows):
                    guards.enter_context(code.when(code.compare("slt", here, code.dim(conv.height))))
                for (own, p), at in sums.items():
                    if own != row:
                        continue
                    coords = {**self.coords, (conv.depthwise.lane,): self.channel}
                    coords |= {} if image.tall.output is None else {(image.tall.output,): here}
                    coords |= {} if image.wide.output is None else {(image.wide.output,): code.add(pixel, p)}
                    conv.epilogue.store_lanes(code.load(partial, at, self.lanes), coords, self.on)
