"""Winograd convolutions, 3 x 3 windows with stride 1, of whose results a tile of M x M is computed at once; and the
pass `use-winograd`, which makes them.

`Y = A' [(G g G') * (B' d B)] A` (Lavin and Gray, 2016), with `d` a patch of the data of (M + 2) x (M + 2) and `g`
the weights of one channel and one filter. The elementwise product and the sum over channels are (M + 2) ** 2 matrix
products. F(2 x 2) takes 16 multiplications for what takes 36, F(4 x 4) 36 for 144.

The transforms interpolate at 0, infinity, 1 and -1 in F(2 x 2), and at 0, infinity and plus and minus the square
roots of 1/2 and 2 in F(4 x 4): with these, unlike with whole numbers, coefficients are between 1/2 and 5/2.

A patch of a convolution with dilation has every `dilation`-th row and column: tiles of `dilation` neighbouring rows are
interleaved.

F(2 x 2) of bytes is exact in integers: patches have 16 bits after their transform, and so have weights times 4; sums
have 32 bits, and are 4 times those of the convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr, SymbolRefAttr, i8, i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.gemm.quantized_rows import multiplies_int16
from lowering.registry import Pass, pass_target
from lowering.relax.fusion.fuse_ops import ANNOTATION
from lowering.relax_to_tir.convolution import within
from lowering.relax_to_tir.elementwise import element as element_of
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import may_be_written, unchanged_between
from relax_dialect.function_symbols import KernelDims
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.rearranging import PadOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.analysis.patterns import OpPattern
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import dtype_name
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.vectors import ui8
from tir_dialect.target import Target
from tir_dialect.weights import TensorAttr, WeightAttr, computed, tensor_attr
from vm_dialect.host_memory import aligned_bytes

WINDOW = 3
TILES = (2, 4)
"""The sides of tiles that there are transforms for."""

Values = Sequence[te.Expr]
_SMALL, _LARGE = sqrt(0.5), sqrt(2.0)
"""The points of F(4 x 4), besides their negatives, 0 and infinity."""

_WEIGHTS = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array(
        [
            [1, 0, 0],
            *([-1 / 1.5, -sign * _SMALL / 1.5, -0.5 / 1.5] for sign in (1, -1)),
            *([1 / 6, sign * _LARGE / 6, 2 / 6] for sign in (1, -1)),
            [0, 0, 1],
        ]
    ),
}
"""G for each tile."""
_CACHED_WEIGHTS = 16_384
"""So many filters are transformed at once: as many as stay in the cache in `f64`."""


def transformed_weights(weights: NDArray[Any], tile: int) -> NDArray[np.float32]:
    """`G g G'` of weights in OIHW, as matrices `[(M + 2) ** 2, I, O]`; computed in `f64` and rounded once."""
    g, taps = _WEIGHTS[tile], weights.transpose(2, 3, 1, 0)
    _, width, inputs, outputs = taps.shape
    shape = len(g) ** 2, inputs, outputs
    made = aligned_bytes(4 * prod(shape)).view(np.float32).reshape(shape)
    step = max(1, _CACHED_WEIGHTS // outputs)
    for first in range(0, inputs, step):
        some = taps[:, :, first : first + step].astype(np.float64, "C")
        columns = (g @ some.reshape(len(some), -1)).reshape(len(g), width, -1)
        made[:, first : first + step] = (g @ columns).reshape(len(made), -1, outputs)
    return made


def _data_transform(d: Values) -> list[te.Expr]:
    """`B' d` for one column."""
    if len(d) == 4:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    even, odd = d[4] - 2.0 * d[2], _SMALL * (d[3] - 2.0 * d[1])
    further_even, further_odd = d[4] - 0.5 * d[2], _LARGE * (d[3] - 0.5 * d[1])
    pairs = [even + odd, even - odd, further_even + further_odd, further_even - further_odd]
    return [d[0] + d[4] - 2.5 * d[2], *pairs, d[1] + d[5] - 2.5 * d[3]]


def _inverse_transform(m: Values) -> list[te.Expr]:
    """`A' m` for one column."""
    total, difference = m[1] + m[2], m[1] - m[2]
    if len(m) == 4:
        return [m[0] + total, difference - m[3]]
    further_total, further_difference = m[3] + m[4], m[3] - m[4]
    return [
        m[0] + total + further_total,
        _SMALL * difference + _LARGE * further_difference,
        0.5 * total + 2.0 * further_total,
        _SMALL**3 * difference + _LARGE**3 * further_difference + m[5],
    ]


def _spatial(*axes: tuple[Dim, str]) -> list[tuple[Literal["spatial"], Dim, str]]:
    return [("spatial", extent, name) for extent, name in axes]


def _on_both_sides(
    b: te.ExternBuilder, transform: Callable[[Values], list[te.Expr]], square: Sequence[Values]
) -> list[list[te.Expr]]:
    """`T s T'` for a square of values: the transform of its columns, and then that of the rows."""
    columns = [[b.let(each) for each in transform(column)] for column in zip(*square, strict=True)]
    return [transform(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class WinogradShapes:
    """What the kernel of a convolution depends on: data, weights, result, and what is around the data.

    Data and result are `[n, c, h, w, block]` of `f32`, or `[n, h, w, c]` of bytes and `i32`.
    """

    data: tuple[Dim, ...]
    weights: tuple[Dim, ...]
    """`[points ** 2, channels, filters]`, or for bytes `[points ** 2, panels, channels / 2, panel, 2]`."""
    result: tuple[Dim, ...]
    padding: tuple[int, ...]
    """Elements before and after rows and columns: top, left, bottom, right."""
    tile: int
    dilation: int = 1
    dtype: str = "f32"
    filler: float = 0
    """The value around the data."""

    @property
    def points(self) -> int:
        """The side of a patch."""
        return self.tile + WINDOW - 1

    @property
    def is_bytes(self) -> bool:
        """Whether data are bytes with channels last."""
        return self.dtype != "f32"

    @property
    def spatial(self) -> slice:
        """The dimensions of rows and columns."""
        return slice(1, 3) if self.is_bytes else slice(2, 4)

    @property
    def channels(self) -> Dim:
        """The channels of the data."""
        return self.weights[2] * 2 if self.is_bytes else self.weights[1]

    @property
    def tiles(self) -> tuple[Dim, Dim]:
        """How many tiles cover the result; the last ones reach beyond it."""
        step = constant(self.tile * self.dilation)
        rows, columns = (ceildiv(extent, step) * self.dilation for extent in self.result[self.spatial])
        return rows, columns

    def axes(self, shape: Sequence[Dim]) -> list[tuple[Literal["spatial"], Dim, str]]:
        """The axes of a transform, for data or results of a shape: those of the tiles and of channels."""
        rows, columns = self.tiles
        grid = (rows, "i"), (columns, "j")
        if self.is_bytes:
            return _spatial((shape[0], "n"), *grid, (shape[3], "c"))
        return _spatial((shape[0], "n"), (shape[1], "c"), *grid, (shape[4], "lane"))

    def at(self, axes: Sequence[te.Expr], row: int, column: int) -> tuple[te.Expr, ...]:
        """The index of a value of the tile that the axes name, in data with what is around them, or in the results."""
        where = list(axes)
        for axis, number in zip(range(*self.spatial.indices(len(axes))), (row, column), strict=True):
            quotient, remainder = axes[axis] // self.dilation, axes[axis] % self.dilation
            first = quotient * (self.tile * self.dilation) + remainder if self.dilation > 1 else axes[axis] * self.tile
            where[axis] = first + number * self.dilation
        return tuple(where)

    def point(self, axes: Sequence[te.Expr], number: int, block: Dim) -> tuple[te.Expr | int, ...]:
        """The index `[point, n, i, j, channel]` of one of the points of that tile."""
        if self.is_bytes:
            return (number, *axes)
        n, c, i, j, lane = axes
        return number, n, i, j, c * (block.constant_value or 1) + lane


def winograd_function(shapes: WinogradShapes, name: str) -> PrimFuncOp:
    """The PrimFunc, of data and transformed weights."""
    x = te.placeholder(shapes.data, shapes.dtype, "X")
    w = te.placeholder(shapes.weights, "i16" if shapes.is_bytes else "f32", "W")
    whole = _tiles(shapes, _products(shapes, _transformed(shapes, _patches(shapes, x)), w))
    # Transformed weights of bytes are 4 times as large, so that they are integers.
    result = te.compute(shapes.result, lambda *i: whole[i] >> 2 if shapes.is_bytes else whole[i], name="result")
    return te.create_prim_func([x, w, result], name=name)


def _patches(shapes: WinogradShapes, x: te.Tensor) -> te.Tensor:
    """The data with what is around them, as far as patches reach."""
    spatial = shapes.spatial
    lengths, padding = shapes.data[spatial], shapes.padding[:2]
    around = shapes.dilation * (WINDOW - 1)
    extents = list(shapes.data)
    extents[spatial] = [count * shapes.tile + around for count in shapes.tiles]

    def element(*index: te.Expr) -> te.Expr:
        inner = [each - before for each, before in zip(index[spatial], padding, strict=True)]
        where = list(index)
        where[spatial] = inner
        return te.if_then_else(within(inner, lengths), x[tuple(where)], element_of(shapes.filler, x.dtype))

    return te.compute(extents, element, name="padded")


def _transformed(shapes: WinogradShapes, padded: te.Tensor) -> te.Tensor:
    """`B' d B` of each patch."""
    side = range(shapes.points)
    dtype = "i16" if shapes.is_bytes else "f32"

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("transform", *shapes.axes(shapes.data)) as axes:
            values = [[padded[shapes.at(axes, p, q)] for q in side] for p in side]
            patch = [[b.let(value.astype(dtype) if shapes.is_bytes else value) for value in row] for row in values]
            for p, row in enumerate(_on_both_sides(b, _data_transform, patch)):
                for q, value in enumerate(row):
                    b.store(outs[0], shapes.point(axes, p * shapes.points + q, shapes.data[-1]), value)

    kind = ([shapes.points**2, shapes.data[0], *shapes.tiles, shapes.channels], dtype)
    return te.extern([kind], [padded], body, name="transformed")[0]


def _products(shapes: WinogradShapes, transformed: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A matrix product for each point."""
    c = te.reduce_axis(shapes.channels, "c")

    def element(point: te.Expr, n: te.Expr, i: te.Expr, j: te.Expr, k: te.Expr) -> te.Expr:
        data = transformed[point, n, i, j, c]
        if not shapes.is_bytes:
            return te.sum(data * w[point, c, k], [c])
        panel = shapes.weights[3].constant_value or 1
        weight = w[point, k // panel, c // 2, k % panel, c % 2]
        return te.sum(data.astype("i32") * weight.astype("i32"), [c])

    filters = shapes.result[3] if shapes.is_bytes else shapes.weights[2]
    return te.compute([*transformed.shape[:4], filters], element, name="products")


def _tiles(shapes: WinogradShapes, products: te.Tensor) -> te.Tensor:
    """`A' m A` of each tile: results, and what the last tiles have beyond them."""
    side = range(shapes.points)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("inverse", *shapes.axes(shapes.result)) as axes:
            points = [[shapes.point(axes, p * shapes.points + q, shapes.result[-1]) for q in side] for p in side]
            sums = [[b.let(products[point]) for point in row] for row in points]
            for p, row in enumerate(_on_both_sides(b, _inverse_transform, sums)):
                for q, value in enumerate(row):
                    b.store(outs[0], shapes.at(axes, p, q), value)

    extents = list(shapes.result)
    extents[shapes.spatial] = [count * shapes.tile for count in shapes.tiles]
    return te.extern([(extents, "i32" if shapes.is_bytes else "f32")], [products], body, name="tiles")[0]


@dataclass(frozen=True)
class UseWinogradPass(Pass):
    """Computes 3 x 3 convolutions by Winograd's algorithm where that is faster.

    That is for stride 1 and constant weights, on blocked channels of `f32`, or on bytes with channels last where a
    machine multiplies bytes as numbers of 16 bits. A tile of results is computed at once, with weights that are
    transformed when the program is compiled.

    Before:

    ```mlir
    %w = relax.constant "w" : !relax.tensor<[4, 4, 3, 3, 16, 16], f32>
    %y = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1] data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
    ```

    After:

    ```mlir
    %w = relax.constant "w.winograd2" : !relax.tensor<[16, 64, 64], f32>
    %y = relax.call_tir @winograd_conv2d(%x, %w) : !relax.tensor<[n, 4, h, w, 16], f32>
    ```

    The largest tile is that of the target (`winograd_tile`): 1 leaves all convolutions as they are, 2, which is the
    default, allows F(2 x 2) with 16 multiplications for 36, and 4 also F(4 x 4) with 36 for 144. Rounding errors are
    some two times those of the sum of products with F(2 x 2), and some five times with F(4 x 4); results of bytes are
    exact, by F(2 x 2). A cost model decides for each convolution by its sizes. Idempotent.
    """

    name = "use-winograd"
    requires = ("relax.nn.conv2d",)

    tile: int = 0
    """The side of the largest tile: 1, 2 or 4; 0 for that of the target."""

    target: str = ""
    """The machine; this one if it is not named."""

    def __post_init__(self) -> None:
        """`ValueError` for a tile without a transform."""
        if self.tile not in (0, 1, *TILES):
            raise ValueError(f"tile expected one of 0, 1, {', '.join(map(str, TILES))}, got {self.tile}")

    def for_target(self, target: Target) -> UseWinogradPass:
        size = f"vector-bits={target.vector_bits} vector-registers={target.vector_registers}"
        machine = f"host {size} cpu={target.cpu} features={target.features}"
        return UseWinogradPass(self.tile or target.winograd_tile, machine)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = pass_target(self.target)
        largest = self.tile or target.winograd_tile
        if largest > 1 and any(isinstance(inner, Conv2dOp) for inner in op.walk()):
            kernels = _Kernels(op)
            patterns: list[RewritePattern] = [ComputeTiles(target, largest, kernels)]
            if multiplies_int16(target):
                patterns.append(ComputeByteTiles(target, kernels))
            apply_patterns(op, patterns)


@dataclass
class _Kernels:
    """The kernels and weights that were made for a module, each once."""

    module: ModuleOp
    functions: dict[WinogradShapes, str] = field(default_factory=dict[WinogradShapes, str])
    weights: dict[tuple[object, int], TensorAttr] = field(default_factory=dict[tuple[object, int], TensorAttr])

    def call(self, shapes: WinogradShapes, operands: Sequence[SSAValue], result: SSAValue) -> CallTIROp:
        """A call of the PrimFunc for some shapes, instead of another op's result."""
        if shapes not in self.functions:
            taken = {name for op in self.module.ops if (name := symbol_name(op)) is not None}
            name = self.functions[shapes] = fresh_name("winograd_conv2d", taken)
            func = winograd_function(shapes, name)
            # Each result is computed with others of its tile, which the analysis of single stores does not see through.
            func.attributes[ANNOTATION] = StringAttr(OpPattern.OUT_ELEMENTWISE_FUSABLE.name.lower())
            Rewriter.insert_op(func, InsertPoint.at_start(self.module.body.block))
        return CallTIROp(SymbolRefAttr(self.functions[shapes]), operands, [SSAValue.get(result, type=TensorType).type])

    def transformed(
        self,
        old: ConstantOp,
        tile: int,
        shape: Sequence[int],
        dtype: DTypeLike,
        transform: Callable[[NDArray[Any]], NDArray[Any]],
    ) -> ConstantOp:
        """The weights for a tile; a weight has that in its name, and is transformed once."""
        key, elements = (old.value, tile), old.sources
        assert elements is not None  # patterns ask for it
        if key not in self.weights:
            made = computed(transform, elements, shape, np.dtype(dtype))
            name = f"{old.value.weight_name}.winograd{tile}" if isinstance(old.value, WeightAttr) else None
            self.weights[key] = tensor_attr(made) if name is None else tensor_attr(made, name)
        made = ConstantOp(self.weights[key])
        made.result.name_hint = old.result.name_hint
        return made


@dataclass
class ComputeTiles(RewritePattern):
    """A convolution is a call of a kernel that computes tiles: `conv2d(x, w)  ->  call_tir @winograd_conv2d(x, w')`."""

    target: Target
    largest: int
    kernels: _Kernels

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv2dOp, rewriter: PatternRewriter) -> None:
        old, lanes = op.w.owner, self.target.lanes(32)
        elements = old.sources if isinstance(old, ConstantOp) else None
        if not isinstance(old, ConstantOp) or elements is None or not _is_plain(op, lanes) or may_be_written(op.w):
            return
        data, result = (_known_dims(each) for each in (op.x, op.result))
        if data is None or result is None:
            return
        outer, inner, _, _, members, filters = elements.shape
        channels, panel = inner * lanes, lanes * self.target.usual_tile[0]
        dilation = op.windows.dilation[0]
        sizes = ConvolutionSizes(channels, outer * lanes, *_sides(result[2:4]), lanes, panel, dilation)
        tile = sizes.best_tile(self.largest)
        if tile is None:
            return
        plain = outer * filters, inner * members, WINDOW, WINDOW

        def transformed(array: NDArray[Any]) -> NDArray[Any]:
            return transformed_weights(array.transpose(0, 5, 1, 4, 2, 3).reshape(plain), tile)

        shape = (tile + WINDOW - 1) ** 2, channels, outer * lanes
        weights = self.kernels.transformed(old, tile, shape, np.float32, transformed)
        dims = KernelDims.of([data, result])
        weight_dims = tuple(map(constant, shape))
        shapes = WinogradShapes(
            dims.shape(data), weight_dims, dims.shape(result), op.windows.padding, tile, dilation=dilation
        )
        rewriter.replace(op, [weights, self.kernels.call(shapes, [op.x, weights.result], op.result)])


