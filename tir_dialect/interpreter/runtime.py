"""What generated code calls: checks and views."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from tir_dialect import dtypes
from tir_dialect.dims.lattice import broadcast_extents
from tir_dialect.interpreter import lanes, numerics
from tir_dialect.interpreter.errors import OutOfRangeError, fail_access
from tir_dialect.interpreter.raw_memory import address_of, memory_at
from tir_dialect.interpreter.widths import holds_integers
from tir_dialect.ops.scalars import DEFAULT_ERROR


def fail_iterator(block: str, iterator: str, value: int, extent: int) -> NoReturn:
    """Raises the error of an iterator outside its domain."""
    raise OutOfRangeError(
        f"'tir.block' \"{block}\": iterator {iterator} is {value}, expected 0 <= {iterator} < {extent}"
    )


def fail_assertion(message: str, kind: str = DEFAULT_ERROR) -> NoReturn:
    """Raises the error of a failed assertion."""
    raise getattr(builtins, kind)(message)


def view_region(
    array: np.ndarray, name: str, axes: Sequence[tuple[int, int] | int], expected: Sequence[int]
) -> np.ndarray:
    """The value of a `tir.match_buffer`: axes are points, or starts and ends."""
    lengths = [axis[1] - axis[0] for axis in axes if isinstance(axis, tuple)]
    if lengths != list(expected):
        raise ValueError(f"'tir.match_buffer' of buffer {name}: expected a region of shape {expected}, got {lengths}")
    selection: list[slice | int] = []
    for axis, (part, extent) in enumerate(zip(axes, array.shape, strict=True)):
        start, stop = part if isinstance(part, tuple) else (part, part + 1)
        if start < 0 or stop > extent:
            raise OutOfRangeError(
                f"'tir.match_buffer' of buffer {name}: dimension {axis} covers {start} to {stop} of {extent}"
            )
        selection.append(slice(start, stop) if isinstance(part, tuple) else part)
    return array[(*selection, ...)]


def view_flat(array: np.ndarray, name: str) -> np.ndarray:
    """The value of a `tir.flatten`; `ValueError` if the elements do not lie in row-major order."""
    if not array.flags.c_contiguous:
        raise ValueError(f"'tir.flatten' of buffer {name}: expected elements in row-major order, got other strides")
    return array.reshape(-1)


def view_memory(
    array: np.ndarray, name: str, start: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]
) -> np.ndarray:
    """The value of a `tir.view`, its strides in elements; `ValueError` if the buffer's elements do not lie in row-major
    order, or are too few.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"'tir.view' of buffer {name}: expected elements in row-major order, got other strides")
    first = start * dtype.itemsize
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    length = (span if math.prod(shape) else 0) * dtype.itemsize
    if first < 0 or first + length > array.nbytes:
        raise ValueError(f"'tir.view' of buffer {name}: expected {first + length} bytes, got {array.nbytes}")
    memory = array.reshape(-1).view(np.uint8)[first : first + length]
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


def fresh_buffer(shape: Sequence[int], dtype: np.dtype[Any], type_text: str) -> np.ndarray:
    """Memory whose content is recognisable as undefined: NaN, or a large negative number.

    `MemoryError`, as compiled code raises it, where there is not so much or the size is none.
    """
    try:
        return np.full(shape, _undefined(dtype), dtype)
    except (MemoryError, ValueError):
        raise MemoryError(f"cannot allocate a buffer of type {type_text}") from None


def _undefined(dtype: np.dtype[Any]) -> float | int | bool:
    if dtype == np.bool_:
        return True
    if np.issubdtype(dtype, np.integer):
        return int(np.iinfo(dtype).min) + 85
    return 1 if holds_integers(dtype) else np.nan


def bitcast(value: Any, source: Any, target: Any) -> Any:
    """The bits of `value` in another type of the same width."""
    result: Any = np.array([value], source).view(target)[0]
    return result.item() if holds_integers(result.dtype) else result


NAMESPACE: dict[str, Any] = {
    "address_of": address_of,
    "bitcast": bitcast,
    "broadcast_extents": broadcast_extents,
    "count_leading_zeros": numerics.count_leading_zeros,
    "count_ones": numerics.count_ones,
    "count_trailing_zeros": numerics.count_trailing_zeros,
    "divide_towards_zero": numerics.divide_towards_zero,
    "dot_words": numerics.dot_words,
    "fail_access": fail_access,
    "fail_assertion": fail_assertion,
    "fail_iterator": fail_iterator,
    "fresh_buffer": fresh_buffer,
    "fused_multiply_add": numerics.fused_multiply_add,
    "integer_power": numerics.integer_power,
    "integer_to_float": numerics.integer_to_float,
    "load_vector": lanes.load_vector,
    "map_lanes": lanes.map_lanes,
    "memory_at": memory_at,
    "multiply_add_lanes": lanes.multiply_add_lanes,
    "maximum": numerics.maximum,
    "maximum_number": numerics.maximum_number,
    "minimum": numerics.minimum,
    "minimum_number": numerics.minimum_number,
    "np": np,
    "reduce": reduce,
    "remainder_towards_zero": numerics.remainder_towards_zero,
    "shift_left": numerics.shift_left,
    "shift_right": numerics.shift_right,
    "shift_right_unsigned": numerics.shift_right_unsigned,
    "store_vector": lanes.store_vector,
    "to_integer": numerics.to_integer,
    "view_flat": view_flat,
    "view_memory": view_memory,
    "view_region": view_region,
    **{f"np_{dtype.numpy_name}": dtypes.numpy_dtype(dtype.type).type for dtype in dtypes.DTYPES},
    **{name.replace(".", "_"): function for name, function in (numerics.UNARY | numerics.BINARY).items()},
}
"""The names that generated code uses."""
