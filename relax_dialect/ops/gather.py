"""Operators that read and write elements at positions given by tensors, and writes into slices.

A negative index counts from the back. Where one is out of range, the nearest element is read, and nothing is written.
(TVM says nothing about such indices.) Importers check what their source language refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.indexing import slice_length
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import PrimType, Shape, TensorType, known_dims
from tir_dialect.dims import DimLike, product
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr

REDUCTIONS = ("update", "add", "mul", "max", "min")


def _require_reduction(inference: Inference) -> None:
    if inference.string("reduction") not in REDUCTIONS:
        inference.fail(f"reduction expected one of {', '.join(REDUCTIONS)}, got {inference.string('reduction')}")


@op_definition
class GatherElementsOp(Operator):
    """`result[i][j] = x[indices[i][j]][j]` for axis 0, and likewise for other axes and ranks.

    ```mlir
    %0 = relax.gather_elements %x, %indices axis = 0
    ```

    C1: the indices are integers.
    C2: the ranks are equal and the axis is within them.
    C3: along the other axes the indices are no larger than the tensor; where there is an index, the axis has a
    position.
    """

    name = "relax.gather_elements"

    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, indices: SSAValue | Operation, axis: int = 0):
        super().__init__([x, indices], {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(1, Domain.INTEGER)  # C1
        rank = inference.require_same_rank((0, 1))  # C2
        if rank is not None:
            # Leaves checks that the indices, operand 1, are no larger than operand 0 but along the axis, if there are
            # any.
            axis = inference.axis(inference.integer("axis"), rank)
            x, positions = inference.tensor(0), inference.tensor(1)
            known = known_dims(positions.dims)
            for at, (length, count) in enumerate(zip(x.dims or (), positions.dims or (), strict=False)):
                if at != axis:
                    inference.require_at_most(count, length, "indices within the tensor along the other axes")
                elif length is not None and known is not None:
                    needed = product(known)
                    inference.require_at_most(needed, needed * length, "an axis with elements to index")  # C2, C3
        return (inference.tensor(0).with_shape(inference.tensor(1).dims),)


@op_definition
class GatherNDOp(Operator):
    """Slices of a tensor at positions whose coordinates are the last dimension of the indices.

    ```mlir
    %0 = relax.gather_nd %x, %indices batch_dims = 1
    ```

    The first `batch_dims` dimensions belong to both and are not counted as coordinates.

    C1: the indices are integers.
    C2: `batch_dims` is within both ranks, the indices having one dimension more.
    C3: the number of coordinates is a constant and at most the rank without batch dimensions.
    C4: the batch dimensions are equal.
    C5: where there are coordinates, each of their dimensions has a position.
    """

    name = "relax.gather_nd"

    batch_dims = prop_def(IntegerAttr[I64], default_value=integer(0))
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, indices: SSAValue | Operation, batch_dims: int = 0):
        super().__init__([x, indices], {"batch_dims": integer(batch_dims)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, positions, batch = inference.tensor(0), inference.tensor(1), inference.integer("batch_dims")
        inference.require_domain(1, Domain.INTEGER)  # C1
        if x.dims is None or positions.dims is None:
            return (x.with_shape(None),)
        if not 0 <= batch <= min(len(x.dims), len(positions.dims) - 1):
            ranks = f"{len(x.dims)} and {len(positions.dims)}"
            inference.fail(f"expected batch_dims within the ranks {ranks}, got {batch}")  # C2
        last = positions.dims[-1]
        count = None if last is None else last.constant_value
        if count is None:
            return (x.with_shape(None),)
        if not 0 <= count <= len(x.dims) - batch:
            inference.fail(f"expected at most {len(x.dims) - batch} coordinates, got {count}")  # C3
        for pair in zip(x.dims[:batch], positions.dims[:batch], strict=True):
            inference.require_equal(*pair, "equal batch dimensions")  # C4
        known = known_dims(positions.dims[:-1])
        for dim in x.dims[batch : batch + count]:
            if known is not None and dim is not None:
                needed = product(known)
                inference.require_at_most(needed, needed * dim, "dimensions with elements to index")  # C5
        return (x.with_shape((*positions.dims[:-1], *x.dims[batch + count :])),)


@op_definition
class ScatterElementsOp(Operator):
    """`x` with `x[indices[i][j]][j]` replaced by, or combined with, `updates[i][j]` (axis 0; likewise for others).

    ```mlir
    %0 = relax.scatter_elements %x, %indices, %updates axis = 0 reduction = "add"
    ```

    C1: the indices are integers; `x` and the updates have one dtype.
    C2: the ranks are equal and the axis is within them.
    C3: indices and updates have equal shapes.
    C4: the reduction is one of `update`, `add`, `mul`, `max`, `min`.
    """

    name = "relax.scatter_elements"

    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    reduction = prop_def(StringAttr, default_value=StringAttr("update"))
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        axis: int = 0,
        reduction: str = "update",
    ):
        super().__init__([x, indices, updates], {"axis": integer(axis), "reduction": StringAttr(reduction)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(1, Domain.INTEGER)  # C1
        inference.common_dtype((0, 2))  # C1
        rank = inference.require_same_rank((0, 1, 2))  # C2
        if rank is not None:
            inference.axis(inference.integer("axis"), rank)  # C2
        for pair in zip(inference.tensor(1).dims or (), inference.tensor(2).dims or (), strict=False):
            inference.require_equal(*pair, "indices and updates of equal shapes")  # C3
        _require_reduction(inference)  # C4
        return (inference.tensor(0),)


@op_definition
class ScatterNDOp(Operator):
    """`x` with slices replaced by, or combined with, updates, at positions whose coordinates are the last dimension of
    the indices.

    ```mlir
    %0 = relax.scatter_nd %x, %indices, %updates reduction = "add"
    ```

    C1: the indices are integers; `x` and the updates have one dtype.
    C2: the number of coordinates is at most the rank of `x`.
    C3: the updates have the shape of the indices without coordinates, followed by that of a slice.
    C4: the reduction is one of `update`, `add`, `mul`, `max`, `min`.
    """

    name = "relax.scatter_nd"

    reduction = prop_def(StringAttr, default_value=StringAttr("update"))
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        reduction: str = "update",
    ):
        super().__init__([x, indices, updates], {"reduction": StringAttr(reduction)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, positions, updates = (inference.tensor(index) for index in range(3))
        inference.require_domain(1, Domain.INTEGER)  # C1
        inference.common_dtype((0, 2))  # C1
        _require_reduction(inference)  # C4
        last = positions.dims[-1] if positions.dims else None
        count = None if last is None else last.constant_value
        if x.dims is None or positions.dims is None or count is None:
            return (x,)
        if not 0 <= count <= len(x.dims):
            inference.fail(f"expected at most {len(x.dims)} coordinates, got {count}")  # C2
        expected = (*positions.dims[:-1], *x.dims[count:])
        if updates.dims is not None and len(updates.dims) != len(expected):
            inference.fail(f"updates expected rank {len(expected)}, got {len(updates.dims)}")  # C3
        for pair in zip(updates.dims or (), expected, strict=False):
            inference.require_equal(*pair, "updates with one slice per place")  # C3
        return (x,)


@op_definition
class OneHotOp(Operator):
    """`on` where the position along a new axis is the index, `off` elsewhere.

    ```mlir
    %0 = relax.one_hot %indices, %on, %off depth = 10 axis = -1
    ```

    C1: the indices are integers.
    C2: `on` and `off` are scalars of one dtype.
    C3: the axis is within the result's rank.
    C4: the depth is not negative.
    """

    name = "relax.one_hot"

    depth = prop_def(DimAttr)
    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    indices = operand_def(TensorType)
    on = operand_def(PrimType)
    off = operand_def(PrimType)
    result = result_def(TensorType)

    def __init__(
        self,
        indices: SSAValue | Operation,
        on: SSAValue | Operation,
        off: SSAValue | Operation,
        depth: DimLike,
        axis: int = -1,
    ):
        super().__init__([indices, on, off], {"depth": DimAttr(depth), "axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        positions, on, off = inference.tensor(0), inference.prim(1), inference.prim(2)
        inference.require_domain(0, Domain.INTEGER)  # C1
        if on.dtype != off.dtype:
            inference.fail(f"expected on and off of one dtype, got {on.dtype} and {off.dtype}")  # C2
        if positions.dims is None:
            return (TensorType(None, on.dtype, positions.device),)
        axis = inference.axis(inference.integer("axis"), len(positions.dims) + 1)  # C3
        shape = (*positions.dims[:axis], inference.size("depth"), *positions.dims[axis:])  # C4
        return (TensorType(shape, on.dtype, positions.device),)


def _broadcast_shape(inference: Inference, first: int) -> Shape:
    """The shape to which the index operands from `first` on broadcast; fails if there are too many or they are no
    integers.
    """
    count = len(inference.operand_types) - first
    rank = inference.tensor(0).rank
    if count < 1 or (rank is not None and count > rank):
        inference.fail(f"expected 1 to {'any number of' if rank is None else rank} index operands, got {count}")
    shape: Shape = ()
    for index in range(first, first + count):
        inference.require_domain(index, Domain.INTEGER)
        shape = inference.broadcast_shapes(shape, inference.tensor(index).dims)
    return shape


@op_definition
class IndexTensorOp(Operator):
    """The elements, or slices, at positions whose coordinates are index tensors, one per leading dimension.

    ```mlir
    %0 = relax.index_tensor %x, %rows, %columns
    ```

    The index tensors broadcast; their shape stands where the leading dimensions were, as for arrays in NumPy.

    C1: the indices are integers, at least one and at most the rank of them.
    C2: the indices broadcast.
    C3: where there are indices, each of their dimensions has a position.
    """

    name = "relax.index_tensor"

    x = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, indices: Sequence[SSAValue | Operation]):
        super().__init__([x, *indices])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, positions = inference.tensor(0), _broadcast_shape(inference, 1)  # C1, C2
        if x.dims is None or positions is None:
            return (x.with_shape(None),)
        count, known = len(inference.operand_types) - 1, known_dims(positions)
        for dim in x.dims[:count]:
            if known is not None and dim is not None:
                needed = product(known)
                inference.require_at_most(needed, needed * dim, "dimensions with elements to index")  # C3
        return (x.with_shape((*positions, *x.dims[count:])),)


@op_definition
class IndexPutOp(Operator):
    """`x` with values written to, or with `accumulate` added at, the positions that index tensors name.

    ```mlir
    %0 = relax.index_put %x, %values, %rows, %columns accumulate
    ```

    C1: the indices are integers, at least one and at most the rank of them.
    C2: the indices broadcast.
    C3: `x` and the values have one dtype.
    C4: the values broadcast to one slice per position.
    """

    name = "relax.index_put"

    accumulate = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    values = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        values: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        *,
        accumulate: bool = False,
    ):
        super().__init__([x, values, *indices], {"accumulate": flag(accumulate)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, values = inference.tensor(0), inference.tensor(1)
        positions = _broadcast_shape(inference, 2)  # C1, C2
        inference.common_dtype((0, 1))  # C3
        if x.dims is not None and values.dims is not None and positions is not None:
            slices = (*positions, *x.dims[len(inference.operand_types) - 2 :])
            if len(values.dims) > len(slices):
                inference.fail(f"operand #1 expected rank {len(slices)} or less, got {values}")  # C4
            for old, new in zip(reversed(values.dims), reversed(slices), strict=False):
                inference.require_expands(old, new)  # C4
        return (x,)


@op_definition
class SliceScatterOp(Operator):
    """`x` with the slice `start`, `start + step`, ... before `end` along an axis replaced.

    ```mlir
    %0 = relax.slice_scatter %x, %source start = 0 end = n step = 2 axis = 1
    ```

    Negative positions count from the back, and both are clipped to the dimension.

    C1: dtypes and ranks are equal.
    C2: the axis is within the rank.
    C3: the step is at least 1.
    C4: the source has the shape of the slice.
    """

    name = "relax.slice_scatter"

    start = prop_def(DimAttr)
    end = prop_def(DimAttr)
    step = prop_def(IntegerAttr[I64], default_value=integer(1))
    axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    x = operand_def(TensorType)
    source = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        source: SSAValue | Operation,
        start: DimLike,
        end: DimLike,
        step: int = 1,
        axis: int = 0,
    ):
        properties = {"start": DimAttr(start), "end": DimAttr(end), "step": integer(step), "axis": integer(axis)}
        super().__init__([x, source], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, source, step = inference.tensor(0), inference.tensor(1), inference.integer("step")
        inference.common_dtype((0, 1))  # C1
        rank = inference.require_same_rank((0, 1))  # C1
        if step < 1:
            inference.fail(f"expected a step of at least 1, got {step}")  # C3
        if rank is None or x.dims is None:
            return (x,)
        axis = inference.axis(inference.integer("axis"), rank)  # C2
        expected = list(x.dims)
        expected[axis] = slice_length(x.dims[axis], inference.dim("start"), inference.dim("end"), step)
        for pair in zip(source.dims or (), expected, strict=False):
            inference.require_equal(*pair, "a source of the slice's shape")  # C4
        return (x,)
