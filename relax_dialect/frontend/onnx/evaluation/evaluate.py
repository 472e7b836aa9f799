"""Operators by name, and how they are evaluated.

`evaluate` is a pure function from arrays to arrays. Arrays whose elements are all numbers have NumPy's dtype; others
hold dimensions and numbers as objects. What depends on the value of a symbol is not evaluated: it is left to run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from relax_dialect.frontend.onnx.dtypes import element_type
from relax_dialect.frontend.onnx.evaluation.elements import ELEMENT_RULES
from relax_dialect.frontend.onnx.evaluation.rule import Attributes, Open, Operands
from relax_dialect.frontend.onnx.evaluation.shapes import SHAPE_RULES
from relax_dialect.frontend.onnx.values import MAX_EVALUATED, Array, plain
from tir_dialect.dims import Dim
from tir_dialect.dtypes import integer_limits

_RULES = ELEMENT_RULES | SHAPE_RULES
_WITH_GAPS = frozenset({"Slice", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"})
"""Operators with optional operands that may be absent."""


def evaluate(
    name: str, attributes: Attributes, operands: Sequence[Array | None], dtypes: Sequence[Attribute | None]
) -> list[tuple[Array, Attribute | None]] | None:
    """The outputs of an operator with their dtypes, `None` where it is NumPy's; or `None` if they are not known."""
    rule = _RULES.get(name)
    present = [each for each in operands if each is not None]
    if rule is None or not present or (len(present) != len(operands) and name not in _WITH_GAPS):
        return None
    if any(each.size > MAX_EVALUATED for each in present):
        return None
    try:
        with np.errstate(all="ignore"):
            made = rule(attributes, cast("Operands", operands))
    except (Open, ValueError, TypeError, IndexError, KeyError, ZeroDivisionError, OverflowError, MemoryError):
        return None
    results = list(made) if isinstance(made, list | tuple) else [_array(made)]
    if any(each.size > MAX_EVALUATED for each in results):
        return None
    try:
        return [_typed(name, attributes, each, dtypes) for each in results]
    except OverflowError:  # Python's integers have as many bits as it takes
        return None


def _array(made: Any) -> Array:
    """A result as an array: NumPy gives bare elements where the rank is 0."""
    if isinstance(made, Dim):
        found = np.empty((), object)
        found[()] = made
        return found
    return np.asarray(made)


def _typed(
    name: str, attributes: Attributes, result: Array, dtypes: Sequence[Attribute | None]
) -> tuple[Array, Attribute | None]:
    """A result with its dtype, which object arrays do not know by themselves."""
    if result.dtype != object:
        return result, None
    if name == "Cast":
        dtype: Attribute | None = element_type(int(attributes["to"]))
    elif name == "CastLike":
        dtype = dtypes[1]
    else:
        dtype = dtypes[1] if name == "Where" else dtypes[0]
    low, high = integer_limits(dtype or i64)
    if any(isinstance(each, int) and not low <= each <= high for each in result.reshape(-1).tolist()):
        raise OverflowError("an element is no number of the dtype")
    return plain(result, dtype), dtype
