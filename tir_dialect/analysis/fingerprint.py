"""Fingerprints of functions: equal for functions that compile to the same code, whatever their names and locations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType, DimAttr, SymbolAttr

Numbers: TypeAlias = dict[SSAValue | Block, int]


class Fingerprint:
    """Writes ops down with values and blocks numbered in order of appearance; texts of attributes are remembered."""

    def __init__(self, renaming: Mapping[str, Dim] | None = None) -> None:
        """`renaming` says how symbols are written; the others by their names."""
        self._attributes: dict[Attribute, str] = {}
        self._renaming = renaming or {}

    def __call__(self, op: Operation, without: Iterable[str] = ()) -> str:
        """The text of an op with everything inside; properties named in `without` are left out. Linear in its size."""
        parts: list[str] = []
        self._op(op, frozenset(without), {}, parts)
        return "".join(parts)

    def _op(
        self, op: Operation, without: frozenset[str], numbers: dict[SSAValue | Block, int], parts: list[str]
    ) -> None:
        parts.append(op.name)
        for operand in op.operands:
            parts.append(f" %{numbers.get(operand, -1)}")
        for block in op.successors:
            parts.append(f" ^{numbers.setdefault(block, len(numbers))}")
        self._dictionary("<", op.properties, without, parts)
        self._dictionary("{", op.attributes, without, parts)
        for result in op.results:
            numbers[result] = len(numbers)
            parts.append(f":{self._text(result.type)}")
        for region in op.regions:
            parts.append("(\n")
            for block in region.blocks:
                parts.append(f"^{numbers.setdefault(block, len(numbers))}")
                for argument in block.args:
                    numbers[argument] = len(numbers)
                    parts.append(f":{self._text(argument.type)}")
                parts.append("\n")
                for inner in block.ops:
                    self._op(inner, frozenset(), numbers, parts)
            parts.append(")")
        parts.append("\n")

    def _dictionary(
        self, mark: str, attributes: Mapping[str, Attribute], without: frozenset[str], parts: list[str]
    ) -> None:
        for name in sorted(attributes):
            value = attributes[name]
            if name not in without and not isinstance(value, LocationAttr):
                parts.append(f" {mark}{name}={self._text(value)}")

    def _text(self, attribute: Attribute) -> str:
        text = self._attributes.get(attribute)
        if text is None:
            text = self._attributes[attribute] = str(rename_symbols(attribute, self._renaming))
        return text


def prim_func_fingerprint(func: PrimFuncOp) -> str:
    """Equal for PrimFuncs that differ in nothing but names: of their own, of values and of symbols."""
    renaming = {name: symbol(f"k{index}") for index, name in enumerate(func.symbol_names)}
    return Fingerprint(renaming)(func, ("sym_name",))


def rename_symbols(attribute: Attribute, renaming: Mapping[str, Dim]) -> Attribute:
    """An attribute of the loop level with its symbols replaced at once; each new one is a bare symbol."""
    if not renaming:
        return attribute
    if isinstance(attribute, DimAttr):
        return DimAttr(attribute.data.substitute(renaming))
    if isinstance(attribute, BufferType):
        return attribute.substitute(renaming)
    if isinstance(attribute, SymbolAttr):
        name = attribute.symbol.data
        return SymbolAttr(renaming[name].as_symbol or name, *attribute.interval) if name in renaming else attribute
    if isa(attribute, ArrayAttr[Attribute]):
        return ArrayAttr(rename_symbols(each, renaming) for each in attribute)
    return attribute