def _is_plain(op: Conv2dOp, lanes: int) -> bool:
    """Whether a convolution has 3 x 3 windows side by side, of one group, on blocks of a vector."""
    layouts = [f"NCHW{lanes}c", f"OIHW{lanes}i{lanes}o", f"NCHW{lanes}c"]
    types = [*op.operand_types, *op.result_types]
    floats = all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types)
    return floats and [layout.text for layout in op.layouts] == layouts and _has_windows(op, slice(2, 4))


def _has_windows(op: Conv2dOp, spatial: slice) -> bool:
    """Whether a convolution has 3 x 3 windows with stride 1 and one group; `spatial` are the rows and columns of its
    kernel.
    """
    windows, dims = op.windows, _known_dims(op.w)
    return (
        dims is not None
        and [dim.constant_value for dim in dims[spatial]] == [WINDOW, WINDOW]
        and op.groups.value.data == 1
        and set(windows.strides) == {1}
        and windows.dilation[0] == windows.dilation[1]
    )


def _known_dims(value: SSAValue) -> Sequence[Dim] | None:
    return value.type.known_dims if isinstance(value.type, TensorType) else None


def _sides(extents: Sequence[Dim]) -> tuple[int, int]:
    """The height and width of an image, those that are usual where they are not known."""
    height, width = (extent.constant_value or USUAL_SIDE for extent in extents)
    return height, width


