"""Searching, sorting and counting: choice by a condition, the best index, order along an axis, and tensors as sets,
whose sizes depend on the data.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_result_def

from relax_dialect.inference import ZERO, Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.reduction import reduced_shape, require_elements
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike, constant, product
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


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
