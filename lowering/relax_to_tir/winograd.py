"""Winograd convolutions, 3 x 3 windows with stride 1, of whose results a tile of M x M is computed at once; and the
pass `use-winograd`, which makes them.

`Y = A' [(G g G') * (B' d B)] A` (Lavin and Gray, 2016), with `d` a patch of the data of (M + 2) x (M + 2) and `g`
the weights of one channel and one filter. The elementwise product and the sum over channels are (M + 2) ** 2 matrix
products. F(2 x 2) takes 16 multiplications for what takes 36, F(4 x 4) 36 for 144.

The transforms interpolate at 0, infinity, 1 and -1 in F(2 x 2), and at 0, infinity and plus and minus the square
roots of 1/2 and 2 in F(4 x 4): with these, unlike with whole numbers, coefficients are between 1/2 and 5/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.registry import Pass, pass_target
from lowering.relax.fusion.kernel_facts import ANNOTATION
from lowering.relax_to_tir.kernel import KernelDims
from lowering.relax_to_tir.windows import within
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.analysis.patterns import OpPattern
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.lazy_arrays import Elements, computed
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.weights import TensorAttr, WeightAttr, tensor_attr
from vm_dialect.tensors import aligned_bytes

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
    """What the kernel of a convolution depends on: data in blocks, weights, result, and the zeros around the data."""

    data: tuple[Dim, ...]
    weights: tuple[Dim, ...]
    result: tuple[Dim, ...]
    padding: tuple[int, ...]
    tile: int

    @property
    def points(self) -> int:
        """The side of a patch."""
        return self.tile + WINDOW - 1

    @property
    def tiles(self) -> tuple[Dim, Dim]:
        """How many tiles cover the result; the last ones reach beyond it."""
        rows, columns = (ceildiv(extent, constant(self.tile)) for extent in self.result[2:4])
        return rows, columns


def winograd_function(shapes: WinogradShapes, name: str) -> PrimFuncOp:
    """The PrimFunc, of data `[n, c, h, w, block]` and weights `[points ** 2, channels, filters]`."""
    x = te.placeholder(shapes.data, "f32", "X")
    w = te.placeholder(shapes.weights, "f32", "W")
    products = _products(shapes, _transformed(shapes, _patches(shapes, x)), w)
    whole = _tiles(shapes, products)
    result = te.compute(shapes.result, lambda *i: whole[i], name="result")
    return te.create_prim_func([x, w, result], name=name)


def _patches(shapes: WinogradShapes, x: te.Tensor) -> te.Tensor:
    """The data with zeros around it, as far as patches reach."""
    batch, blocks, *lengths, block = shapes.data
    top, left = shapes.padding[:2]
    extents = [count * shapes.tile + WINDOW - 1 for count in shapes.tiles]

    def element(n: te.Expr, c: te.Expr, i: te.Expr, j: te.Expr, lane: te.Expr) -> te.Expr:
        row, column = i - top, j - left
        inside = within([row, column], lengths)
        return te.if_then_else(inside, x[n, c, row, column, lane], te.const(0, "f32"))

    return te.compute([batch, blocks, *extents, block], element, name="padded")


def _transformed(shapes: WinogradShapes, padded: te.Tensor) -> te.Tensor:
    """`B' d B` of each patch."""
    (batch, blocks, _, _, block), (rows, columns), tile = shapes.data, shapes.tiles, shapes.tile
    size = block.constant_value or 1
    side = range(shapes.points)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        axes = _spatial((batch, "n"), (blocks, "c"), (rows, "i"), (columns, "j"), (block, "lane"))
        with b.block("transform", *axes) as (n, c, i, j, lane):
            patch = [[b.let(padded[n, c, i * tile + p, j * tile + q, lane]) for q in side] for p in side]
            for p, row in enumerate(_on_both_sides(b, _data_transform, patch)):
                for q, value in enumerate(row):
                    b.store(outs[0], (p * shapes.points + q, n, i, j, c * size + lane), value)

    kind = ([shapes.points**2, batch, rows, columns, shapes.weights[1]], "f32")
    return te.extern([kind], [padded], body, name="transformed")[0]


def _products(shapes: WinogradShapes, transformed: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A matrix product for each point."""
    c = te.reduce_axis(shapes.weights[1], "c")

    def element(point: te.Expr, n: te.Expr, i: te.Expr, j: te.Expr, k: te.Expr) -> te.Expr:
        return te.sum(transformed[point, n, i, j, c] * w[point, c, k], [c])

    return te.compute([*transformed.shape[:4], shapes.weights[2]], element, name="products")


