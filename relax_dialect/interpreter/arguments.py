"""Arguments from outside as values of the interpreter: what compiled functions take (`vm_dialect.arguments`), it takes.

NumPy reads memory of any layout, so nothing is copied but arrays in another byte order. What a function writes has to
be as compiled code needs it, since packed functions get its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm_ffi

from relax_dialect.interpreter.runtime_values import Array, Value, from_python, to_array
from vm_dialect.arguments import Argument, unfit


class InterpretedArgument(Argument):
    """An argument of an interpreted function: tensors are NumPy arrays."""

    def plain(self, given: Any) -> Value:
        return from_python(given)

    def fields(self, fields: Sequence[Value]) -> Value:
        return tuple(fields)

    def array(self, array: Array, kind: str) -> Value:
        self.require_dtype(array, kind)
        why = unfit(array) if self.is_written or not array.dtype.isnative else None
        return array if why is None else self.copied(array, why)

    def tensor(self, tensor: tvm_ffi.Tensor, kind: str) -> Value:
        return self.array(to_array(tensor), kind)

    def made(self, array: Array) -> Value:
        return array
