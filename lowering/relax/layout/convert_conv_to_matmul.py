"""`convert-conv-to-matmul`: convolutions with one window become matrix products."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import dims_of, reshaped
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.inference import ONE
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ForwardConvolutionOp
from relax_dialect.ops.layouts import spatial_letters
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dims import constant
from tir_dialect.weights import WeightAttr, computed, tensor_attr


class ConvertConvToMatmulPass(Pass):
    """Rewrites convolutions whose window is the whole image as matrix products.

    Before:

    ```mlir
    %y = relax.nn.conv2d %x, %w                             // %x : [n, 64, 1, 1], %w : constant [32, 64, 1, 1]
    ```

    After:

    ```mlir
    %v = relax.constant "w.matrix" : !relax.tensor<[64, 32], f32>
    %0 = relax.reshape %x, %s                               // [n, 64]
    %1 = relax.matmul %0, %v                                // [n, 32]
    %y = relax.reshape %1, %t                               // [n, 32, 1, 1]
    ```

    Such are the two layers of a squeeze-and-excitation block, and classifiers on a pooled image. A convolution
    computes several positions of an image at once, and here there is one; the rows of the product are the batch.
    Converted are convolutions of one group without padding, in layouts whose channels and positions come in one order
    in data and kernel. Values are the same, but for the order of sums. Idempotent.
    """

    name = "convert-conv-to-matmul"
    requires = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ConvertConv()])


class ConvertConv(RewritePattern):
    """A convolution with one window is a product: `conv(x, w)  ->  reshape(matmul(reshape(x), w'))`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv1dOp | Conv2dOp | Conv3dOp, rewriter: PatternRewriter) -> None:
        data, kernel, result = dims_of(op.x), dims_of(op.w), dims_of(op.result)
        if data is None or kernel is None or result is None or not _has_one_window(op):
            return
        depth, filters = 1, 1
        for letter, dim in zip(op.layouts[1].text, kernel, strict=True):
            size = dim.constant_value
            if size is None:
                return
            depth, filters = (depth, size) if letter == "O" else (depth * size, filters)
        # The ops that give the kernel as a matrix with a column for each filter; constants are rearranged at once.
        owner, is_transposed = op.w.owner, op.layouts[1].text[0] == "O"
        elements = owner.sources if isinstance(owner, ConstantOp) else None
        if isinstance(owner, ConstantOp) and elements is not None:
            shape = (filters, depth) if is_transposed else (depth, filters)
            order = (1, 0) if is_transposed else (0, 1)
            made = computed(
                lambda array: array.reshape(shape).transpose(order).copy(), elements, (depth, filters), elements.dtype
            )
            weight = owner.value
            if isinstance(weight, WeightAttr):
                weights = [ConstantOp(tensor_attr(made, f"{weight.weight_name}.matrix"))]
            else:
                weights = [ConstantOp(tensor_attr(made))]
        elif not is_transposed:
            weights = reshaped(op.w, [constant(depth), constant(filters)])
        else:
            matrix = reshaped(op.w, [constant(filters), constant(depth)])
            weights = [*matrix, PermuteDimsOp(matrix[-1], [1, 0])]
        rows = reshaped(op.x, [data[0], constant(depth)])
        product = MatmulOp(rows[-1], weights[-1], op.out_dtype)
        whole = reshaped(product.result, list(result))
        if whole[-1].results[0].type == op.result.type:
            rewriter.replace(op, [*weights, *rows, product, *whole])


def _has_one_window(op: ForwardConvolutionOp) -> bool:
    """Whether the window is the image, and both have channels and positions in the same order, after the batch."""
    data, kernel, out = (layout.text for layout in op.layouts)
    spatial, windows = spatial_letters(op.RANK), op.windows
    letters = set(f"NC{spatial}")
    if op.groups.value.data != 1 or set(data) != letters or set(out) != letters:
        return False
    outer = kernel.find("O")
    same_order = data[0] == out[0] == "N" and data[1:] == kernel.replace("O", "").replace("I", "C")
    if not same_order or outer not in (0, op.RANK + 1) or any(windows.padding):
        return False
    lengths, sizes = (
        dict(zip(data, dims_of(op.x) or (), strict=True)),
        dict(zip(kernel, dims_of(op.w) or (), strict=True)),
    )
    return all(
        lengths[letter] is sizes[letter] and (step == 1 or sizes[letter] is ONE)
        for letter, step in zip(spatial, windows.dilation, strict=True)
    )
