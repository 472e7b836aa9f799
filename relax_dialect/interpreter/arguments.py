"""Arguments from outside as values of the interpreter: what compiled functions take (`vm_dialect.arguments`), it takes.

NumPy reads memory of any layout, so nothing is copied but arrays in another byte order. What a function writes has to
be as compiled code needs it, since packed functions get its memory.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import tvm_ffi
from xdsl.ir import Attribute

from relax_dialect.interpreter.runtime_values import Array, Value, from_python, is_tensor, kind_of
from relax_dialect.struct_info.types import TensorType, TupleType
from tir_dialect.dtypes import from_numpy, integer_limits, lookup, numpy_dtype

_LOG = logging.getLogger("relax_dialect")


@dataclass(frozen=True)
class Argument:
    """An argument of a function, or a field of one."""

    subject: str
    """What errors call it."""
    is_written: bool
    """Whether the function may write into it."""

    def value(self, given: Any, info: Attribute) -> Value:
        """The value for a parameter of a type. `TypeError` for what cannot become a tensor where one is expected,
        `ValueError` for numbers that its dtype does not have and for memory that cannot be written.
        """
        if isinstance(info, TupleType) and isinstance(given, list | tuple | tvm_ffi.Array):
            return self._fields(cast("Sequence[object]", given), info)
        if not isinstance(info, TensorType):
            return from_python(given)
        if isinstance(given, np.generic):
            return self._new(np.asarray(cast("Any", given)), cast("object", given))
        if info.dtype is not None and isinstance(given, bool | int | float | list | tuple):
            number = cast("object", given)
            return self._new(numbers(number, info.dtype, self.subject), number)
        value = from_python(given)
        return self._fit(self._supported(value, info)) if is_tensor(value) else value

    def _fields(self, given: Sequence[object], info: TupleType) -> Value:
        if len(given) != len(info.fields):
            return from_python(list(given))
        return tuple(
            Argument(f"{self.subject} field {index}", self.is_written).value(item, field)
            for index, (item, field) in enumerate(zip(given, info.fields, strict=True))
        )

    def _new(self, array: Array, given: object) -> Array:
        if self.is_written:
            got = kind_of(from_python(given))
            raise TypeError(f"{self.subject}: expected a tensor, got {got}: the function writes into it")
        return array

    def _supported(self, array: Array, info: TensorType) -> Array:
        """The array, if there are tensors of its dtype."""
        try:
            from_numpy(array.dtype.newbyteorder("="))
        except ValueError:
            expected = "any number" if info.dtype is None else str(numpy_dtype(info.dtype))
            raise TypeError(f"{self.subject}: expected dtype {expected}, got {array.dtype}") from None
        return array

    def _fit(self, array: Array) -> Array:
        why = _unfit(array) if self.is_written or not array.dtype.isnative else None
        if why is None:
            return array
        if self.is_written:
            hint = "pass a new array, and read the result there"
            raise ValueError(f"{self.subject}: is written, so that it cannot be copied, but {why}: {hint}")
        _LOG.debug("%s: %s: copied", self.subject, why)
        return array.astype(array.dtype.newbyteorder("="))


def _unfit(array: Array) -> str | None:
    """Why compiled code cannot use the memory of an array as it is; `None` if it can."""
    if not array.dtype.isnative:
        return "is in the byte order of other machines"
    if array.size and not array.flags.c_contiguous:
        return "has gaps between its elements"
    if array.size and not array.flags.aligned:
        return "is not aligned to its elements"
    return None if array.flags.writeable else "is read-only"


def numbers(given: object, dtype: Attribute, subject: str) -> Array:
    """The array of a number, or of nested sequences of them, of a dtype that has these values.

    `TypeError` for what holds other things than numbers, has rows of several lengths or numbers of another kind,
    `ValueError` for a number beyond the range of the dtype.
    """
    row, wanted = lookup(dtype), numpy_dtype(dtype)
    strange = _strange_item(given, wanted)
    if strange is not None:
        raise TypeError(f"{subject}: expected dtype {wanted}, got {strange}")
    try:
        natural: Array = np.asarray(given)
    except ValueError:
        raise TypeError(f"{subject}: expected rows of one length, got a {type(given).__name__} of several") from None
    kind = natural.dtype.kind
    if natural.size and ((kind == "f" and not row.is_float) or (kind in "iu" and row.is_bool)):
        raise TypeError(f"{subject}: expected dtype {wanted}, got {kind_of(natural.flat[0].item())}")
    with np.errstate(all="ignore"):
        made = natural.astype(wanted) if kind != "O" else natural
        fits = kind != "O" and (not natural.size or row.is_bool or kind == "b" or _fits(natural, made, dtype))
    if not fits:
        raise ValueError(f"{subject}: expected numbers that fit into {wanted}")
    return made


def _strange_item(given: object, dtype: np.dtype[Any]) -> str | None:
    """What one of the items of nested sequences is, unless all are numbers of Python or of the dtype."""
    if isinstance(given, np.ndarray | np.generic):
        found = cast("np.dtype[Any]", given.dtype)
        return None if found == dtype else found.name
    if isinstance(given, list | tuple):
        found = (_strange_item(item, dtype) for item in cast("Sequence[object]", given))
        return next((each for each in found if each is not None), None)
    return None if isinstance(given, bool | int | float) else kind_of(from_python(given))


def _fits(natural: Array, made: Array, dtype: Attribute) -> bool:
    if lookup(dtype).is_float:
        return not (np.isfinite(natural.astype(np.float64)) & ~np.isfinite(made.astype(np.float64))).any()
    low, high = integer_limits(dtype)
    return low <= int(natural.min()) and int(natural.max()) <= high
