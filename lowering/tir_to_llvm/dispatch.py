"""The dispatch table of `convert-tir-to-llvm`: op class to lowering."""

from __future__ import annotations

from xdsl.dialects.vector import BroadcastOp, CreateMaskOp, ShuffleOp

from lowering.tir_to_llvm.calls.boxed_calls import lower_call_boxed
from lowering.tir_to_llvm.calls.calls import lower_call, lower_call_extern
from lowering.tir_to_llvm.calls.packed_calls import lower_call_packed
from lowering.tir_to_llvm.emitter import Lowerings
from lowering.tir_to_llvm.loops.control_flow import lower_for, lower_if, lower_terminator, lower_while
from lowering.tir_to_llvm.loops.scalar_ops import (
    SCALAR_LOWERINGS,
    lower_assert,
    lower_broadcast,
    lower_create_mask,
    lower_dim,
    lower_first_lane,
    lower_ramp,
    lower_scalar_op,
    lower_shuffle,
)
from lowering.tir_to_llvm.memory.accesses import (
    lower_flatten,
    lower_load,
    lower_match_buffer,
    lower_prefetch,
    lower_store,
    lower_view,
)
from lowering.tir_to_llvm.memory.allocation import lower_alloc
from lowering.tir_to_llvm.memory.raw_memory import lower_address_of, lower_memory_at, lower_misalignment, lower_text
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.calls import CallExternOp, CallOp, CallPackedOp
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.misalignment import MisalignmentOp
from tir_dialect.ops.prefetch import PrefetchOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.ops.scalars import AssertOp, DimOp, RampOp
from tir_dialect.ops.vectors import FirstLaneOp
from tir_dialect.ops.view import ViewOp

LOWERINGS: Lowerings = {
    **dict.fromkeys(SCALAR_LOWERINGS, lower_scalar_op),
    AddressOfOp: lower_address_of,
    AllocBufferOp: lower_alloc,
    AssertOp: lower_assert,
    BroadcastOp: lower_broadcast,
    CallBoxedOp: lower_call_boxed,
    CallExternOp: lower_call_extern,
    CallOp: lower_call,
    CallPackedOp: lower_call_packed,
    ConditionOp: lower_terminator,
    CreateMaskOp: lower_create_mask,
    DimOp: lower_dim,
    FirstLaneOp: lower_first_lane,
    FlattenOp: lower_flatten,
    ForOp: lower_for,
    IfOp: lower_if,
    LoadOp: lower_load,
    MatchBufferOp: lower_match_buffer,
    MemoryAtOp: lower_memory_at,
    MisalignmentOp: lower_misalignment,
    PrefetchOp: lower_prefetch,
    RampOp: lower_ramp,
    ShuffleOp: lower_shuffle,
    StoreOp: lower_store,
    TextAddressOp: lower_text,
    ViewOp: lower_view,
    WhileOp: lower_while,
    YieldOp: lower_terminator,
}
"""Every op that may stand in a prim_func once blocks are lowered."""
