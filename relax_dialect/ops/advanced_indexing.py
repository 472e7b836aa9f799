"""Operators whose positions are tensors that broadcast, and writes into slices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.indexing import slice_length
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.base import Shape, known_dims
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike, product
from tir_dialect.ops.assembly_format import op_definition


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
