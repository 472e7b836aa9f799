"""The text of an operator's properties: `axis = 1 keepdims axes = [0, 1] shape = [n, 4]`, in the order of definition.

How a property is written follows from the attribute class that its definition admits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.hints import isa

from relax_dialect.inference import is_integers
from tir_dialect.dims import DimLike
from tir_dialect.types import DimAttr, parse_dim_expr, parse_dim_list, print_dim_list

SEGMENTS = frozenset({"operandSegmentSizes", "resultSegmentSizes"})
"""Properties that the text shows by its structure."""


def integer(value: int) -> IntegerAttr:
    """The property value of an integer."""
    return IntegerAttr(value, i64)


def integers(values: Iterable[int]) -> DenseArrayBase:
    """The property value of a list of integers."""
    return DenseArrayBase.from_list(i64, list(values))


def numbers(values: Iterable[float]) -> DenseArrayBase:
    """The property value of a list of floating-point numbers."""
    return DenseArrayBase.from_list(f64, [float(value) for value in values])


def optional_integers(values: Iterable[int] | None) -> DenseArrayBase | None:
    """The property value of a list of integers that may be absent."""
    return None if values is None else integers(values)


def number(value: float) -> FloatAttr:
    """The property value of a number."""
    return FloatAttr(value, f64)


ExactNumber: TypeAlias = FloatAttr[Float64Type] | IntegerAttr
"""The property value of a number that may be an element of any dtype: an integer that `f64` has not is kept as one."""


def exact_number(value: float) -> ExactNumber:
    """The property value of a number; `ValueError` for an integer that neither `f64` nor 64 bits hold."""
    if isinstance(value, float) or int(float(value)) == value:
        return FloatAttr(float(value), f64)
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError(f"expected an integer of 64 bits, got {value}")
    return IntegerAttr(value, i64 if value < 1 << 63 else IntegerType(64, Signedness.UNSIGNED))


def flag(value: bool) -> UnitAttr | None:
    """The property value of a flag: present or absent."""
    return UnitAttr() if value else None


def dims(values: Iterable[DimLike]) -> ArrayAttr[DimAttr]:
    """The property value of a list of dimensions."""
    return ArrayAttr([DimAttr(value) for value in values])


def parse_number(parser: Parser) -> float:
    """Parses a number: `-0.5`, `1.0e-05`, `inf`, `nan`."""
    return float(_parse_value(parser))


def _parse_value(parser: Parser) -> float:
    """Parses a number, an integer if it has no point."""
    if parser.parse_optional_keyword("nan"):
        return float("nan")
    negative = parser.parse_optional_punctuation("-") is not None
    value = float("inf") if parser.parse_optional_keyword("inf") else parser.parse_number(allow_boolean=False)
    if negative:
        return -value if value else -0.0
    return value


def format_number(value: float) -> str:
    """The text of a number, which `parse_number` reads: MLIR wants a point in every floating-point literal."""
    mantissa, exponent, power = repr(float(value)).partition("e")
    return f"{mantissa}.0{exponent}{power}" if exponent and "." not in mantissa else mantissa + exponent + power


def _print_integer(printer: Printer, value: Attribute) -> None:
    if isinstance(value, IntegerAttr):
        printer.print_int(value.value.data)


def _print_number(printer: Printer, value: Attribute) -> None:
    if isinstance(value, FloatAttr):
        printer.print_string(format_number(value.value.data))
    else:
        _print_integer(printer, value)


def _print_string(printer: Printer, value: Attribute) -> None:
    if isinstance(value, StringAttr):
        printer.print_string_literal(value.data)


def _print_numbers(printer: Printer, value: Attribute) -> None:
    if is_integers(value):
        texts = [str(element) for element in value.get_values()]
    elif isa(value, DenseArrayBase[AnyFloat]):
        texts = [format_number(element) for element in value.get_values()]
    else:
        raise TypeError(f"expected a list of numbers, got {value}")
    printer.print_string(f"[{', '.join(texts)}]")


def _print_dims(printer: Printer, value: Attribute) -> None:
    if isa(value, ArrayAttr[DimAttr]):
        print_dim_list(printer, [dim.data for dim in value])


def _print_dim(printer: Printer, value: Attribute) -> None:
    if isinstance(value, DimAttr):
        printer.print_string(str(value.data))


@dataclass(frozen=True)
class Field:
    """How one class of attributes is written."""

    parse: Callable[[Parser], Attribute]
    print: Callable[[Printer, Attribute], None]
    what: str = ""
    """What has to stand there, for messages; empty if the parser says it."""


def _parse_numbers(parser: Parser) -> DenseArrayBase:
    """Parses `[1, 2]` or `[0.5, 1.0]`: with a point, all elements are floating-point numbers."""
    values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_number)
    whole = [value for value in values if isinstance(value, int)]
    return integers(whole) if len(whole) == len(values) else numbers(values)


def _parse_exact_number(parser: Parser) -> Attribute:
    position = parser.pos
    try:
        return exact_number(_parse_value(parser))
    except ValueError as error:
        parser.raise_error(str(error), position, parser.pos)


_NUMBER = Field(lambda parser: number(parse_number(parser)), _print_number, "a number")
_EXACT_NUMBER = Field(_parse_exact_number, _print_number, "a number")
_NUMBERS = Field(_parse_numbers, _print_numbers, "numbers in brackets, such as [1, 2]")
_DIMS = Field(lambda parser: dims(parse_dim_list(parser)), _print_dims, "dimensions in brackets, such as [n, 4]")
_FLAG = Field(lambda parser: IntegerAttr.from_bool(parser.parse_boolean()), _print_integer, "true or false")
_TRUE = IntegerAttr.from_bool(True)
_FIELDS: dict[type[Attribute], Field] = {
    IntegerAttr: Field(lambda parser: integer(parser.parse_integer(allow_boolean=False)), _print_integer, "an integer"),
    FloatAttr: _NUMBER,
    StringAttr: Field(lambda parser: StringAttr(parser.parse_str_literal()), _print_string, "a string in quotes"),
    DenseArrayBase: _NUMBERS,
    ArrayAttr: _DIMS,
    DimAttr: Field(lambda parser: DimAttr(parse_dim_expr(parser)), _print_dim, "a dimension"),
}
_ANY = Field(lambda parser: parser.parse_attribute(), lambda printer, value: printer.print_attribute(value))


@cache
def _fields(op: type[IRDLOperation]) -> dict[str, Field | None]:
    """How the properties that the text of an op names are written, in the order of definition."""
    return {name: _field(op, name) for name in op.get_irdl_definition().properties if name not in SEGMENTS}


def _field(op: type[IRDLOperation], name: str) -> Field | None:
    """How the property is written; `None` for a flag, which is written by its name alone."""
    bases = op.get_irdl_definition().properties[name].constr.get_bases() or set()
    if bases == {FloatAttr, IntegerAttr}:
        return _EXACT_NUMBER
    base = next(iter(bases)) if len(bases) == 1 else Attribute
    return None if base is UnitAttr else _FIELDS.get(base, _ANY)


def parse_fields(parser: Parser, op: type[IRDLOperation]) -> dict[str, Attribute]:
    """Parses the properties that are present, in any order; a property is given once, and no other name is.

    A flag may be given a value too: `keepdims`, `keepdims = true`, `keepdims = false`. A list of axes may be called
    `axis`, as in NumPy, and of a list one number may be given where it is known what it stands for: `strides = 2`.
    """
    fields = _fields(op)
    names = [*fields]
    if _AXIS not in fields and fields.get(_AXES) is _NUMBERS:
        names.append(_AXIS)
    found: dict[str, Attribute] = {}
    while (name := parser.parse_optional_keyword_in(names)) is not None:
        synonyms = {_AXIS, _AXES} if name not in fields or (name == _AXES and _AXIS not in fields) else {name}
        names = [each for each in names if each not in synonyms]
        field = fields[_AXES] if name not in fields else fields[name]
        if field is not None:
            parser.parse_punctuation("=")
            found[name if name in fields else _AXES] = _parse_field(parser, op, name, field)
        elif not parser.parse_optional_punctuation("=") or _parse_field(parser, op, name, _FLAG) == _TRUE:
            found[name] = UnitAttr()
    # Raises an error at a word after the properties that neither ends the text of the op nor begins another one.
    text = parser.lexer.input.content
    following = _NEXT.match(text, parser.pos)
    if following is not None and (following[1] in (",", "[") or following[1][0] in "-0123456789"):
        names = ", ".join(_fields(op)) or "it has none"
        wanted = "spaces between attributes" if found else f"attributes by name ({names})"
        message = f"'{op.name}' op expected {wanted}, got '{following[1]}'"
        parser.raise_error(message, following.start(1), following.end(1))
    word = _WORD.match(text, parser.pos)
    if not (
        word is None or word[0] == "loc" or parser.ctx.get_optional_op(word[0], dialect_stack=("relax",)) is not None
    ):
        reason = "is given twice" if word[0] in found else _unknown(op, word[0])
        parser.raise_error(f"'{op.name}' op attribute {word[0]} {reason}", word.start(), word.end())
    return found


_AXIS, _AXES = "axis", "axes"


def _parse_field(parser: Parser, op: type[IRDLOperation], name: str, field: Field) -> Attribute:
    """Parses what follows `name =`."""
    rest = _NEXT.match(parser.lexer.input.content, parser.pos)
    start = parser.pos if rest is None else rest.start(1)
    got = "the end of the text" if rest is None else f"'{rest[1]}'"
    message = f"'{op.name}' op attribute {name} expected {field.what}, got {got}"
    if field in (_NUMBERS, _DIMS) and rest is not None and rest[1] != "[":
        count = 1 if name in (_AXIS, _AXES) else _count(op, name)
        if field is _NUMBERS and count and (value := parser.parse_optional_integer(allow_boolean=False)) is not None:
            return integers([value] * count)
        if field is _DIMS and count:
            return dims([parse_dim_expr(parser)] * count)
        parser.raise_error(message, start, start + len(rest[1]))
    try:
        return field.parse(parser)
    except ParseError as error:
        if not field.what or error.span.start != start or parser.pos > start:
            raise
        parser.raise_error(message, start, error.span.end)


def _count(op: type[IRDLOperation], name: str) -> int:
    """For how many numbers of a list one stands; 0 if it stands for none."""
    rank = getattr(op, "RANK", 0)  # of operators with windows, the number of spatial dimensions
    return 2 * rank if name == "padding" else rank


_NEXT = re.compile(r"(?:\s|//[^\n]*)*+([\w.$-]+|\S)")
_WORD = re.compile(r"[A-Za-z_][\w.$]*")


def _unknown(op: type[IRDLOperation], word: str) -> str:
    """Why a word is wrong that stands among the properties of an op."""
    if not (names := _fields(op)):
        return "is unknown, it has none"
    close = "".join(f"; did you mean {each}?" for each in get_close_matches(word, names, n=1))
    return f"is unknown, expected one of {', '.join(names)}{close}"


def print_fields(printer: Printer, op: type[IRDLOperation], properties: Mapping[str, Attribute]) -> None:
    """Prints the properties that differ from their defaults."""
    definitions = op.get_irdl_definition().properties
    for name, field in _fields(op).items():
        value = properties.get(name)
        if value is None or value == definitions[name].default_value:
            continue
        printer.print_string(f" {name}")
        if field is not None:
            printer.print_string(" = ")
            field.print(printer, value)
