"""How operators are run: a NumPy function of the operands, whose results have to be of the inferred types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operand_checks import make_checks
from relax_dialect.interpreter.runtime_values import Array, Value, is_tensor
from relax_dialect.interpreter.sizes import evaluate
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.types import TensorType
from relax_dialect.traits import AliasesOperand
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import MOST_BYTES, from_numpy, integer_limits, is_integer, is_narrow, numpy_dtype
from tir_dialect.elements import converted

OpT = TypeVar("OpT", bound=InfersResultTypes)
Compute: TypeAlias = "Callable[..., Value]"
ComputeAll: TypeAlias = "Callable[..., Sequence[Value]]"


def computes(*op_types: type[OpT]) -> Callable[[Compute], Compute]:
    """Registers `compute(op, *operands)`, the value of the only result, for some operators."""

    def register(compute: Compute) -> Compute:
        @wraps(compute)
        def compute_all(op: InfersResultTypes, *operands: Value) -> Sequence[Value]:
            return (compute(op, *operands),)

        computes_all(*op_types)(compute_all)
        return compute

    return register


def computes_all(*op_types: type[OpT]) -> Callable[[ComputeAll], ComputeAll]:
    """Registers `compute(op, *operands)`, the values of all results, for some operators."""

    def register(compute: ComputeAll) -> ComputeAll:
        @wraps(compute)
        def rule(frame: Frame, op: InfersResultTypes) -> None:
            make_checks(frame, op)
            _set_results(frame, op, _computed(frame, op, compute, op))

        runs(*op_types)(rule)
        return compute

    return register


def computes_in(*op_types: type[OpT]) -> Callable[[ComputeAll], ComputeAll]:
    """Registers `compute(dims, op, *operands)` for operators whose properties are dimensions; `dims` evaluates them."""

    def register(compute: ComputeAll) -> ComputeAll:
        @wraps(compute)
        def rule(frame: Frame, op: InfersResultTypes) -> None:
            make_checks(frame, op)
            _set_results(frame, op, _computed(frame, op, compute, DimValues(frame), op))

        runs(*op_types)(rule)
        return compute

    return register


class DimValues:
    """The values of dimensions in a frame."""

    def __init__(self, frame: Frame):
        self._symbols = frame.symbols

    def __call__(self, dim: DimAttr) -> int:
        """The value of a dimension."""
        return evaluate(dim.data, self._symbols)


def _computed(frame: Frame, op: InfersResultTypes, compute: ComputeAll, *leading: object) -> Sequence[Value]:
    """The values of the results; `MemoryError` if no machine can hold one, of which NumPy says various things."""
    try:
        with np.errstate(all="ignore"):
            operands = frame.get_all(op.operands)
            if any(is_tensor(value) and has_narrow_integers(value) for value in operands):
                return _narrowed(op, compute(*leading, *map(_widened, operands)))
            return compute(*leading, *operands)
    except ValueError as error:
        for info in as_struct_infos(op.result_types):
            if isinstance(info, TensorType) and info.known_dims is not None and info.dtype is not None:
                size = numpy_dtype(info.dtype).itemsize * prod(evaluate(dim, frame.symbols) for dim in info.known_dims)
                if size > MOST_BYTES:
                    raise MemoryError("cannot allocate a tensor of more than 2^48 bytes") from error
        raise


def _widened(value: Value) -> Value:
    """Integers below 8 bits, for which NumPy has few functions, as integers of 8."""
    return value.astype(value.dtype.name[:-1] + "8") if is_tensor(value) and has_narrow_integers(value) else value


def _narrowed(op: InfersResultTypes, values: Sequence[Value]) -> Sequence[Value]:
    """Results that were computed with 8 bits for the narrow integers that the types say: the lowest bits."""
    types = [value.dtype if isinstance(value, TensorType) else None for value in op.result_types]
    return [
        value.astype(numpy_dtype(kind)) if kind is not None and is_narrow(kind) and is_tensor(value) else value
        for kind, value in zip(types, values, strict=True)
    ]


def has_narrow_integers(array: Array) -> bool:
    """Whether elements are integers below 8 bits."""
    # the kind first: a name is made anew each time
    return array.dtype.kind == "V" and array.dtype.name in ("int4", "uint4", "int2", "uint2")


def _set_results(frame: Frame, op: InfersResultTypes, values: Sequence[Value]) -> None:
    views = op.has_trait(AliasesOperand)
    for result, value in zip(op.results, values, strict=True):
        if isinstance(result.type, TensorType) and not views:
            value = _own(value, frame.get_all(op.operands))
        frame.set_checked(result, value, f"result of '{op.name}'")


def _own(value: Array | np.generic[Any], operands: Sequence[Value]) -> Array:
    """The value with memory of its own: NumPy gives scalars where the rank is 0, views, and also whole operands."""
    if is_tensor(value) and value.base is None and value.flags.c_contiguous:
        return value.copy() if any(value is operand for operand in operands) else value
    return np.array(value, order="C")


def result_dtype(op: InfersResultTypes, otherwise: Array, index: int = 0) -> np.dtype[np.generic]:
    """The NumPy dtype of a result; that of the array `otherwise` if the type does not say it."""
    info = op.results[index].type
    dtype = info.dtype if isinstance(info, TensorType) else None
    return otherwise.dtype if dtype is None else numpy_dtype(dtype)


def element(value: float, op: InfersResultTypes, x: Array) -> Array:
    """A number in the dtype of the result of an op, `x` among its operands; of integers without its fraction and at
    most the extremes, and 0 for NaN.
    """
    dtype = from_numpy(result_dtype(op, x))
    if is_integer(dtype) and isinstance(value, int):
        low, high = integer_limits(dtype)
        return np.array(min(max(value, low), high), x.dtype)
    return converted(np.array(value, np.float64), dtype).astype(x.dtype)


def wide(x: Array) -> Array:
    """Floats of 16 bits and less as `f32`, in which they are accumulated; others as they are."""
    return x.astype(np.float32) if x.dtype.itemsize <= 2 and x.dtype.kind not in "iub" else x
