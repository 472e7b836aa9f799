"""Sorting along an axis."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_result_def

from relax_dialect.inference import ZERO, Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class SortOp(Operator):
    """The elements in ascending order along an axis, or descending. Equal elements keep their order.

    ```mlir
    %0 = relax.sort %x axis = 0 descending
    ```

    C1: the axis is within the rank.
    """

    name = "relax.sort"

    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    descending = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axis: int = -1, *, descending: bool = False):
        super().__init__([x], {"axis": integer(axis), "descending": flag(descending)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.rank is not None:
            inference.axis(inference.integer("axis"), x.rank)  # C1
        return (x,)


@op_definition
class ArgsortOp(Operator):
    """The positions, along an axis, from which sorting takes the elements.

    ```mlir
    %0 = relax.argsort %x axis = 0 descending dtype = i64
    ```

    C1: the axis is within the rank.
    C2: the dtype is in the dtype table.
    """

    name = "relax.argsort"

    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    descending = opt_prop_def(UnitAttr)
    dtype = prop_def(Attribute, default_value=i64)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axis: int = -1, *, descending: bool = False, dtype: Attribute = i64):
        super().__init__([x], {"axis": integer(axis), "descending": flag(descending), "dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.rank is not None:
            inference.axis(inference.integer("axis"), x.rank)  # C1
        return (x.with_dtype(inference.dtype("dtype")),)  # C2


@op_definition
class TopkOp(Operator):
    """The `k` greatest elements along an axis, or least, in order, and their positions.

    ```mlir
    %values, %positions = relax.topk %x k = 5 axis = -1
    %values = relax.topk %x k = n ret_type = "values" smallest
    ```

    `ret_type` is `both`, `values` or `indices`.

    C1: the axis is within the rank.
    C2: `k` is not negative and at most the dimension.
    C3: the dtype of the positions is in the dtype table.
    C4: `ret_type` is one of the three.
    """

    name = "relax.topk"

    k = prop_def(DimAttr)
    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    ret_type = prop_def(StringAttr, default_value=StringAttr("both"))
    smallest = opt_prop_def(UnitAttr)
    dtype = prop_def(Attribute, default_value=i64)
    x = operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        k: DimLike,
        axis: int = -1,
        *,
        ret_type: str = "both",
        smallest: bool = False,
        dtype: Attribute = i64,
    ):
        properties = {
            "k": DimAttr(k),
            "axis": integer(axis),
            "ret_type": StringAttr(ret_type),
            "smallest": flag(smallest),
            "dtype": dtype,
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        x, k, kind = inference.tensor(0), inference.dim("k"), inference.string("ret_type")
        values = x
        if x.dims is not None:
            axis = inference.axis(inference.integer("axis"), len(x.dims))  # C1
            inference.require_at_most(k, x.dims[axis], "a k that is at most the dimension")  # C2
            values = x.with_shape([k if at == axis else dim for at, dim in enumerate(x.dims)])
        if inference.prover.less(k, ZERO):
            inference.fail(f"expected a k that is not negative, got {k}")  # C2
        inference.require_at_most(ZERO, k, "a k that is not negative")  # C2
        indices = values.with_dtype(inference.dtype("dtype"))  # C3
        if kind not in ("both", "values", "indices"):
            inference.fail(f"ret_type expected both, values or indices, got {kind}")  # C4
        return {"both": (values, indices), "values": (values,), "indices": (indices,)}[kind]
