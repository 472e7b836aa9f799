"""What the six kinds of structural information have in common: the base class and the shape they may carry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.attributes import parse_dim_expr
from tir_dialect.dims import Dim, DimLike, to_dim
from tir_dialect.dtypes import is_dtype

Shape: TypeAlias = tuple[Dim | None, ...] | None
"""What is known about a shape: `None` if not even the rank is; an unknown dimension is `None`."""

ShapeLike: TypeAlias = Sequence[DimLike | None] | None
"""How a shape may be written in Python; a string is a symbol or an expression over symbols."""


class StructInfo(TypeAttribute):
    """Structural information: the type of a relax value (specification, "Structural Information in Relax")."""


def parse_struct_info(parser: AttrParser) -> StructInfo:
    """Parses one structural information; any other type is an error."""
    position = parser.pos
    parsed = parser.parse_type()
    if not isinstance(parsed, StructInfo):
        parser.raise_error(f"expected a relax type, got {parsed}", position)
    return parsed


def as_struct_infos(types: Iterable[Attribute]) -> tuple[StructInfo, ...]:
    """The types as structural information; raises `VerifyException` for any other type."""
    infos: list[StructInfo] = []
    for info in types:
        if not isinstance(info, StructInfo):
            raise VerifyException(f"expected a relax type, got {info}")
        infos.append(info)
    return tuple(infos)


def verify_dtype(dtype: Attribute, owner: str) -> None:
    """Raises `VerifyException` unless `dtype` is an element type of the dtype table."""
    if not is_dtype(dtype):
        raise VerifyException(f"'{owner}' type expected an element type, got {dtype}")


@irdl_attr_definition
class PartialShapeAttr(Data[Shape]):
    """What is known about a shape: `[n, 4 * m]`, `[n, _]` (second dimension unknown) or `*` (nothing known)."""

    name = "relax.partial_shape"

    @staticmethod
    def of(shape: ShapeLike) -> PartialShapeAttr:
        """The attribute of a shape given as integers, symbol names, dimensions or `None`."""
        if shape is None:
            return PartialShapeAttr(None)
        return PartialShapeAttr(tuple(None if dim is None else to_dim(dim) for dim in shape))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        with parser.in_angle_brackets():
            return parse_shape(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.data)


def parse_shape(parser: AttrParser) -> Shape:
    """Parses `*` or `[d, _, ...]`; `?` is read as `_`."""
    if parser.parse_optional_punctuation("*"):
        return None

    def dimension() -> Dim | None:
        is_unknown = parser.parse_optional_keyword("_") or parser.parse_optional_punctuation("?")
        if is_unknown:
            return None
        position, dim = parser.pos, parse_dim_expr(parser)
        if (value := dim.constant_value) is not None and value < 0:
            parser.raise_error(f"expected a size of at least 0, or _ for any, got {value}", position)
        return dim

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, dimension, " in a shape"))


def print_shape(printer: Printer, shape: Shape) -> None:
    """Prints what `parse_shape` reads."""
    if shape is None:
        printer.print_string("*")
        return

    printer.print_string(f"[{', '.join('_' if dim is None else str(dim) for dim in shape)}]")


def known_dims(shape: Shape) -> tuple[Dim, ...] | None:
    """The dimensions if every one is known, else `None`."""
    if shape is None:
        return None
    dims = tuple(dim for dim in shape if dim is not None)
    return dims if len(dims) == len(shape) else None


def shape_symbols(shape: Shape) -> Iterable[str]:
    """The symbols that the known dimensions use, in order of occurrence, with repetitions."""
    for dim in shape or ():
        if dim is not None:
            yield from dim.symbols
