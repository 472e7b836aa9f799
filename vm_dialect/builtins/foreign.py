"""The builtins for programs of files for which nobody vouches: they reach nothing outside, and see no old memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.memory import alloc_storage, new_tensor_
from vm_dialect.builtins.table import Builtin
from vm_dialect.errors import UntrustedError
from vm_dialect.tensors import aligned_zeros


def foreign_builtin(
    builtin: Builtin, packed_function: Callable[[str], Callable[..., Any] | None], is_allowed: bool
) -> Callable[..., Any]:
    """What stands for a builtin; `packed_function` finds what the program may call, and `is_allowed` says whether the
    host has named the builtin. `UntrustedError` for one that the program may not call.
    """
    if builtin.name == "run_deferred" and not is_allowed:  # the text that it compiles may say anything
        raise UntrustedError(messages.not_allowed("vm.builtin.run_deferred"))
    if builtin.name == "get_packed_func":
        return partial(_packed, packed_function)
    return _ZEROED.get(builtin.name, builtin.function)


def _packed(packed_function: Callable[[str], Callable[..., Any] | None], name: str) -> tvm_ffi.Function:
    function = packed_function(name)
    if function is None:
        raise ValueError(messages.unknown_packed(name))
    return tvm_ffi.convert(function)


def _zeroed_storage(size: int) -> tvm_ffi.Tensor:
    return alloc_storage(size, aligned_zeros)


def _zeroed_tensor(dtype: str, *dims: int) -> tvm_ffi.Tensor:
    return new_tensor_(dtype, *dims, memory=aligned_zeros)


def _zeroed_tensor_of_shape(dtype: str, shape: Sequence[int]) -> tvm_ffi.Tensor:
    return new_tensor_(dtype, *shape, memory=aligned_zeros)


_ZEROED: dict[str, Callable[..., Any]] = {
    "alloc_storage": _zeroed_storage,
    "new_tensor": _zeroed_tensor,
    "new_tensor_of_shape": _zeroed_tensor_of_shape,
}