@dataclass
class ComputeByteTiles(RewritePattern):
    """The same for bytes, and what is around them:
    `conv2d(pad(x), w)  ->  call_tir @winograd_conv2d(x, w')`, with weights of 16 bits in panels.
    """

    target: Target
    kernels: _Kernels

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv2dOp, rewriter: PatternRewriter) -> None:
        old, lanes = op.w.owner, self.target.lanes(32)
        elements = old.sources if isinstance(old, ConstantOp) else None
        if not isinstance(old, ConstantOp) or elements is None or not _is_of_bytes(op) or may_be_written(op.w):
            return
        # The data of a convolution, the elements before and after rows and columns, and their value: those of a `pad`
        # before it, or zeros of its own.
        pad, own = op.x.owner, op.windows.padding
        is_read_later = isinstance(pad, PadOp) and unchanged_between([pad.x, op.x], pad, op)
        if not isinstance(pad, PadOp) or not is_read_later or any(own) or not _pads_images(pad):
            x, padding, filler = op.x, own, 0
        else:
            top, bottom, left, right = pad.pad_width.get_values()[2:6]
            x, padding, filler = pad.x, (top, left, bottom, right), pad.pad_value.value.data
        data, result = _known_dims(x), _known_dims(op.result)
        dtype = x.type.dtype if isinstance(x.type, TensorType) else None
        if data is None or result is None or dtype is None:
            return
        filters, _, _, channels = elements.shape
        # A vector of data has 16 bits for each channel, one of results 32 bits for each filter.
        if channels % (2 * lanes) or filters % lanes or channels > _most_channels(op):
            return
        panel, dilation = lanes * self.target.usual_tile[0], op.windows.dilation[0]
        sizes = ConvolutionSizes(channels, filters, *_sides(result[1:3]), lanes, panel, dilation, BYTES)
        if sizes.best_tile(BYTE_TILE) is None:
            return
        panels = -(-filters // panel)

        def transformed(array: NDArray[Any]) -> NDArray[Any]:
            points = 4 * transformed_weights(array.transpose(0, 3, 1, 2), BYTE_TILE)
            whole = np.zeros((len(points), channels, panels * panel), np.int16)
            whole[..., :filters] = points
            return whole.reshape(-1, channels // 2, 2, panels, panel).transpose(0, 3, 1, 4, 2).copy()

        shape = (BYTE_TILE + WINDOW - 1) ** 2, panels, channels // 2, panel, 2
        weights = self.kernels.transformed(old, BYTE_TILE, shape, np.int16, transformed)
        dims = KernelDims.of([data, result])
        weight_dims = tuple(map(constant, shape))
        shapes = WinogradShapes(
            dims.shape(data), weight_dims, dims.shape(result), padding, BYTE_TILE, dilation, dtype_name(dtype), filler
        )
        rewriter.replace(op, [weights, self.kernels.call(shapes, [x, weights.result], op.result)])


def _is_of_bytes(op: Conv2dOp) -> bool:
    """Whether a convolution has 3 x 3 windows side by side, of one group, on bytes with channels last."""
    dtypes = [each.dtype if isinstance(each, TensorType) else None for each in (*op.operand_types, *op.result_types)]
    bytes_in = all(each in (i8, ui8) for each in dtypes[:-1])
    layouts = [layout.text for layout in op.layouts] == ["NHWC", "OHWI", "NHWC"]
    return bytes_in and dtypes[-1] == i32 and layouts and _has_windows(op, slice(1, 3))


def _pads_images(pad: PadOp) -> bool:
    """Whether rows and columns alone get more elements, all with one value, and none is taken away."""
    widths = pad.pad_width.get_values()
    return pad.mode.data == "constant" and min(widths) >= 0 and not any((*widths[:2], *widths[6:]))


def _most_channels(op: Conv2dOp) -> int:
    """So many channels have sums, 4 times as large as those of the convolution, within 32 bits."""
    data, weights = (255 if isinstance(each, TensorType) and each.dtype == ui8 else 128 for each in op.operand_types)
    return (1 << 31) // (4 * WINDOW**2 * data * weights + 1)


USUAL_SIDE = 32
"""The side of an image of unknown size."""
BYTE_TILE = 2
"""The side of tiles of bytes: larger ones have transformed weights of more than 16 bits."""


@dataclass(frozen=True)
class Arithmetic:
    """What the numbers of a convolution take on a machine."""

    macs: int
    """Multiply-adds of a lane of 32 bits in one instruction."""
    weight_bytes: int
    """Of a transformed weight."""
    transforms: Mapping[int, tuple[int, int]]
    """By tile, cycles to transform a lane of 32 bits of each point of a tile, and back with an epilogue."""


FLOATS = Arithmetic(1, 4, {2: (45, 60), 4: (140, 180)})
BYTES = Arithmetic(2, 2, {2: (30, 90)})
BYTES_PER_CYCLE = 4
"""At which weights come from the last-level cache or memory."""
LEAST_GAIN = 0.85
"""The part of the time that has to be left: weights take more memory."""


@dataclass(frozen=True)
class ConvolutionSizes:
    """The sizes of a convolution of one image, by which its time is estimated, in cycles of one multiply-add of
    vectors.
    """

    channels: int
    filters: int
    height: int
    width: int
    lanes: int
    panel: int
    """Filters in a panel of weights."""
    dilation: int = 1
    arithmetic: Arithmetic = FLOATS

    def best_tile(self, largest: int) -> int | None:
        """The tile that takes the least time, if that is clearly less than without one; `None` also if the weights are
        not packed, since a third of a panel or more would be empty.
        """
        times = {tile: self._time(tile) for tile in self.arithmetic.transforms if tile <= largest}
        best = min(times, key=lambda tile: times[tile])
        is_packed = 2 * self._padded_filters <= 3 * self.filters
        return best if is_packed and times[best] < LEAST_GAIN * self._direct else None

    @property
    def _padded_filters(self) -> int:
        return -(-self.filters // self.panel) * self.panel

    @property
    def _direct(self) -> float:
        return self.height * self.width * WINDOW**2 * self.channels * self.filters / self._macs

    @property
    def _macs(self) -> int:
        """Multiply-adds of an instruction."""
        return self.lanes * self.arithmetic.macs

    def _time(self, tile: int) -> float:
        rows, columns = (-(-side // (tile * self.dilation)) * self.dilation for side in (self.height, self.width))
        tiles, points = rows * columns, (tile + WINDOW - 1) ** 2
        there, back = self.arithmetic.transforms[tile]
        transforms = tiles * (self.channels * there + self.filters * back) / self.lanes
        weights = points * self.channels * self._padded_filters
        products = max(weights * tiles / self._macs, self.arithmetic.weight_bytes * weights / BYTES_PER_CYCLE)
        return 1.1 * products + transforms
