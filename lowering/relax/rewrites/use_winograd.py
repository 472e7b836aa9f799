"""`use-winograd`: 3 x 3 convolutions with fewer multiplications."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.registry import Pass, pass_target
from lowering.relax.fusion.kernel_facts import ANNOTATION
from lowering.relax_to_tir.kernel import KernelDims
from lowering.relax_to_tir.winograd import TILES, WINDOW, WinogradShapes, transformed_weights, winograd_function
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TensorType
from tir_dialect.analysis.patterns import OpPattern
from tir_dialect.dims import constant
from tir_dialect.lazy_arrays import Elements, computed
from tir_dialect.target import Target
from tir_dialect.weights import TensorAttr, WeightAttr, tensor_attr


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
