"""Calls of PrimFuncs and of packed functions, and explicit memory, as lowering makes it. Using a tensor after
`relax.kill` is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.call_tir import (
    CallDPSPackedOp,
    CallPackedOp,
    CallPurePackedOp,
    CallTIRInplaceOp,
    CallTIROp,
    DestinationPassing,
)
from relax_dialect.ops.callees import find_prim_func, given_symbols
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


@runs(CallTIROp, CallTIRInplaceOp)
def call_tir(frame: Frame, op: CallTIROp | CallTIRInplaceOp) -> None:
    """A call of a PrimFunc that writes its results."""
    func = find_prim_func(op, op.callee)
    if func is None:
        raise ValueError(f"'{op.name}' is in no module")
    targets = op.targets if isinstance(op, CallTIRInplaceOp) else [-1] * len(op.res)
    outputs = allocate(frame, op, targets)
    fresh = [output for output, target in zip(outputs, targets, strict=True) if target < 0]
    explicit = [evaluate(dim, frame.symbols) for dim in op.tir_dims]
    symbols = dict(zip(given_symbols(func, len(explicit)), explicit, strict=True))
    run_prim_func(func, [*frame.get_all(op.arguments), *fresh], symbols)
    set_results(frame, op.res, outputs)


def allocate(frame: Frame, op: DestinationPassing, targets: Sequence[int]) -> list[Array]:
    """The tensors for the results: arguments that are written in place, or new ones."""
    outputs: list[Array] = []
    for index, (result, target) in enumerate(zip(op.res, targets, strict=True)):
        info: TensorType = result.type
        if target >= 0:
            outputs.append(frame.get(op.arguments[target]))
        elif info.dtype is not None:
            outputs.append(np.zeros(_result_shape(frame, op, info, index), numpy_dtype(info.dtype)))
    return outputs


def _result_shape(frame: Frame, op: DestinationPassing, info: TensorType, index: int) -> tuple[int, ...]:
    if op.shapes:
        shape: Shape = frame.get(op.shapes[index])
        return tuple(shape)
    return tuple(evaluate(dim, frame.symbols) for dim in info.known_dims or ())


def set_results(frame: Frame, results: Sequence[SSAValue], values: Sequence[Array]) -> None:
    """The results of a call, which have to be of their types."""
    for result, value in zip(results, values, strict=True):
        frame.set_checked(result, value, "result of a call")


@runs(CallPackedOp, CallPurePackedOp)
def call_packed(frame: Frame, op: CallPackedOp | CallPurePackedOp) -> None:
    """A call of a packed function; what it gives has to be what the program says."""
    name = op.symbol.data
    result = frame.interpreter.packed_function(name)(*frame.get_all(op.arguments))
    if op.result is not None:
        frame.set_checked(op.result, result, f'result of the packed function "{name}"{where(op)}')


@runs(CallDPSPackedOp)
def call_dps_packed(frame: Frame, op: CallDPSPackedOp) -> None:
    """A call of a packed function that writes its results into new tensors."""
    outputs = allocate(frame, op, [-1] * len(op.res))
    frame.interpreter.packed_function(op.symbol.data)(*frame.get_all(op.arguments), *outputs)
    set_results(frame, op.res, outputs)
