"""Operators that join, cut and repeat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from relax_dialect.inference import DEFAULT_PROVER, ONE, Inference
from relax_dialect.ops.fields import dims, integer, integers
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType, known_dims
from tir_dialect.dims import Dim, DimLike, ceildiv, constant, maximum, minimum, product, total
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


@op_definition
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


@op_definition
class SplitOp(Operator):
    """A tensor cut along an axis: into `sections` parts of equal size, the last one smaller if need be, or at
    `indices`.

    ```mlir
    %0, %1 = relax.split %x sections = 2 axis = 1
    %2, %3, %4 = relax.split %x indices = [n, 2 * n] axis = 0
    ```

    C1: either `sections` or `indices` is given.
    C2: the axis is within the rank.
    C3: there are 1 to 65536 sections, each of which is a result.
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
        if sections is not None and sections > _MOST_SECTIONS:
            inference.fail(f"expected at most {_MOST_SECTIONS} sections, got {sections}")  # C3
        count = sections if indices is None else len(indices) + 1
        if x.dims is None:
            return (x,) * (count or 1)
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C2
        length = x.dims[axis]
        parts = _equal_parts(length, sections or 1) if indices is None else _parts_at(inference, length, indices)
        return tuple(x.with_shape((*x.dims[:axis], part, *x.dims[axis + 1 :])) for part in parts)


_MOST_SECTIONS = 1 << 16


def _equal_parts(length: Dim | None, sections: int) -> list[Dim | None]:
    if length is None:
        return [None] * sections
    part = ceildiv(length, sections)
    if DEFAULT_PROVER.divisible(length, sections):
        return [part] * sections
    left = (maximum(0, minimum(part, length - index * part)) for index in range(sections))
    return [DEFAULT_PROVER.simplify(size) for size in left]


def _parts_at(inference: Inference, length: Dim | None, indices: Sequence[Dim]) -> list[Dim | None]:
    edges = [constant(0), *indices, length]
    for left, right in pairwise(edges):
        inference.require_at_most(left, right, "indices that do not decrease and are within the dimension")  # C4
    return [None if left is None or right is None else right - left for left, right in pairwise(edges)]


@op_definition
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


@op_definition
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


@op_definition
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
