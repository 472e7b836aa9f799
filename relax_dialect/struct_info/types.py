"""The kinds of structural information: object, tensor, shape, prim, tuple and function.

A function type is a closure's with a signature, or an opaque packed function's with an optional derive function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr, i64
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relax_dialect.struct_info.sharding import ShardingAttr
from tir_dialect.dims import Dim, DimLike, to_dim
from tir_dialect.dtypes import is_dtype
from tir_dialect.types import DimAttr, SymbolAttr, parse_dim_expr, parse_symbol, print_bounds

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


@irdl_attr_definition
class ObjectType(ParametrizedAttribute, StructInfo):
    """`!relax.object`: any value; the top of the order."""

    name = "relax.object"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        # xDSL's own rule reads any list, and then fails to make the type.
        if parser.parse_optional_punctuation("<") is not None:
            parser.raise_error("'relax.object' type has no parameters")
        return ()


@irdl_attr_definition
class TensorType(ParametrizedAttribute, StructInfo):
    """`!relax.tensor<[n, 4], f32>`: a tensor; shape, rank and dtype may be unknown (`[n, _]`, `*`, `_`).

    A device, if the program names one, is written `!relax.tensor<[n], f32, "cuda:0">`. How
    workers share it stands at the end: `!relax.tensor<[n], f32, sharding<x = 2: S[0]>>`; the shape is the global one.
    """

    name = "relax.tensor"

    shape: PartialShapeAttr
    dtype_attr: Attribute
    device_attr: Attribute
    sharding_attr: Attribute

    def __init__(
        self,
        shape: ShapeLike | PartialShapeAttr = None,
        dtype: Attribute | None = None,
        device: str | None = None,
        sharding: ShardingAttr | None = None,
    ):
        super().__init__(
            shape if isinstance(shape, PartialShapeAttr) else PartialShapeAttr.of(shape),
            NoneAttr() if dtype is None else dtype,
            NoneAttr() if device is None else StringAttr(device),
            NoneAttr() if sharding is None else sharding,
        )

    @property
    def dims(self) -> Shape:
        """The dimensions: `None` where unknown, and `None` altogether if the rank is."""
        return self.shape.data

    @property
    def known_dims(self) -> tuple[Dim, ...] | None:
        """The dimensions if all are known, else `None`."""
        return known_dims(self.shape.data)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if known."""
        return None if self.shape.data is None else len(self.shape.data)

    @property
    def dtype(self) -> Attribute | None:
        """The element type, if known."""
        return None if isinstance(self.dtype_attr, NoneAttr) else self.dtype_attr

    @property
    def device(self) -> str | None:
        """The device that the program names, if any."""
        return self.device_attr.data if isinstance(self.device_attr, StringAttr) else None

    @property
    def sharding(self) -> ShardingAttr | None:
        """How workers share the tensor, if the program says that."""
        return self.sharding_attr if isinstance(self.sharding_attr, ShardingAttr) else None

    def with_shape(self, shape: ShapeLike) -> TensorType:
        """The same dtype, device and sharding with another shape."""
        return TensorType(shape, self.dtype, self.device, self.sharding)

    def with_dtype(self, dtype: Attribute | None) -> TensorType:
        """The same shape, device and sharding with another dtype."""
        return TensorType(self.shape, dtype, self.device, self.sharding)

    def with_sharding(self, sharding: ShardingAttr | None) -> TensorType:
        """The same tensor, shared by workers in another way."""
        return TensorType(self.shape, self.dtype, self.device, sharding)

    def verify(self) -> None:
        if not isinstance(self.dtype_attr, NoneAttr):
            verify_dtype(self.dtype_attr, self.name)
        if isinstance(self.sharding_attr, ShardingAttr):
            self.sharding_attr.verify_rank(self.rank)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = PartialShapeAttr(parse_shape(parser))
            parser.parse_punctuation(",", " between the shape and the dtype: !relax.tensor<[4, n], f32>")
            dtype = NoneAttr() if parser.parse_optional_keyword("_") else parser.parse_type()
            more = parser.parse_optional_punctuation(",") is not None
            device: Attribute = NoneAttr()
            if more and (name := parser.parse_optional_str_literal()) is not None:
                device = StringAttr(name)
                more = parser.parse_optional_punctuation(",") is not None
            sharding: Attribute = NoneAttr()
            if more:
                parser.parse_keyword("sharding", ", or a string for a device")
                sharding = ShardingAttr(ShardingAttr.parse_parameter(parser))
        return shape, dtype, device, sharding

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.shape.data)
            printer.print_string(", ")
            if self.dtype is None:
                printer.print_string("_")
            else:
                printer.print_attribute(self.dtype)
            if self.device is not None:
                printer.print_string(", ")
                printer.print_string_literal(self.device)
            if self.sharding is not None:
                printer.print_string(", sharding")
                self.sharding.print_parameter(printer)


