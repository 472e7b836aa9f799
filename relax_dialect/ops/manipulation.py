"""Operators that move elements without computing: reshape, transpose, join, split, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)

from relax_dialect.inference import DEFAULT_PROVER, ONE, Inference
from relax_dialect.ops.fields import dims, integer, integers, optional_integers
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.base import known_dims
from relax_dialect.struct_info.types import ShapeType, TensorType
from relax_dialect.traits import AliasesOperand, Checked
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim, DimLike, ceildiv, constant, product, total


@irdl_op_definition
class ReshapeOp(Operator):
    """The elements in the same row-major order under another shape.

    ```mlir
    %0 = relax.reshape %x, %shape
    ```

    C1: both shapes have equally many elements.
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
        x, shape = inference.tensor(0), inference.shape(1)
        old, new = x.known_dims, shape.known_dims
        if old is not None and new is not None:
            inference.require_equal(product(old), product(new), "equally many elements")  # C1
        return (x.with_shape(shape.dims),)


@irdl_op_definition
class FlattenOp(Operator):
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


@irdl_op_definition
class PermuteDimsOp(Operator):
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
        axes = inference.axes(range(rank - 1, -1, -1) if given is None else given, rank)
        if x.rank not in (None, rank):
            inference.fail(f"expected {x.rank} axes, got {rank}")  # C1
        return (x.with_shape((None,) * rank if x.dims is None else [x.dims[axis] for axis in axes]),)


