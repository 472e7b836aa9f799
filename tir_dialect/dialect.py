"""The tir dialect: loops, blocks and buffers."""

from __future__ import annotations

from typing import cast

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Dialect, Operation

from tir_dialect.ops.arithmetic import AssertOp, ConvertOp, DimOp, FmodOp, GreaterOp, RampOp, ScaledExpOp
from tir_dialect.ops.blocks import BlockOp, FlattenOp, InitOp, MatchBufferOp, ReadsOp, ViewOp, WritesOp
from tir_dialect.ops.calls import CallBoxedOp, CallExternOp, CallOp, CallPackedOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, MisalignmentOp, PrefetchOp, TextAddressOp
from tir_dialect.ops.tile_registers import (
    ConfigureTilesOp,
    DotTilesOp,
    LoadTileOp,
    ReleaseTilesOp,
    StoreTileOp,
    ZeroTileOp,
)
from tir_dialect.ops.vectors import CompareOp, DotOp, FirstLaneOp, LookupOp, SelectOp
from tir_dialect.types import BufferType, DimAttr, IteratorKindAttr, LoopKindAttr, SymbolAttr
from tir_dialect.weights import WeightAttr


class _MaterializeConstant(ConstantMaterializationInterface):
    """Makes `arith.constant` of folded numbers."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        if isinstance(value, IntegerAttr | FloatAttr) and value.get_type() == type:
            return ConstantOp(cast("IntegerAttr | FloatAttr", value))
        return None


TIR = Dialect(
    "tir",
    [
        PrimFuncOp,
        ForOp,
        WhileOp,
        ConditionOp,
        IfOp,
        YieldOp,
        BlockOp,
        InitOp,
        ReadsOp,
        WritesOp,
        LoadOp,
        StoreOp,
        AllocBufferOp,
        MatchBufferOp,
        FlattenOp,
        ViewOp,
        PrefetchOp,
        MisalignmentOp,
        DimOp,
        RampOp,
        CompareOp,
        SelectOp,
        FirstLaneOp,
        ConvertOp,
        DotOp,
        LookupOp,
        ConfigureTilesOp,
        ReleaseTilesOp,
        ZeroTileOp,
        LoadTileOp,
        StoreTileOp,
        DotTilesOp,
        GreaterOp,
        ScaledExpOp,
        FmodOp,
        AssertOp,
        CallOp,
        CallExternOp,
        CallPackedOp,
        CallBoxedOp,
        MemoryAtOp,
        AddressOfOp,
        TextAddressOp,
    ],
    [BufferType, DimAttr, SymbolAttr, LoopKindAttr, IteratorKindAttr, WeightAttr],
    [_MaterializeConstant()],
)
