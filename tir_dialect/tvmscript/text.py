"""Pieces of Python text: expressions with what they bind, names, literals, and nested lines; and the error of what
cannot be written.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Attribute, Operation

from tir_dialect.dims import Atom, BroadcastAtom, Dim, FloorDivAtom, FunctionAtom, MaxAtom, MinAtom, ModAtom, Monomial
from tir_dialect.dtypes import dtype_name, numpy_dtype

INDEX = "int64"
"""What an `index` is for TVM."""


class Level(IntEnum):
    """How strongly the outermost operator of an expression binds, as in Python's grammar."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARE = 4
    BIT_OR = 5
    BIT_XOR = 6
    BIT_AND = 7
    SHIFT = 8
    SUM = 9
    PRODUCT = 10
    SIGN = 11
    ATOM = 12


@dataclass(frozen=True)
class Text:
    """An expression of the script and its dtype there; `number` is its value if it is an integer that is written down.

    An integer of the IR has no sign of its own: in the script it is `int8` or `uint8`, whichever it came from.
    """

    text: str
    dtype: str
    level: Level = Level.ATOM
    number: int | None = None

    def at(self, level: Level) -> str:
        """The text as an operand of an operator that binds as strongly as `level`."""
        return self.text if self.level >= level else f"({self.text})"

    def of_dtype(self, dtype: str) -> Text:
        """The expression converted; between integers of one width, its bits stay."""
        if dtype == self.dtype:
            return self
        if self.number is not None and dtype.lstrip("u") == self.dtype.lstrip("u"):
            return integer(self.number, dtype)
        return call("T.Cast", f'"{dtype}"', self.text, dtype=dtype)


def call(function: str, *arguments: str, dtype: str) -> Text:
    """A call."""
    return Text(f"{function}({', '.join(arguments)})", dtype)


def tuple_of(items: Sequence[str]) -> str:
    """A tuple."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def dtype_text(type: Attribute) -> str:
    """The dtype of a value or of the elements of a buffer, in TVM's spelling."""
    if isinstance(type, IndexType):
        return INDEX
    if isinstance(type, VectorType):
        vector = cast("VectorType[Attribute]", type)
        (lanes,) = vector.get_shape()
        return f"{dtype_text(vector.element_type)}x{lanes}"
    return "bool" if dtype_name(type) in ("bool", "i1") else numpy_dtype(type).name


def integer(value: int, dtype: str) -> Text:
    """An integer that is not an index."""
    bits = int(dtype.lstrip("uint"))
    value &= (1 << bits) - 1
    if not dtype.startswith("u") and value >> (bits - 1):
        value -= 1 << bits
    return replace(call(f"T.{dtype}", str(value), dtype=dtype), number=value)


def number(value: int) -> Text:
    """An index."""
    return Text(str(value), INDEX, Level.SIGN if value < 0 else Level.ATOM, value)


def dim_text(dim: Dim) -> Text:
    """A dimension; TVM has no function for the extent of a broadcast."""
    result: Text | None = None
    for coefficient, monomial in dim.terms:
        term = _term(abs(coefficient), monomial)
        if result is None:
            result = term if coefficient > 0 else Text(f"-{term.at(Level.SIGN)}", INDEX, Level.SIGN)
        else:
            sign = "+" if coefficient > 0 else "-"
            result = Text(f"{result.at(Level.SUM)} {sign} {term.at(Level.PRODUCT)}", INDEX, Level.SUM)
    if dim.constant_value is not None:
        return number(dim.constant_value)
    return result or number(0)


def _term(coefficient: int, monomial: Monomial) -> Text:
    factors = [_atom(atom) for atom, power in monomial for _ in range(power)]
    if coefficient != 1 or not factors:
        factors.insert(0, number(coefficient))
    if len(factors) == 1:
        return factors[0]
    first, *others = factors
    operands = [first.at(Level.PRODUCT), *(factor.at(Level.SIGN) for factor in others)]
    return Text(" * ".join(operands), INDEX, Level.PRODUCT)


