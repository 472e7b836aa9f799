"""What elementwise operators mean on one element, stated once, with NumPy as the reference.

Interpreter and constant folding call `evaluate`; lowering goes by `name`; algebraic simplification uses the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from tir_dialect import dtypes

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.generic]


class Domain(Enum):
    """The element types that a scalar function is defined for."""

    ANY = "any dtype"
    NUMERIC = "an integer or floating-point dtype"
    FLOAT = "a floating-point dtype"
    INTEGER = "an integer dtype"
    BITS = "an integer dtype or i1"
    BOOL = "i1"

    def admits(self, dtype: Attribute) -> bool:
        """Whether the function is defined for `dtype`."""
        return _ADMITS[self](dtype)


_ADMITS: dict[Domain, Callable[[Attribute], bool]] = {
    Domain.ANY: lambda dtype: True,
    Domain.NUMERIC: lambda dtype: dtypes.is_float(dtype) or dtypes.is_integer(dtype),
    Domain.FLOAT: dtypes.is_float,
    Domain.INTEGER: dtypes.is_integer,
    Domain.BITS: lambda dtype: dtypes.is_integer(dtype) or dtypes.is_bool(dtype),
    Domain.BOOL: dtypes.is_bool,
}


@dataclass(frozen=True)
class Scalar:
    """A function of one or more elements.

    `evaluate` computes it on NumPy arrays of equal dtype and broadcastable shapes. The result has the operands'
    dtype, or `i1` if `predicate` is set.
    """

    name: str
    """The name of the function, such as `exp`; lowering looks it up."""

    evaluate: Callable[..., Any]
    domain: Domain = Domain.NUMERIC
    predicate: bool = False
    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    identity: int | None = None
    """The second operand with which the first one is the result, `x + 0 = x`."""

    absorbing: int | None = None
    """The operand with which the result is that operand, `x * 0 = 0`; integers only, a float may be NaN."""

    involution: bool = False
    """Whether applying it twice gives the operand back."""

    def result_dtype(self, dtype: Attribute | None) -> Attribute | None:
        """The dtype of the result for operands of `dtype`, `None` being unknown."""
        return i1 if self.predicate else dtype


@cache
def numpy() -> ModuleType:
    """NumPy, loaded on first use: importing the dialect must stay cheap."""
    import numpy

    return numpy


def ufunc(name: str) -> Callable[..., Any]:
    """The NumPy function of that name."""

    def evaluate(*operands: Any, **options: Any) -> Any:
        return getattr(numpy(), name)(*operands, **options)

    return evaluate
