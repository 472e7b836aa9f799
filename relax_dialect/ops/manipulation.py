"""Operators that move elements without computing: reshape, transpose, new and dropped dimensions; and the layers
that do only that.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relax_dialect.external import PATTERNS, may_be_view
from relax_dialect.inference import DEFAULT_PROVER, ONE, Inference
from relax_dialect.ops.fields import integer, integers, number, optional_integers
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import ShapeType, TensorType, known_dims
from relax_dialect.traits import AliasesOperand, Checked
from tir_dialect.dims import Dim, floordiv, product
from tir_dialect.ops.assembly_format import op_definition


class ViewOp(Operator, HasFolderInterface, HasCanonicalizationPatternsInterface, ABC):
    """Gives the elements of its first operand, in the same row-major order, another shape; the memory is the same."""

    def fold(self) -> tuple[SSAValue] | None:
        """To the shape that the tensor has: `reshape %x, [n]  ->  %x` of a `tensor<[n], f32>`."""
        return fold_to_same_type(self.operands[0], self.results[0])

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (MergeReshapes(),)


@op_definition
class ReshapeOp(ViewOp):
    """The elements in the same row-major order under another shape.

    ```mlir
    %0 = relax.reshape %x, %shape
    ```

    C1: both shapes have equally many elements.
    C2: no size is negative.
    """

    name = "relax.reshape"

    x = operand_def(TensorType)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    traits = traits_def(Checked(), AliasesOperand())

    def __init__(self, x: SSAValue | Operation, shape: SSAValue | Operation):
        super().__init__([x, shape])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, shape = inference.tensor(0), inference.sizes(1)  # C2
        old, new = x.known_dims, shape.known_dims
        if old is not None and new is not None:
            count, wanted = product(old), product(new)
            shapes = f"{_listed(old)} to {_listed(new)}"
            got = f"cannot reshape {shapes}: expected equally many elements, got {count} and {wanted}"
            inference.require_equal(count, wanted, f"reshape of {shapes} with equally many elements", got)  # C1
        return (x.with_shape(shape.dims),)


@op_definition
class FlattenOp(ViewOp):
    """The elements in row-major order as a tensor of rank 1.

    ```mlir
    %0 = relax.flatten %x
    ```
    """

    name = "relax.flatten"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Checked(), AliasesOperand())

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        return (x.with_shape((None if x.known_dims is None else product(x.known_dims),)),)


@op_definition
class PermuteDimsOp(Operator, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """The dimensions in another order: dimension `i` of the result is dimension `axes[i]`; without axes, reversed.

    ```mlir
    %0 = relax.permute_dims %x axes = [1, 0]
    ```

    C1: the axes are a permutation of the dimensions.
    """

    name = "relax.permute_dims"

    axes = opt_prop_def(DenseArrayBase.constr(i64))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axes: Sequence[int] | None = None):
        super().__init__([x], {"axes": optional_integers(axes)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, given = inference.tensor(0), inference.optional_integers("axes")
        rank = x.rank if given is None else len(given)
        if rank is None:
            return (x,)
        if x.rank not in (None, rank):
            inference.fail(f"expected {x.rank} axes, got {rank}")  # C1
        axes = inference.axes(range(rank - 1, -1, -1) if given is None else given, rank)
        return (x.with_shape((None,) * rank if x.dims is None else [x.dims[axis] for axis in axes]),)

    def fold(self) -> tuple[SSAValue] | None:
        """In the order that they have, unless somebody may write into the copy: `permute_dims %x [0, 1]  ->  %x`."""
        axes = permutation(self)
        same = axes == tuple(range(len(axes or ()))) and self.x.type == self.result.type
        return (self.x,) if same and may_be_view(self.result, self.x) else None

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return PATTERNS.of("relax.permute_dims")()


@op_definition
class ExpandDimsOp(ViewOp):
    """New dimensions of 1 at positions counted in the result.

    ```mlir
    %0 = relax.expand_dims %x axes = [0, -1]
    ```

    C1: the axes are within the result's rank, each once.
    """

    name = "relax.expand_dims"

    axes = prop_def(DenseArrayBase.constr(i64))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Checked(), AliasesOperand())

    def __init__(self, x: SSAValue | Operation, axes: Sequence[int]):
        super().__init__([x], {"axes": integers(axes)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, given = inference.tensor(0), inference.integers("axes")
        if x.dims is None:
            return (x,)
        rank = len(x.dims) + len(given)
        axes = inference.axes(given, rank)  # C1
        old = iter(x.dims)
        return (x.with_shape([ONE if index in axes else next(old) for index in range(rank)]),)


@op_definition
class SqueezeOp(ViewOp):
    """A tensor without dimensions that are 1: those given, or all of them.

    ```mlir
    %0 = relax.squeeze %x axes = [0]
    ```

    Without axes the rank of the result is known only if every dimension is.

    C1: the axes are within the rank, each once.
    C2: the dimensions that are left out are 1.
    """

    name = "relax.squeeze"

    axes = opt_prop_def(DenseArrayBase.constr(i64))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Checked(), AliasesOperand())

    def __init__(self, x: SSAValue | Operation, axes: Sequence[int] | None = None):
        super().__init__([x], {"axes": optional_integers(axes)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, given = inference.tensor(0), inference.optional_integers("axes")
        if x.dims is None:
            return (x,)
        if given is None:
            decided = all(dim is not None and DEFAULT_PROVER.equal(dim, ONE) is not None for dim in x.dims)
            return (x.with_shape([dim for dim in x.dims if dim is not ONE] if decided else None),)
        axes = inference.axes(given, len(x.dims))  # C1
        for axis in axes:
            inference.require_equal(x.dims[axis], ONE, f"dimension {axis} to be 1")  # C2
        return (x.with_shape([dim for index, dim in enumerate(x.dims) if index not in axes]),)


@op_definition
class BroadcastToOp(Operator):
    """A tensor repeated along dimensions that are 1, or new in front, so that it has a shape.

    ```mlir
    %0 = relax.broadcast_to %x, %shape
    ```

    C1: the rank does not shrink.
    C2: each dimension is 1 or the one of the shape.
    C3: no size is negative.
    """

    name = "relax.broadcast_to"

    x = operand_def(TensorType)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, shape: SSAValue | Operation):
        super().__init__([x, shape])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, target = inference.tensor(0), inference.sizes(1).dims  # C3
        if x.dims is not None and target is not None:
            if len(x.dims) > len(target):
                inference.fail(f"expected a shape of rank {len(x.dims)} or more, got rank {len(target)}")  # C1
            for old, new in zip(reversed(x.dims), reversed(target), strict=False):
                inference.require_expands(old, new)  # C2
        return (x.with_shape(target),)


@op_definition
class FlipOp(Operator):
    """The elements in reverse order along an axis.

    ```mlir
    %0 = relax.flip %x axis = 0
    ```

    C1: the axis is within the rank.
    """

    name = "relax.flip"

    axis = prop_def(IntegerAttr[I64])
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axis: int):
        super().__init__([x], {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.rank is not None:
            inference.axis(inference.integer("axis"), x.rank)  # C1
        return (x,)


def fold_to_same_type(value: SSAValue, result: OpResult) -> tuple[SSAValue] | None:
    """The operand if the op gives a tensor of known shape the type that it has."""
    info = value.type
    same = isinstance(info, TensorType) and info.known_dims is not None and info == result.type
    return (value,) if same else None


class MergeReshapes(RewritePattern):
    """The shape in between does not matter: `reshape(reshape(x, s), t)  ->  reshape(x, t)`; also of other views."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, rewriter: PatternRewriter) -> None:
        inner, info = op.operands[0].owner, op.results[0].type
        if not isinstance(inner, ViewOp) or not isinstance(info, TensorType):
            return
        if isinstance(op, ReshapeOp):
            new = [ReshapeOp(inner.operands[0], op.shape)]
        elif info.known_dims is not None:
            shape = ShapeOp(info.known_dims)
            new = [shape, ReshapeOp(inner.operands[0], shape)]
        else:
            return
        if new[-1].results[0].type == info:
            for made in new:
                made.location = op.location
            rewriter.replace(op, new)


