"""Constants, scalars, opaque values, shape values and tuples; calls of PrimFuncs and of packed functions, and explicit
memory, as lowering makes it. Using a tensor after `relax.kill` is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.interpreter.operators import computes
from relax_dialect.interpreter.runtime_values import Array, DType, Shape
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
from relax_dialect.ops.shapes import (
    ShapeGetOp,
    ShapeOfOp,
    ShapeOp,
    ShapeToTensorOp,
    SizeOp,
    TensorToShapeOp,
    TupleGetOp,
    TupleOp,
)
from relax_dialect.ops.values import ConstantOp, DTypeOp, NullOp, PrimOp, StringOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import dtype_name, is_bool, is_float, numpy_dtype
from tir_dialect.interpreter import run_prim_func
from tir_dialect.types import DimAttr


@runs(ConstantOp)
def constant(frame: Frame, op: ConstantOp) -> None:
    """A tensor; one of which only the name is known has to be given to the interpreter."""
    if (array := op.array) is not None:
        frame.set(op.result, array.copy())
        return
    name = op.weight_name or ""
    weight = frame.interpreter.weight(name)
    frame.check(weight, op.result.type, f"constant {name}")
    frame.set(op.result, weight)


@runs(PrimOp)
def prim(frame: Frame, op: PrimOp) -> None:
    """A scalar."""
    if isinstance(op.value, DimAttr):
        frame.set(op.result, evaluate(op.value.data, frame.symbols))
        return
    number = op.value.value.data
    if isa(op.value, IntegerAttr) and is_bool(op.value.type):
        number = bool(number)
    frame.set(op.result, float(number) if is_float(op.value.type) else number)


@runs(StringOp)
def string(frame: Frame, op: StringOp) -> None:
    """A string."""
    frame.set(op.result, op.value.data)


@runs(DTypeOp)
def dtype(frame: Frame, op: DTypeOp) -> None:
    """An element type."""
    frame.set(op.result, DType(dtype_name(op.value)))


@runs(NullOp)
def null(frame: Frame, op: NullOp) -> None:
    """Null."""
    frame.set(op.result, None)


@runs(ShapeOp)
def shape(frame: Frame, op: ShapeOp) -> None:
    """A shape of dimensions."""
    frame.set(op.result, Shape(evaluate(dim.data, frame.symbols) for dim in op.values))


@runs(TupleOp)
def make_tuple(frame: Frame, op: TupleOp) -> None:
    """A tuple."""
    frame.set(op.result, tuple(frame.get_all(op.fields)))


@runs(TupleGetOp)
def tuple_get(frame: Frame, op: TupleGetOp) -> None:
    """A field."""
    frame.set(op.result, frame.get(op.tuple)[op.index.value.data])


@computes(ShapeOfOp)
def shape_of(op: ShapeOfOp, x: np.ndarray[Any, Any]) -> Shape:
    """The shape of a tensor."""
    return Shape(x.shape)


@computes(ShapeGetOp)
def shape_get(op: ShapeGetOp, value: Shape) -> int:
    """One dimension; `ValueError` past the rank."""
    index = op.index.value.data
    if index >= len(value):
        raise ValueError(f"'relax.shape_get' expected an index below {len(value)}, got {index}")
    return value[index]


@computes(SizeOp)
def size(op: SizeOp, x: np.ndarray[Any, Any]) -> int:
    """The number of elements."""
    return int(x.size)


@computes(ShapeToTensorOp)
def shape_to_tensor(op: ShapeToTensorOp, value: Shape) -> np.ndarray[Any, Any]:
    """The dimensions as a tensor."""
    return np.array(value, np.int64)


@computes(TensorToShapeOp)
def tensor_to_shape(op: TensorToShapeOp, x: np.ndarray[Any, Any]) -> Shape:
    """The elements as dimensions."""
    return Shape(int(dim) for dim in x)


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