@irdl_op_definition
class ConcatOp(Operator):
    """Tensors one after the other along an axis.

    ```mlir
    %0 = relax.concat %x, %y axis = 1
    ```

    C1: there is at least one operand.
    C2: dtypes and ranks are equal.
    C3: the axis is within the rank.
    C4: all other dimensions are equal.
    """

    name = "relax.concat"

    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, inputs: Sequence[SSAValue | Operation], axis: int = 0):
        super().__init__(inputs, {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        tensors = inference.tensors()
        if not tensors:
            inference.fail("expected at least one operand, got none")  # C1
        indices = range(len(tensors))
        dtype, rank = inference.common_dtype(indices), inference.require_same_rank(indices)  # C2
        device = inference.common_device()
        if rank is None:
            return (TensorType(None, dtype, device),)
        axis = inference.axis(inference.integer("axis"), rank)  # C3
        columns = zip(*((None,) * rank if tensor.dims is None else tensor.dims for tensor in tensors), strict=True)
        shape = [
            _sum(column) if index == axis else inference.common_dim(column, "equal dimensions besides the axis")  # C4
            for index, column in enumerate(columns)
        ]
        return (TensorType(shape, dtype, device),)


def _sum(column: Sequence[Dim | None]) -> Dim | None:
    known = known_dims(tuple(column))
    return None if known is None else total(known)


@irdl_op_definition
class SplitOp(Operator):
    """A tensor cut along an axis: into `sections` parts of equal size, the last one smaller if need be, or at
    `indices`.

    ```mlir
    %0, %1 = relax.split %x sections = 2 axis = 1
    %2, %3, %4 = relax.split %x indices = [n, 2 * n] axis = 0
    ```

    C1: either `sections` or `indices` is given.
    C2: the axis is within the rank.
    C3: there is at least one section.
    C4: the indices do not decrease and are within the dimension.
    """

    name = "relax.split"

    sections = opt_prop_def(IntegerAttr[I64])
    indices = opt_prop_def(ArrayAttr[DimAttr])
    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    x = operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        *,
        sections: int | None = None,
        indices: Sequence[DimLike] | None = None,
        axis: int = 0,
    ):
        properties = {
            "sections": None if sections is None else integer(sections),
            "indices": None if indices is None else dims(indices),
            "axis": integer(axis),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        x, sections = inference.tensor(0), inference.optional_integer("sections")
        indices = None if inference.get("indices", ArrayAttr) is None else inference.dims("indices")
        if (sections is None) == (indices is None):
            inference.fail("expected either sections or indices")  # C1
        if sections is not None and sections < 1:
            inference.fail(f"expected at least one section, got {sections}")  # C3
        count = sections if indices is None else len(indices) + 1
        if x.dims is None:
            return (x,) * (count or 1)
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C2
        length = x.dims[axis]
        parts = _equal_parts(length, sections or 1) if indices is None else _parts_at(inference, length, indices)
        return tuple(x.with_shape((*x.dims[:axis], part, *x.dims[axis + 1 :])) for part in parts)


def _equal_parts(length: Dim | None, sections: int) -> list[Dim | None]:
    if length is None:
        return [None] * sections
    part = ceildiv(length, sections)
    return [*[part] * (sections - 1), length - (sections - 1) * part]


def _parts_at(inference: Inference, length: Dim | None, indices: Sequence[Dim]) -> list[Dim | None]:
    edges = [constant(0), *indices, length]
    for left, right in pairwise(edges):
        inference.require_at_most(left, right, "indices that do not decrease and are within the dimension")  # C4
    return [None if left is None or right is None else right - left for left, right in pairwise(edges)]


@irdl_op_definition
class ExpandDimsOp(Operator):
    """New dimensions of 1 at places counted in the result.

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


@irdl_op_definition
class SqueezeOp(Operator):
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


@irdl_op_definition
class BroadcastToOp(Operator):
    """A tensor repeated along dimensions that are 1, or new in front, so that it has a shape.

    ```mlir
    %0 = relax.broadcast_to %x, %shape
    ```

    C1: the rank does not shrink.
    C2: each dimension is 1 or the one of the shape.
    """

    name = "relax.broadcast_to"

    x = operand_def(TensorType)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, shape: SSAValue | Operation):
        super().__init__([x, shape])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, target = inference.tensor(0), inference.shape(1).dims
        if x.dims is not None and target is not None:
            if len(x.dims) > len(target):
                inference.fail(f"expected a shape of rank {len(x.dims)} or more, got rank {len(target)}")  # C1
            for old, new in zip(reversed(x.dims), reversed(target), strict=False):
                inference.require_expands(old, new)  # C2
        return (x.with_shape(target),)


@irdl_op_definition
class StackOp(Operator):
    """Tensors of one shape along a new axis.

    ```mlir
    %0 = relax.stack %x, %y axis = 0
    ```

    C1: there is at least one operand.
    C2: dtypes and shapes are equal.
    C3: the axis is within the result's rank.
    """

    name = "relax.stack"

    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, inputs: Sequence[SSAValue | Operation], axis: int = 0):
        super().__init__(inputs, {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        tensors = inference.tensors()
        if not tensors:
            inference.fail("expected at least one operand, got none")  # C1
        indices = range(len(tensors))
        dtype, rank = inference.common_dtype(indices), inference.require_same_rank(indices)  # C2
        device = inference.common_device()
        if rank is None:
            return (TensorType(None, dtype, device),)
        axis = inference.axis(inference.integer("axis"), rank + 1)  # C3
        columns = zip(*((None,) * rank if tensor.dims is None else tensor.dims for tensor in tensors), strict=True)
        shape = [inference.common_dim(column, "equal shapes") for column in columns]  # C2
        shape.insert(axis, constant(len(tensors)))
        return (TensorType(shape, dtype, device),)


@irdl_op_definition
class RepeatOp(Operator):
    """Each element `repeats` times along an axis; without an axis, of the flattened tensor.

    ```mlir
    %0 = relax.repeat %x repeats = 2 axis = 1
    ```

    C1: the number of repeats is not negative.
    C2: the axis is within the rank.
    """

    name = "relax.repeat"

    repeats = prop_def(IntegerAttr[I64])
    axis = opt_prop_def(IntegerAttr[I64])
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, repeats: int, axis: int | None = None):
        super().__init__([x], {"repeats": integer(repeats), "axis": None if axis is None else integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, repeats = inference.tensor(0), inference.integer("repeats")
        if repeats < 0:
            inference.fail(f"expected a number of repeats that is not negative, got {repeats}")  # C1
        given = inference.optional_integer("axis")
        if given is None:
            return (x.with_shape((None if x.known_dims is None else repeats * product(x.known_dims),)),)
        if x.dims is None:
            return (x,)
        axis = inference.axis(given, len(x.dims))  # C2
        return (x.with_shape([_times(dim, repeats) if at == axis else dim for at, dim in enumerate(x.dims)]),)


def _times(dim: Dim | None, factor: int) -> Dim | None:
    return None if dim is None else factor * dim


@irdl_op_definition
class TileOp(Operator):
    """The tensor laid side by side, `repeats[i]` times along dimension `i`; both are padded with 1 in front.

    ```mlir
    %0 = relax.tile %x repeats = [2, 1]
    ```

    C1: no number of repeats is negative.
    """

    name = "relax.tile"

    repeats = prop_def(DenseArrayBase.constr(i64))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, repeats: Sequence[int]):
        super().__init__([x], {"repeats": integers(repeats)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, repeats = inference.tensor(0), inference.integers("repeats")
        if min(repeats, default=0) < 0:
            inference.fail(f"expected repeats that are not negative, got [{', '.join(map(str, repeats))}]")  # C1
        if x.dims is None:
            return (x,)
        rank = max(len(x.dims), len(repeats))
        factors = (1,) * (rank - len(repeats)) + repeats
        shape = (ONE,) * (rank - len(x.dims)) + x.dims
        return (x.with_shape([_times(dim, factor) for dim, factor in zip(shape, factors, strict=True)]),)


@irdl_op_definition
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
