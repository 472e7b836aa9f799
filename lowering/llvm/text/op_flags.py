"""Flags of arithmetic instructions, as LLVM IR writes them after the instruction's name."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation


def fast_math_flags(op: Operation) -> str:
    """Fast-math flags with a trailing space, or nothing."""
    flags = op.properties.get("fastmathFlags")
    if not isinstance(flags, llvm.FastMathAttr) or not flags.data:
        return ""
    return "fast " if len(flags.data) == _ALL else " ".join(sorted(flags.data)) + " "


def integer_flags(op: Operation) -> str:
    """`nsw`, `nuw`, `exact`, `disjoint` or `nneg` with a trailing space, or nothing."""
    properties = op.properties
    flags = properties.get("overflowFlags")
    if isinstance(flags, IntegerAttr):
        return _OVERFLOW[flags.value.data]
    if isinstance(flags, llvm.OverflowAttr):
        return _OVERFLOW[flags.to_int()]
    return next((word for name, word in _MARKS.items() if name in properties), "")


_ALL = len(llvm.FastMathAttr("fast").data)
_OVERFLOW = ("", "nsw ", "nuw ", "nuw nsw ")
_MARKS = {"isExact": "exact ", "isDisjoint": "disjoint ", "nonNeg": "nneg "}
