"""The representation of VM values in native code.

An interval says between which numbers the result of `vm.int` lies: sums and products of most sizes need no check for
64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from xdsl.ir import SSAValue

from vm_dialect.integers import GREATEST, LEAST, saturated
from vm_dialect.messages import MOST_BYTES
from vm_dialect.ops.integers import IntKind


@dataclass(frozen=True)
class Interval:
    """All numbers from `least` to `most`."""

    least: int
    most: int

    @property
    def fits(self) -> bool:
        """Whether 64 bits hold all of them."""
        return self.least >= LEAST and self.most <= GREATEST

    @property
    def held(self) -> Interval:
        """The same, of numbers that end at what 64 bits hold."""
        return self if self.fits else Interval(saturated(self.least), saturated(self.most))


ANY_INTEGER = Interval(LEAST, GREATEST)
SIZE_OF_TENSOR = Interval(0, MOST_BYTES)
"""An axis of a tensor, which has been checked or made: other axes of length 0 count as 1."""


def result_interval(kind: IntKind, lhs: Interval, rhs: Interval) -> Interval:
    """Of the exact result, which 64 bits may not hold."""
    match kind:
        case IntKind.ADD | IntKind.ADD_SAT:
            return Interval(lhs.least + rhs.least, lhs.most + rhs.most)
        case IntKind.SUB:
            return Interval(lhs.least - rhs.most, lhs.most - rhs.least)
        case IntKind.MUL | IntKind.MUL_SAT:
            corners = [a * b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MIN:
            return Interval(min(lhs.least, rhs.least), min(lhs.most, rhs.most))
        case IntKind.MAX:
            return Interval(max(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.BROADCAST:
            return Interval(min(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.FLOORDIV if rhs.least > 0:
            corners = [a // b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MOD if rhs.least > 0:
            return Interval(0, rhs.most - 1)
        case _:
            return ANY_INTEGER


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
