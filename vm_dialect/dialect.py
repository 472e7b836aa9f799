"""The vm dialect: calls and jumps over registers."""

from __future__ import annotations

from typing import cast

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Dialect, Operation

from vm_dialect.ops.calls import CallClosureOp, CallKernelOp, CallOp, CallPackedOp, MakeClosureOp
from vm_dialect.ops.checks import (
    AssertOp,
    CheckApartOp,
    CheckBoolOp,
    CheckFloatOp,
    CheckFuncOp,
    CheckIntOp,
    CheckShapeOp,
    CheckTensorOp,
    CheckTupleOp,
)
from vm_dialect.ops.memory import (
    AllocStorageOp,
    AllocTensorOp,
    KillOp,
    MakeShapeOp,
    NewTensorOp,
    ReadCondOp,
    ReadIntOp,
    ShapeDimOp,
    ShapeOfOp,
    TensorDimOp,
    ViewOp,
)
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp, ReturnOp
from vm_dialect.ops.values import (
    ConstantSymbolOp,
    ConstantTensorOp,
    ConstOp,
    DtypeOp,
    IntKindAttr,
    IntOp,
    MakeTupleOp,
    NullOp,
    StrOp,
    TupleGetOp,
)
from vm_dialect.types import ObjectType, ShapeType, StorageType, TensorType


class MaterializeConstant(ConstantMaterializationInterface):
    """Makes `vm.const` of folded numbers."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        """A `vm.const`, if `value` is a number of that type."""
        if isinstance(value, IntegerAttr | FloatAttr) and value.get_type() == type:
            return ConstOp(cast("IntegerAttr | FloatAttr", value))
        return None


VM = Dialect(
    "vm",
    [
        FuncOp,
        ReturnOp,
        GotoOp,
        IfOp,
        CallOp,
        CallKernelOp,
        CallPackedOp,
        MakeClosureOp,
        CallClosureOp,
        ConstOp,
        StrOp,
        DtypeOp,
        NullOp,
        ConstantSymbolOp,
        ConstantTensorOp,
        IntOp,
        CheckTensorOp,
        CheckShapeOp,
        CheckIntOp,
        CheckFloatOp,
        CheckBoolOp,
        CheckTupleOp,
        CheckFuncOp,
        CheckApartOp,
        AssertOp,
        TensorDimOp,
        ReadIntOp,
        ShapeDimOp,
        ShapeOfOp,
        MakeShapeOp,
        MakeTupleOp,
        TupleGetOp,
        AllocStorageOp,
        AllocTensorOp,
        NewTensorOp,
        ViewOp,
        ReadCondOp,
        KillOp,
    ],
    [TensorType, ShapeType, StorageType, ObjectType, IntKindAttr],
    [MaterializeConstant()],
)