def _tiles(shapes: WinogradShapes, products: te.Tensor) -> te.Tensor:
    """`A' m A` of each tile: results, and what the last tiles have beyond them."""
    (batch, blocks, _, _, block), (rows, columns), tile = shapes.result, shapes.tiles, shapes.tile
    size = block.constant_value or 1
    side = range(shapes.points)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        axes = _spatial((batch, "n"), (blocks, "c"), (rows, "i"), (columns, "j"), (block, "lane"))
        with b.block("inverse", *axes) as (n, c, i, j, lane):
            sums = [[b.let(products[p * shapes.points + q, n, i, j, c * size + lane]) for q in side] for p in side]
            for p, row in enumerate(_on_both_sides(b, _inverse_transform, sums)):
                for q, value in enumerate(row):
                    b.store(outs[0], (n, c, i * tile + p, j * tile + q, lane), value)

    kind = ([batch, blocks, rows * tile, columns * tile, block], "f32")
    return te.extern([kind], [products], body, name="tiles")[0]


@dataclass(frozen=True)
class UseWinogradPass(Pass):
    """Computes 3 x 3 convolutions by Winograd's algorithm where that is faster.

    That is for blocked channels, stride 1 and constant weights. A tile of results is computed at once, with weights
    that are transformed when the program is compiled.

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
    some two times those of the sum of products with F(2 x 2), and some five times with F(4 x 4). A cost model decides
    for each convolution by its sizes. Idempotent.
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
        return UseWinogradPass(self.tile or target.winograd_tile, f"host {size}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = pass_target(self.target)
        largest = self.tile or target.winograd_tile
        if largest > 1 and any(isinstance(inner, Conv2dOp) for inner in op.walk()):
            apply_patterns(op, [ComputeTiles(op, target, largest)])


@dataclass
class ComputeTiles(RewritePattern):
    """A convolution is a call of a kernel that computes tiles: `conv2d(x, w)  ->  call_tir @winograd_conv2d(x, w')`."""

    module: ModuleOp
    target: Target
    largest: int
    _made: dict[WinogradShapes, str] = field(default_factory=dict[WinogradShapes, str])
    _weights: dict[tuple[object, int], TensorAttr] = field(default_factory=dict[tuple[object, int], TensorAttr])

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv2dOp, rewriter: PatternRewriter) -> None:
        old = op.w.owner
        elements = old.sources if isinstance(old, ConstantOp) else None
        lanes = self.target.lanes(32)
        if not isinstance(old, ConstantOp) or elements is None or not _is_plain(op, lanes):
            return
        types = op.x.type, op.result.type
        data, result = (each.known_dims if isinstance(each, TensorType) else None for each in types)
        if data is None or result is None:
            return
        blocks, inner = elements.shape[:2]
        height, width = (result[at].constant_value or USUAL_SIDE for at in (2, 3))
        panel = lanes * self.target.usual_tile[0]
        sizes = ConvolutionSizes(inner * lanes, blocks * lanes, height, width, lanes, panel)
        tile = sizes.best_tile(self.largest)
        if tile is None:
            return
        weights = ConstantOp(self._transformed(old, elements, tile))
        shape = (constant((tile + WINDOW - 1) ** 2), constant(inner * lanes), constant(blocks * lanes))
        dims = KernelDims.of([data, result])
        shapes = WinogradShapes(dims.shape(data), shape, dims.shape(result), op.windows.padding, tile)
        call = CallTIROp(SymbolRefAttr(self._function(shapes)), [op.x, weights.result], [op.result.type])
        weights.result.name_hint = op.w.name_hint
        rewriter.replace(op, [weights, call])

    def _transformed(self, old: ConstantOp, elements: Elements, tile: int) -> TensorAttr:
        """The weights for a tile; a weight has that in its name, and is transformed once."""
        key = (old.value, tile)
        if key not in self._weights:
            outer, inner, _, _, members, filters = elements.shape
            plain = outer * filters, inner * members, WINDOW, WINDOW

            def transformed(array: np.ndarray) -> np.ndarray:
                return transformed_weights(array.transpose(0, 5, 1, 4, 2, 3).reshape(plain), tile)

            shape = (tile + WINDOW - 1) ** 2, plain[1], plain[0]
            made = computed(transformed, elements, shape, elements.dtype)
            name = f"{old.value.weight_name}.winograd{tile}" if isinstance(old.value, WeightAttr) else None
            self._weights[key] = tensor_attr(made) if name is None else tensor_attr(made, name)
        return self._weights[key]

    def _function(self, shapes: WinogradShapes) -> str:
        """The name of the PrimFunc for some shapes."""
        if shapes not in self._made:
            taken = {name for op in self.module.ops if (name := symbol_name(op)) is not None}
            name = self._made[shapes] = fresh_name("winograd_conv2d", taken)
            func = winograd_function(shapes, name)
            # Each result is computed with others of its tile, which the analysis of single stores does not see through.
            func.attributes[ANNOTATION] = StringAttr(OpPattern.OUT_ELEMENTWISE_FUSABLE.name.lower())
            Rewriter.insert_op(func, InsertPoint.at_start(self.module.body.block))
        return self._made[shapes]


def _is_plain(op: Conv2dOp, lanes: int) -> bool:
    """Whether a convolution has 3 x 3 windows side by side, of one group, on blocks of a vector."""
    windows, layouts = op.windows, [layout.text for layout in op.layouts]
    blocks, kernel = f"NCHW{lanes}c", f"OIHW{lanes}i{lanes}o"
    types = [*op.operand_types, *op.result_types]
    dims = op.w.type.known_dims if isinstance(op.w.type, TensorType) else None
    return (
        dims is not None
        and [dim.constant_value for dim in dims[2:4]] == [WINDOW, WINDOW]
        and layouts == [blocks, kernel, blocks]
        and op.groups.value.data == 1
        and set(windows.strides) == set(windows.dilation) == {1}
        and all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types)
    )


USUAL_SIDE = 32
"""The side of an image of unknown size."""
TRANSFORM_CYCLES = {2: (45, 60), 4: (140, 180)}
"""To transform a vector of data, and back with an epilogue, for each tile."""
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

    def best_tile(self, largest: int) -> int | None:
        """The tile that takes the least time, if that is clearly less than without one; `None` also if the weights are
        not packed, since a third of a panel or more would be empty.
        """
        times = {tile: self._time(tile) for tile in TILES if tile <= largest}
        best = min(times, key=lambda tile: times[tile])
        is_packed = 2 * self._padded_filters <= 3 * self.filters
        return best if is_packed and times[best] < LEAST_GAIN * self._direct else None

    @property
    def _padded_filters(self) -> int:
        return -(-self.filters // self.panel) * self.panel

    @property
    def _direct(self) -> float:
        return self.height * self.width * WINDOW**2 * self.channels * self.filters / self.lanes

    def _time(self, tile: int) -> float:
        tiles, points = -(-self.height // tile) * -(-self.width // tile), (tile + WINDOW - 1) ** 2
        there, back = TRANSFORM_CYCLES[tile]
        transforms = tiles * (self.channels * there + self.filters * back) / self.lanes
        weights = points * self.channels * self._padded_filters
        products = max(weights * tiles / self.lanes, 4 * weights / BYTES_PER_CYCLE)
        return 1.1 * products + transforms
