"""Operators on tensors as sets: the result's size depends on the data."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def, var_result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant, product
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class UniqueOp(Operator):
    """The different elements of a tensor, flattened, or its different slices along an axis, in ascending order.

    With `unsorted` they are in the order of their first occurrences.

    ```mlir
    %0 = relax.unique %x
    %0 = relax.unique %x unsorted
    %1, %index, %inverse, %counts = relax.unique %x axis = 0 return_index return_inverse return_counts
    ```

    How many there are depends on the data, so that dimension is unknown. The optional results are, as `i64`, the
    position where each one first occurs, for each element or slice the position of its equal in the result, and how
    often each one occurs.

    C1: the axis is within the rank.
    """

    name = "relax.unique"

    axis = opt_prop_def(IntegerAttr[I64])
    unsorted = opt_prop_def(UnitAttr)
    return_index = opt_prop_def(UnitAttr)
    return_inverse = opt_prop_def(UnitAttr)
    return_counts = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        axis: int | None = None,
        *,
        sorted: bool = True,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
    ):
        properties = {
            "axis": None if axis is None else integer(axis),
            "unsorted": flag(not sorted),
            "return_index": flag(return_index),
            "return_inverse": flag(return_inverse),
            "return_counts": flag(return_counts),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        x, given = inference.tensor(0), inference.optional_integer("axis")
        axis = None if given is None or x.rank is None else inference.axis(given, x.rank)  # C1
        results = [x.with_shape((None,))]
        length = None if x.known_dims is None else product(x.known_dims)
        if given is not None:
            length = None if x.dims is None or axis is None else x.dims[axis]
            kept = None if x.dims is None else [None if at == axis else dim for at, dim in enumerate(x.dims)]
            results = [x.with_shape(kept)]
        extra = {"return_index": None, "return_inverse": length, "return_counts": None}
        results += [TensorType((dim,), i64, x.device) for name, dim in extra.items() if inference.flag(name)]
        return tuple(results)


@op_definition
class NonzeroOp(Operator):
    """The indices of the elements that are not zero, as an `i64` tensor with one row per dimension and one column each.

    ```mlir
    %0 = relax.nonzero %x
    ```
    """

    name = "relax.nonzero"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        return (TensorType((None if x.rank is None else constant(x.rank), None), i64, x.device),)