def _atom(atom: Atom) -> Text:
    if not isinstance(atom, FunctionAtom):
        return Text(str(from_symbol(atom)), INDEX)
    operands = [dim_text(operand) for operand in atom.operands]
    match atom:
        case FloorDivAtom() | ModAtom():
            sign = "//" if isinstance(atom, FloorDivAtom) else "%"
            return Text(f"{operands[0].at(Level.PRODUCT)} {sign} {operands[1].at(Level.SIGN)}", INDEX, Level.PRODUCT)
        case MinAtom() | MaxAtom():
            return _folded(operands, f"T.{atom.spelling}({{0}}, {{1}})")
        case BroadcastAtom():
            # extents that are 1 or alike
            return _folded(operands, "(T.max({0}, {1}) * T.min({0}, 1) * T.min({1}, 1))")
        case _:
            raise TypeError(f"no such function of dimensions: {atom.spelling}")


def from_symbol(atom: Atom) -> str:
    """The name of a symbol."""
    return symbol_text(next(iter(atom.symbols)))


def _folded(operands: Sequence[Text], template: str) -> Text:
    result = operands[0].text
    for operand in operands[1:]:
        result = template.format(result, operand.text)
    return Text(result, INDEX)


def python_name(hint: str) -> str:
    """A name of Python that is like a hint, in the form that Python compares names in."""
    name = "".join(letter if f"v{letter}".isidentifier() else "_" for letter in unicodedata.normalize("NFKC", hint))
    return f"v{name}" if not name.isidentifier() or keyword.iskeyword(name) else name


MODULE_NAMES = frozenset({"I", "R", "T", "Module", "TypeVar", "annotations", "cls", "float", "range"})
"""What texts use names of modules and functions for: no function and no symbol may be called so."""

_ESCAPED = re.compile(r"__x[0-9a-f]*$")


def symbol_text(name: str) -> str:
    """A name of Python for a symbol, wherever it is written: not that of another symbol."""
    text = python_name(name)
    if text == name and name not in MODULE_NAMES and not _ESCAPED.search(name):
        return name
    return f"{text}__x{''.join(f'{ord(letter):02x}' for letter in name if not letter.isalnum())}"


def function_texts(names: Sequence[str], symbols: Iterable[str]) -> dict[str, str]:
    """The names of Python for functions of a module with these `symbols`; those that can keep theirs do."""
    taken = {*MODULE_NAMES, *map(symbol_text, symbols)}
    kept = {name: name for name in names if python_name(name) == name and name not in taken}
    given = Names({*taken, *kept})
    return kept | {name: given.fresh(name, "f") for name in names if name not in kept}


class Names:
    """The names of one function. Each is given once; that of a scope may be given again after it."""

    def __init__(self, taken: Iterable[str]):
        self._taken = {"T", "I", "range", *taken}

    def fresh(self, hint: str | None, otherwise: str) -> str:
        """A name like the hint."""
        stem = python_name(hint or otherwise)
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name

    def release(self, names: Iterable[str]) -> None:
        """These names may be given again."""
        self._taken.difference_update(names)


_WORD = re.compile(r"\w+")


@dataclass
class Suite:
    """A statement with an indented body; `grid` is the variable and extent of a loop that a grid may hold."""

    head: str
    body: list[Line]
    grid: tuple[str, str] | None = None


Line: TypeAlias = "str | Suite"


def rendered(lines: Sequence[Line], indent: str = "") -> Iterator[str]:
    """The text, one line each; perfect nests of plain loops become grids."""
    for line in lines or ["pass"]:
        if isinstance(line, str):
            yield indent + line
            continue
        nest = [line]
        while (inner := _only(nest)) is not None:
            nest.append(inner)
        if len(nest) > 1:
            pairs = [suite.grid for suite in nest if suite.grid is not None]
            variables, extents = (", ".join(column) for column in zip(*pairs, strict=True))
            yield f"{indent}for {variables} in T.grid({extents}):"
        else:
            yield indent + line.head
        yield from rendered(nest[-1].body, indent + "    ")


def _only(nest: Sequence[Suite]) -> Suite | None:
    """The plain loop that a nest of plain loops holds alone, if its extent is the same in all iterations."""
    if nest[-1].grid is None or len(nest[-1].body) != 1:
        return None
    (inner,) = nest[-1].body
    if not isinstance(inner, Suite) or inner.grid is None:
        return None
    outer = [suite.grid[0] for suite in nest if suite.grid is not None]
    return None if set(outer) & set(_WORD.findall(inner.grid[1])) else inner


class ScriptError(ValueError):
    """An op that TVMScript has no text for; the message says which, and why."""


def refuse(op: Operation, reason: str) -> ScriptError:
    """The error for an op."""
    return ScriptError(f"'{op.name}' cannot be written as TVMScript: {reason}")
