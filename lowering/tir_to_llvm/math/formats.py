"""The interchange formats binary32 and binary64 of IEEE 754, as formulas on their bits need them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType, i32, i64


@dataclass(frozen=True)
class Format:
    """A binary interchange format."""

    integer: IntegerType
    """The integer type of the same width."""

    fraction: int
    """The number of bits of the trailing significand."""

    bias: int
    """What is added to an exponent; also the greatest exponent of a number."""

    @property
    def rounding(self) -> float:
        """Adding it rounds a number of less than `2**(fraction - 1)` to an integer, which stands in the lowest bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def least_normal(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The least positive number, which is subnormal."""
        return 2.0 ** (1 - self.bias - self.fraction)

    @property
    def one_bits(self) -> int:
        """The bits of 1."""
        return self.bias << self.fraction

    @property
    def infinity_bits(self) -> int:
        """The bits of infinity: those of the exponent."""
        return (2 * self.bias + 1) << self.fraction


BINARY32 = Format(i32, 23, 127)
BINARY64 = Format(i64, 52, 1023)