def permutation(op: PermuteDimsOp) -> tuple[int, ...] | None:
    """The axes, counted from the front; `None` if they depend on a rank that is not known."""
    rank = op.result.type.rank
    if rank is None:
        return None
    if not isinstance(op.axes, DenseArrayBase):
        return tuple(reversed(range(rank)))
    return tuple([int(axis) % rank for axis in op.axes.get_values()])


def _listed(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


@op_definition
class DropoutOp(Operator):
    """The tensor itself: elements are only dropped when a model is trained.

    ```mlir
    %0 = relax.nn.dropout %x rate = 0.5
    ```

    C1: the dtype is a floating-point one.
    C2: the rate is at least 0 and below 1.
    """

    name = "relax.nn.dropout"

    rate = prop_def(FloatAttr[Float64Type], default_value=number(0.5))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, rate: float = 0.5):
        super().__init__([x], {"rate": number(rate)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(0, Domain.FLOAT)  # C1
        if not 0 <= inference.number("rate") < 1:
            inference.fail(f"expected a rate of at least 0 and below 1, got {inference.number('rate')}")  # C2
        return (inference.tensor(0),)


@op_definition
class BatchFlattenOp(Operator):
    """All dimensions but the first as one.

    ```mlir
    %0 = relax.nn.batch_flatten %x
    ```

    C1: the rank is at least 1.
    """

    name = "relax.nn.batch_flatten"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.dims is None:
            return (x.with_shape((None, None)),)
        if not x.dims:
            inference.fail(f"expected rank 1 or more, got {x}")  # C1
        rest = known_dims(x.dims[1:])
        return (x.with_shape((x.dims[0], None if rest is None else product(rest))),)


@op_definition
class PixelShuffleOp(Operator):
    """Channels laid out in space: from `[..., c * r * r, h, w]` to `[..., c, h * r, w * r]`.

    ```mlir
    %0 = relax.nn.pixel_shuffle %x upscale_factor = 2
    ```

    C1: the rank is at least 3.
    C2: the factor is at least 1.
    C3: the channels are a multiple of the factor's square.
    """

    name = "relax.nn.pixel_shuffle"

    upscale_factor = prop_def(IntegerAttr[I64])
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, upscale_factor: int):
        super().__init__([x], {"upscale_factor": integer(upscale_factor)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, factor = inference.tensor(0), inference.integer("upscale_factor")
        if factor < 1:
            inference.fail(f"expected a factor of at least 1, got {factor}")  # C2
        if x.dims is None:
            return (x,)
        if len(x.dims) < 3:
            inference.fail(f"expected rank 3 or more, got {x}")  # C1
        *outer, channels, height, width = x.dims
        inference.require_divisible(channels, factor * factor, f"channels in multiples of {factor * factor}")  # C3
        left = None if channels is None else floordiv(channels, factor * factor)
        return (x.with_shape((*outer, left, _times(height, factor), _times(width, factor))),)


def _times(dim: Dim | None, factor: int) -> Dim | None:
    return None if dim is None else factor * dim
