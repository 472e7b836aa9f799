"""Flags and metadata of instructions as LLVM IR writes them: fast-math, loop hints, non-temporal marks."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Operation

from lowering.llvm.errors import CodegenError


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


LOOP_HINTS = "llvm_ext.loop"
"""Name of the attribute on the branch that closes a loop: a dictionary from LLVM's names of loop hints to values.

`{llvm_ext.loop = {"llvm.loop.unroll.disable", "llvm.loop.interleave.count" = 2 : i32}}`
"""


class Metadata:
    """The numbered metadata nodes of a module."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._shared: dict[str, int] = {}

    def lines(self) -> list[str]:
        """The definitions, in order of their numbers."""
        return [f"!{number} = {node}" for number, node in enumerate(self._nodes)]

    def shared(self, node: str) -> str:
        """A reference to a node that all its users share."""
        if node not in self._shared:
            self._shared[node] = len(self._nodes)
            self._nodes.append(node)
        return f"!{self._shared[node]}"

    def loop(self, hints: Attribute) -> str:
        """A reference to a node of its own for one loop, with `hints` as described at `LOOP_HINTS`."""
        if not isinstance(hints, DictionaryAttr):
            raise CodegenError(f"attribute {LOOP_HINTS} expects a dictionary, got {hints}")
        parts = [self.shared(_hint(name, value)) for name, value in hints.data.items()]
        number = len(self._nodes)
        self._nodes.append(f"distinct !{{{', '.join([f'!{number}', *parts])}}}")
        return f"!{number}"


def _hint(name: str, value: Attribute) -> str:
    match value:
        case UnitAttr():
            return f'!{{!"{name}"}}'
        case IntegerAttr(type=IntegerType() as type_):
            width = type_.width.data
            number = value.value.data
            return f'!{{!"{name}", i{width} {("false", "true")[bool(number)] if width == 1 else number}}}'
        case _:
            raise CodegenError(f"loop hint {name} expects a unit or an integer, got {value}")
