"""Choice and search."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.reduction import reduced_shape, require_elements
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class WhereOp(Operator):
    """Elements of `x` where the condition is true, of `y` where it is false; all three broadcast.

    ```mlir
    %0 = relax.where %c, %x, %y
    ```

    C1: the condition is of `i1`.
    C2: the dtypes of `x` and `y` are equal.
    C3: the shapes broadcast.
    """

    name = "relax.where"

    condition = operand_def(TensorType)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, condition: SSAValue | Operation, x: SSAValue | Operation, y: SSAValue | Operation):
        super().__init__([condition, x, y])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        if inference.tensor(0).dtype not in (i1, None):
            inference.fail(f"operand #0 expected i1, got {inference.tensor(0).dtype}")  # C1
        dtype = inference.common_dtype((1, 2))  # C2
        return (TensorType(inference.broadcast_all(), dtype, inference.common_device()),)  # C3


class ArgReductionOp(Operator, ABC):
    """The position, as `i64`, of an element along an axis: `%0 = relax.argmax %x axis = 1 keepdims`.

    Of equal elements the first counts. Without an axis the position is counted in the flattened tensor.

    C1: the dtype is numeric.
    C2: the axis is within the rank.
    C3: there is at least one element, if the result has elements.
    """

    NUMPY_NAME: ClassVar[str]

    axis = opt_prop_def(IntegerAttr[I64])
    keepdims = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axis: int | None = None, *, keepdims: bool = False):
        super().__init__([x], {"axis": None if axis is None else integer(axis), "keepdims": flag(keepdims)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, axis = inference.tensor(0), inference.optional_integer("axis")
        inference.require_domain(0, Domain.NUMERIC)  # C1
        axes = None if axis is None else (axis,)
        shape = reduced_shape(inference, x.dims, axes, inference.flag("keepdims"))  # C2
        require_elements(inference, x.dims, axes)  # C3
        return (TensorType(shape, i64, x.device),)


@op_definition
class ArgmaxOp(ArgReductionOp):
    """The position of the greatest element."""

    name = "relax.argmax"
    NUMPY_NAME: ClassVar[str] = "argmax"


@op_definition
class ArgminOp(ArgReductionOp):
    """The position of the least element."""

    name = "relax.argmin"
    NUMPY_NAME: ClassVar[str] = "argmin"


@op_definition
class BucketizeOp(Operator):
    """For every element the number of the interval between ascending boundaries in which it lies.

    ```mlir
    %0 = relax.bucketize %x, %boundaries out_int32 right
    ```

    An interval includes its upper end, or with `right` its lower end. The result is `i64`, or `i32` with `out_int32`.

    C1: the boundaries have rank 1.
    C2: the dtypes are equal.
    """

    name = "relax.bucketize"

    out_int32 = opt_prop_def(UnitAttr)
    right = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    boundaries = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        boundaries: SSAValue | Operation,
        *,
        out_int32: bool = False,
        right: bool = False,
    ):
        super().__init__([x, boundaries], {"out_int32": flag(out_int32), "right": flag(right)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        if inference.tensor(1).rank not in (1, None):
            inference.fail(f"operand #1 expected rank 1, got {inference.tensor(1)}")  # C1
        inference.common_dtype((0, 1))  # C2
        return (inference.tensor(0).with_dtype(i32 if inference.flag("out_int32") else i64),)
