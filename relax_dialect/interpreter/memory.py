"""Explicit memory, as lowering makes it. Using a tensor after `relax.kill` is an error."""

from __future__ import annotations

from math import prod

import numpy as np

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, CheckApartOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import run_prim_func

POISON = 0xA5
"""What fresh memory is filled with, so that reading it before it was written does not go unnoticed."""


@runs(AllocTensorOp)
def alloc_tensor(frame: Frame, op: AllocTensorOp) -> None:
    """A tensor of its own."""
    shape: Shape | None = None if op.shape is None else frame.get(op.shape)
    dims = _shape(frame, op.result.type) if shape is None else tuple(shape)
    size = int(np.prod(dims, dtype=np.int64)) * _dtype(op.result.type).itemsize
    memory = np.full(size, POISON, np.uint8)
    frame.set_checked(op.result, memory.view(_dtype(op.result.type)).reshape(dims), "allocated tensor")


@runs(AllocStorageOp)
def alloc_storage(frame: Frame, op: AllocStorageOp) -> None:
    """Bytes; `ValueError` for fewer than none, `MemoryError` for too many."""
    size = op.size.data.evaluate(frame.symbols)
    if size < 0:
        raise ValueError(f"cannot allocate {size} bytes")
    frame.set(op.result, np.full(size, POISON, np.uint8))


@runs(StorageTensorOp)
def storage_tensor(frame: Frame, op: StorageTensorOp) -> None:
    """A tensor on bytes of a storage; `ValueError` if it does not fit or is not aligned."""
    storage: Array = frame.get(op.storage)
    dtype, dims = _dtype(op.result.type), _shape(frame, op.result.type)
    start, size = evaluate(op.offset.data, frame.symbols), prod(dims) * dtype.itemsize
    if not 0 <= start <= storage.size - size:
        position = f"at offset {start} does not fit into a storage of {storage.size} bytes"
        raise ValueError(f"a tensor of {size} bytes {position}")
    if rest := start % dtype.itemsize:
        wanted = f"expected memory aligned to {dtype.itemsize} bytes"
        raise ValueError(f"alloc_tensor: {wanted}, got remainder {rest}: pass an aligned copy")
    frame.set(op.result, storage[start : start + size].view(dtype).reshape(dims))


def _dtype(info: TensorType) -> np.dtype[np.generic]:
    if info.dtype is None:
        raise ValueError(f"expected a known dtype to allocate memory, got {info}")
    return numpy_dtype(info.dtype)


def _shape(frame: Frame, info: TensorType) -> tuple[int, ...]:
    return tuple(evaluate(dim, frame.symbols) for dim in info.known_dims or ())


@runs(CallKernelOp)
def call_kernel(frame: Frame, op: CallKernelOp) -> None:
    """A call of a PrimFunc that writes into its last arguments."""
    func = find_prim_func(op, op.callee)
    if func is None:
        raise ValueError(f"'{op.name}' is in no module")
    sizes = [evaluate(size.data, frame.symbols) for size in op.sizes]
    run_prim_func(func, frame.get_all(op.arguments), dict(zip(func.symbol_names, sizes, strict=True)))


@runs(CheckApartOp)
def check_apart(frame: Frame, op: CheckApartOp) -> None:
    """`ValueError` if two tensors have bytes in common."""
    first: Array = frame.get(op.first)
    second: Array = frame.get(op.second)
    if np.may_share_memory(first, second):
        raise ValueError(op.message.data)


@runs(KillOp)
def kill(frame: Frame, op: KillOp) -> None:
    """Forgets the value."""
    frame.values.pop(op.value)