@irdl_attr_definition
class ShapeType(ParametrizedAttribute, StructInfo):
    """`!relax.shape<[n, m]>`: a shape value; `[_, _]` if only its length is known, `*` if nothing is."""

    name = "relax.shape"

    shape: PartialShapeAttr

    def __init__(self, shape: ShapeLike | PartialShapeAttr = None):
        super().__init__(shape if isinstance(shape, PartialShapeAttr) else PartialShapeAttr.of(shape))

    @property
    def dims(self) -> Shape:
        """The values: `None` where unknown, and `None` altogether if the length is."""
        return self.shape.data

    @property
    def known_dims(self) -> tuple[Dim, ...] | None:
        """The values if all are known, else `None`."""
        return known_dims(self.shape.data)

    @property
    def rank(self) -> int | None:
        """The length, if known."""
        return None if self.shape.data is None else len(self.shape.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (PartialShapeAttr(parse_shape(parser)),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.shape.data)


@irdl_attr_definition
class PrimType(ParametrizedAttribute, StructInfo):
    """`!relax.prim<i64, n + 1>`: an immutable scalar; the value may be given for `i64`."""

    name = "relax.prim"

    dtype: Attribute
    value_attr: Attribute

    def __init__(self, dtype: Attribute = i64, value: DimLike | None = None):
        super().__init__(dtype, NoneAttr() if value is None else DimAttr(to_dim(value)))

    @property
    def value(self) -> Dim | None:
        """The value as a dimension, if it is known."""
        return self.value_attr.data if isinstance(self.value_attr, DimAttr) else None

    @property
    def symbol(self) -> str | None:
        """The name of the symbol whose value this is, if the value is one bare symbol."""
        return None if self.value is None else self.value.as_symbol

    def verify(self) -> None:
        verify_dtype(self.dtype, self.name)
        if self.value is not None and self.dtype != i64:
            raise VerifyException(f"'relax.prim' type carries a value only for i64, got {self.dtype}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dtype = parser.parse_type()
            value = DimAttr(parse_dim_expr(parser)) if parser.parse_optional_punctuation(",") else NoneAttr()
        return dtype, value

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.dtype)
            if self.value is not None:
                printer.print_string(", ")
                printer.print_string(str(self.value))


@irdl_attr_definition
class TupleType(ParametrizedAttribute, StructInfo):
    """`!relax.tuple<A, B>`: an immutable fixed-length grouping; `!relax.tuple<>` is what an effect returns."""

    name = "relax.tuple"

    fields_attr: ArrayAttr[StructInfo]

    def __init__(self, fields: Iterable[StructInfo] = ()):
        super().__init__(ArrayAttr(tuple(fields)))

    @property
    def fields(self) -> tuple[StructInfo, ...]:
        """The types of the fields."""
        return self.fields_attr.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        fields = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_struct_info(parser))
        return (ArrayAttr(fields),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.fields, printer.print_attribute)


def parse_symbol_declaration(parser: AttrParser) -> SymbolAttr:
    """Parses `n` or `n in [1, 2048]`."""
    return parse_symbol(parser, parser.parse_identifier(" as a symbol"))


def parse_symbol_declarations(parser: AttrParser) -> list[SymbolAttr]:
    """Parses `[n, m in [1, 2048]]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_symbol_declaration(parser))


def print_symbol_declaration(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints what `parse_symbol_declaration` reads."""
    printer.print_string(symbol.symbol.data)
    print_bounds(printer, symbol)


