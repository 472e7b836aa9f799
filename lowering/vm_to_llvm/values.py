"""The representation of VM values in native code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowering.vm_to_llvm.intervals import ANY_INTEGER, Interval


@dataclass(frozen=True)
class Number:
    """An `i64`, `i1` or `f64` in a register."""

    ssa: SSAValue

    interval: Interval = ANY_INTEGER
    """Where an `i64` lies."""


@dataclass(frozen=True)
class Boxed:
    """A tvm-ffi value in memory."""

    address: SSAValue
    """Of the `TVMFFIAny` that holds it: a slot of the frame, an argument or a constant."""

    owned: bool
    """Whether it is a slot of the frame, which a kill empties."""

    tensor: SSAValue | None = None
    """Address of its `DLTensor`; None if it is not known to be a tensor."""

    data: SSAValue | None = None
    """Address of its first element, if it is a tensor."""


@dataclass(frozen=True)
class Unboxed:
    """A tensor that never was an object: one in an arena, or a view that does not leave its function."""

    data: SSAValue
    """Address of the first element."""

    sizes: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Storage:
    """An arena."""

    block: SSAValue
    """Its address."""

    size: SSAValue
    """Its bytes."""


Value: TypeAlias = Number | Boxed | Unboxed | Storage
