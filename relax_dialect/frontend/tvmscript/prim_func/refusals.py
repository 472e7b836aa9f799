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
    "tvm_global_barrier",
    "thread_return",
    "thread_filter",
    "tensormap_",
    "TensorMap",
    "scope_id",
    "warpgroup",
    "cluster",
    "cta",
    "dp4a",
    "alloc_cast_frag",
    "alloc_tcgen05",
    "SMEMPool",
    "TMEMPool",
    "smem",
    "tmem",
    "wg_reg_tile",
    "selector",
    "filter",
    "call_kernel",
    "call_ffi_kernel",
    "TileLayout",
    "ComposeLayout",
    "constexpr",
    "jit",
    "meta_class",
    "simdgroup",
    "make_filled_simdgroup",
    "tvm_thread_allreduce",
    "atomic_add",
    "print_buffer",
    "nd_mem_alloc_with_scope",
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
    "dma_",
)
_BUILDER = (
    "If",
    "Then",
    "Else",
    "While",
    "Reduce",
    "CommReducer",
    "comm_reducer",
    "Iter",
    "IterVar",
    "iter_var",
    "Range",
    "Layout",
    "Tuple",
    "index_map",
    "add_to_parent",
    "func_name",
    "func_ret",
    "arg",
)
_POINTERS = ("handle", "Ptr", "ptr", "buffer_var")

_REASONS: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        _GPU: "is for GPUs, which are not a target",
        _MACHINE: "names an instruction of one machine; use a function of T, or T.call_extern",
    }
)


_EXACT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_BUILDER, "builds programs from Python; a text writes the statement or expression itself"),
        **dict.fromkeys(_POINTERS, "would be memory that nothing owns; declare buffers over that of a parameter"),
    }
)


def reason_against(name: str) -> str | None:
    """Why `T.<name>` is not taken; `None` if nothing is known against it."""
    if (reason := _EXACT.get(name)) is not None:
        return reason
    return next((reason for prefixes, reason in _REASONS.items() if name.startswith(prefixes)), None)
