"""Scalar arithmetic on dimensions: what operators mean for the elements of shapes, of Relax and of ONNX; and the
table of what ops do to such elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, Prover, constant, maximum, minimum

MOST_POWER = 16
"""Exponents up to this are multiplied out."""


@dataclass(frozen=True)
class Arithmetic:
    """What is known where an op stands."""

    prover: Prover
    is_float: bool
    """Whether the operands are floats, whose quotient is not rounded."""

    @staticmethod
    def at(op: Operation) -> Arithmetic:
        """For the operands of `op`."""
        dtypes = [info.dtype for info in op.operand_types if isinstance(info, TensorType)]
        return Arithmetic(prover_at(op), any(isinstance(dtype, AnyFloat) for dtype in dtypes))

    def floor_divide(self, x: Dim, y: Dim) -> Dim | None:
        """`x / y` rounded down, if `y` is positive."""
        return self.prover.simplify(x // y) if self.prover.less_equal(1, y) else None

    def divide(self, x: Dim, y: Dim) -> Dim | None:
        """`x / y`, of integers rounded toward zero; a quotient of floats has to be an integer."""
        if self.is_float:
            exact = self.prover.less_equal(1, y) and self.prover.equal(x % y, 0)
            return self.prover.simplify(x // y) if exact else None
        if x.constant_value is not None and y.constant_value:
            quotient = abs(x.constant_value) // abs(y.constant_value)
            return constant(quotient if (x.constant_value < 0) == (y.constant_value < 0) else -quotient)
        return self.floor_divide(x, y) if self.prover.less_equal(0, x) else None

    def modulo(self, x: Dim, y: Dim) -> Dim | None:
        """What is left after division, if both are not negative and `y` is not 0."""
        positive = self.prover.less_equal(0, x) and self.prover.less_equal(1, y)
        return self.prover.simplify(x % y) if positive else None

    def power(self, x: Dim, y: Dim) -> Dim | None:
        """`x` to a small known exponent."""
        exponent = y.constant_value
        if exponent is None or not 0 <= exponent <= MOST_POWER:
            return None
        result = constant(1)
        for _ in range(exponent):
            result = result * x
        return result

    def magnitude(self, x: Dim) -> Dim | None:
        """`|x|`, if the sign is known."""
        if self.prover.less_equal(0, x):
            return x
        return -x if self.prover.less_equal(x, 0) else None

    def maximum(self, x: Dim, y: Dim) -> Dim:
        """The greater one."""
        return self.prover.simplify(maximum(x, y))

    def minimum(self, x: Dim, y: Dim) -> Dim:
        """The smaller one."""
        return self.prover.simplify(minimum(x, y))

    def add(self, x: Dim, y: Dim) -> Dim:
        """`x + y`."""
        return x + y

    def subtract(self, x: Dim, y: Dim) -> Dim:
        """`x - y`."""
        return x - y

    def multiply(self, x: Dim, y: Dim) -> Dim:
        """`x * y`."""
        return x * y

    def negative(self, x: Dim) -> Dim:
        """`-x`."""
        return -x

    def same(self, x: Dim) -> Dim:
        """`x`: what is known is an integer, which rounding leaves."""
        return x

    def equal(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are one number."""
        return _truth(self.prover.equal(x, y))

    def not_equal(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are different numbers."""
        answer = self.prover.equal(x, y)
        return _truth(None if answer is None else not answer)

    def less(self, x: Dim, y: Dim) -> Dim | None:
        """`x < y`."""
        return _truth(self.prover.less_equal(x + 1, y))

    def less_equal(self, x: Dim, y: Dim) -> Dim | None:
        """`x <= y`."""
        return _truth(self.prover.less_equal(x, y))

    def greater(self, x: Dim, y: Dim) -> Dim | None:
        """`x > y`."""
        return self.less(y, x)

    def greater_equal(self, x: Dim, y: Dim) -> Dim | None:
        """`x >= y`."""
        return self.less_equal(y, x)

    def logical_and(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are true."""
        left, right = is_true(x), is_true(y)
        return None if left is None or right is None else left * right

    def logical_or(self, x: Dim, y: Dim) -> Dim | None:
        """Whether one is true."""
        left, right = is_true(x), is_true(y)
        return None if left is None or right is None else maximum(left, right)

    def logical_not(self, x: Dim) -> Dim | None:
        """Whether it is false."""
        truth = is_true(x)
        return None if truth is None else 1 - truth

    def where(self, condition: Dim, x: Dim, y: Dim) -> Dim | None:
        """One of two values."""
        truth = is_true(condition)
        return x if x is y else None if truth is None else x if truth.constant_value else y


def is_true(x: Dim) -> Dim | None:
    """Whether a number is not 0, if that is known without knowing symbols."""
    return None if x.constant_value is None else constant(int(x.constant_value != 0))


def _truth(answer: bool | None) -> Dim | None:
    return None if answer is None else constant(int(answer))


Elements: TypeAlias = NDArray[Any]
"""An array of `Dim | None`, `None` where a value is not known; truth values are 0 and 1."""

MOST_ELEMENTS = 64
"""Larger tensors are data, not shapes."""

OpT = TypeVar("OpT", bound=Operation)
Evaluation: TypeAlias = Callable[..., Elements | Sequence[Elements] | None]

RULES: dict[type[Operation], Evaluation] = {}
"""What ops do to values: called with the op and the elements of its operands, `None` for those that are no shapes."""


def evaluates(*op_types: type[OpT]) -> Callable[[Evaluation], Evaluation]:
    """Registers `rule(op, *operands)`, the elements of the only result, or those of each result."""

    def register(rule: Evaluation) -> Evaluation:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return register


def array_of(values: Sequence[Dim | None]) -> Elements:
    """The values as an array of rank 1."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def static_shape(info: TensorType) -> list[int] | None:
    """The dimensions of a type, if all are constants."""
    sizes = [dim.constant_value for dim in info.known_dims or ()]
    known = [size for size in sizes if size is not None]
    return known if info.known_dims is not None and len(known) == len(sizes) else None
