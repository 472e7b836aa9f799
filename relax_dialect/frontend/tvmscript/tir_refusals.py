"""Why some names of `T` are not taken."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_GPU = (
    "ptx_",
    "ptx.",
    "tvm_load_matrix_sync",
    "tvm_mma_sync",
    "tvm_bmma_sync",
    "tvm_fill_fragment",
    "tvm_store_matrix_sync",
    "tvm_kernel_replace_point",
    "mma_",
    "cp_async",
    "create_barriers",
    "tvm_storage_sync",
    "tvm_warp_",
    "simdgroup",
    "make_filled_simdgroup",
    "launch_thread",
    "env_thread",
    "thread_binding",
    "tvm_thread_allreduce",
    "tvm_thread_invariant",
    "texture2d",
    "cuda",
    "metal",
    "webgpu",
    "nvshmem",
    "nki",
    "cooperative_tensor",
    "tcgen05",
    "wgmma",
    "mbarrier",
    "device_entry",
    "kernel_id",
    "cluster_id",
    "cta_id",
    "warpgroup_id",
    "warp_id",
    "lane_id",
    "thread_id",
    "tile.",
)
_MACHINE = (
    "call_llvm",
    "call_intrin",
    "call_spirv",
    "llvm_lookup",
    "vscale",
    "dma_copy",
    "start_profile",
    "end_profile",
)
_LOWERED = (
    "isnullptr",
    "anylist_",
    "tvm_struct_",
    "tvm_stack_alloca",
    "tvm_throw",
    "tvm_call_cpacked",
    "tvm_call_packed_lowered",
    "tvm_call_trace_packed",
    "tvm_context_id",
)

_REASONS: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        _GPU: "is for GPUs, which are not a target",
        _MACHINE: "names an instruction of one machine; use a function of T, or T.call_extern",
        _LOWERED: "belongs to TVM's calling convention, which a text does not write out; use T.call_packed",
    }
)


def reason_against(name: str) -> str | None:
    """Why `T.<name>` is not taken; `None` if nothing is known against it."""
    return next((reason for prefixes, reason in _REASONS.items() if name.startswith(prefixes)), None)