@irdl_attr_definition
class FuncType(ParametrizedAttribute, StructInfo):
    """`!relax.func<[n](!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure>`: a function value.

    The bracketed symbols are bound by the call, hence local to the type; every other symbol is the surrounding
    scope's. A packed function, of which no parameters are known, is written `!relax.func<* -> R, impure>`, or
    `!relax.func<* derive "name", impure>` if its result is computed by the derive function of that name.
    """

    name = "relax.func"

    symbols_attr: ArrayAttr[SymbolAttr]
    params_attr: ArrayAttr[StructInfo]
    ret: StructInfo
    opaque_attr: IntAttr
    pure_attr: IntAttr
    derive_attr: Attribute

    def __init__(
        self,
        params: Iterable[StructInfo] | None,
        ret: StructInfo | None = None,
        *,
        pure: bool | None = None,
        symbols: Iterable[SymbolAttr | str] = (),
        derive: str | None = None,
    ):
        """Parameters `None` means opaque; then the default is impure, otherwise pure."""
        super().__init__(
            ArrayAttr(tuple(SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols)),
            ArrayAttr(tuple(params or ())),
            ObjectType() if ret is None else ret,
            IntAttr(int(params is None)),
            IntAttr(int(params is not None if pure is None else pure)),
            NoneAttr() if derive is None else StringAttr(derive),
        )

    @property
    def opaque(self) -> bool:
        """Whether nothing is known about the parameters, as of a packed function."""
        return self.opaque_attr.data != 0

    @property
    def pure(self) -> bool:
        """Whether calls have no visible effect but their result."""
        return self.pure_attr.data != 0

    @property
    def params(self) -> tuple[StructInfo, ...]:
        """The parameter types; empty if the function is opaque."""
        return self.params_attr.data

    @property
    def symbols(self) -> tuple[SymbolAttr, ...]:
        """The symbols that a call binds."""
        return self.symbols_attr.data

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols that a call binds."""
        return tuple(symbol.symbol.data for symbol in self.symbols_attr)

    @property
    def derive(self) -> str | None:
        """The name of the derive function that computes the result of a call, if there is one."""
        return self.derive_attr.data if isinstance(self.derive_attr, StringAttr) else None

    def verify(self) -> None:
        if len(set(self.symbol_names)) != len(self.symbols):
            raise VerifyException(f"'relax.func' type binds a symbol twice: {', '.join(self.symbol_names)}")
        if self.opaque and (self.params or self.symbols):
            raise VerifyException("'relax.func' type is opaque, so it has neither parameters nor symbols")
        if self.derive is not None and not self.opaque:  # specification, well-formedness 17
            raise VerifyException("'relax.func' type has both parameters and a derive function, expected one of them")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_func_type_body(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_signature(printer, self)
            printer.print_string(", pure" if self.pure else ", impure")


def _parse_optional_purity(parser: AttrParser) -> bool | None:
    if not parser.parse_optional_punctuation(","):
        return None
    return parser.parse_keyword_in(("pure", "impure")) == "pure"


def parse_func_type_body(parser: AttrParser) -> FuncType:
    """Parses what stands between the angle brackets of a function type."""
    if parser.parse_optional_punctuation("*"):
        derive = parser.parse_str_literal() if parser.parse_optional_keyword("derive") else None
        ret = parse_struct_info(parser) if parser.parse_optional_punctuation("->") else None
        return FuncType(None, ret, pure=_parse_optional_purity(parser), derive=derive)
    symbols = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_symbol_declaration(parser)
    )
    params = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_struct_info(parser))
    parser.parse_punctuation("->")
    ret = parse_struct_info(parser)
    return FuncType(params, ret, pure=_parse_optional_purity(parser), symbols=symbols or ())


def _print_signature(printer: Printer, func: FuncType) -> None:
    if func.opaque:
        printer.print_string("*")
        if func.derive is not None:
            printer.print_string(" derive ")
            printer.print_string_literal(func.derive)
    else:
        if func.symbols:
            with printer.in_square_brackets():
                printer.print_list(func.symbols, lambda symbol: print_symbol_declaration(printer, symbol))
        with printer.in_parens():
            printer.print_list(func.params, printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(func.ret)
