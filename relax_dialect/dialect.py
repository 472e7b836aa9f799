"""The `Relax` dialect object."""

from __future__ import annotations

from xdsl.ir import Attribute, Dialect, Operation

from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_packed import CallDPSPackedOp, CallPackedOp, CallPurePackedOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.guard import GuardOp, RelationAttr
from relax_dialect.ops.memory import (
    AllocStorageOp,
    AllocTensorOp,
    CallKernelOp,
    CheckArgsOp,
    KillOp,
    StorageTensorOp,
)
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.struct_info.base import PartialShapeAttr
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType

_OPS: list[type[Operation]] = [
    AllocStorageOp,
    AllocTensorOp,
    CallKernelOp,
    CheckArgsOp,
    GuardOp,
    KillOp,
    StorageTensorOp,
    CallClosureOp,
    CallDPSPackedOp,
    CallOp,
    CallPackedOp,
    CallPurePackedOp,
    CallTIRInplaceOp,
    CallTIROp,
    ClosureOp,
    DataflowOp,
    ExternFuncOp,
    FuncOp,
    MakeClosureOp,
    MatchCastOp,
    OutputOp,
    ReturnOp,
]
_ATTRIBUTES: list[type[Attribute]] = [
    FuncType,
    ObjectType,
    PartialShapeAttr,
    RelationAttr,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
]

Relax = Dialect("relax", _OPS, _ATTRIBUTES)
