"""Types and attributes of the tir dialect: buffers, loop and iterator kinds, dimensions in IR text (`#tir.dim<...>`),
the attribute of a symbol that a function binds, and names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from tir_dialect.dims import Dim, DimLike, constant, is_symbol_name, to_dim, total
from tir_dialect.dims.expr import parse_tokens
from tir_dialect.dtypes import ElementType, byte_size, is_dtype, scalar_type


class _ParserSource:
    """The tokens of an MLIR parser, for the grammar of dimensions."""

    def __init__(self, parser: AttrParser) -> None:
        self._parser = parser

    def take(self, punctuation: str) -> bool:
        return self._parser.parse_optional_characters(punctuation) is not None

    def integer(self) -> int | None:
        return self._parser.parse_optional_integer(allow_boolean=False, allow_negative=False)

    def identifier(self) -> str | None:
        return self._parser.parse_optional_identifier()

    def mark(self) -> int:
        return self._parser.pos

    def error(self, message: str, mark: int) -> NoReturn:
        if mark == self._parser.pos:
            self._parser.raise_error(message)
        self._parser.raise_error(message, mark, self._parser.pos)


def parse_dim_expr(parser: AttrParser) -> Dim:
    """Parses a bare dimension, `4 * n + 1`; ParseError at the token that does not fit."""
    return parse_tokens(_ParserSource(parser))


def parse_dim_list(parser: AttrParser) -> tuple[Dim, ...]:
    """Parses `[n, 4 * m]`; the list may be empty."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_expr(parser)))


def parse_optional_dim_list(parser: AttrParser) -> tuple[Dim, ...] | None:
    """Parses `[n, 4 * m]` if the next token is `[`."""
    dims = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_expr(parser))
    return None if dims is None else tuple(dims)


def print_dim(printer: Printer, dim: Dim) -> None:
    """Prints a bare dimension, `4 * n + 1`."""
    printer.print_string(str(dim))


def print_dim_list(printer: Printer, dims: Sequence[Dim]) -> None:
    """Prints `[n, 4 * m]`."""
    with printer.in_square_brackets():
        printer.print_list(dims, lambda dim: print_dim(printer, dim))


@irdl_attr_definition
class DimAttr(Data[Dim]):
    """A symbolic dimension: `#tir.dim<4 * n + 1>`. Attributes of equal dimensions are equal."""

    name = "tir.dim"

    def __init__(self, dim: DimLike) -> None:
        super().__init__(to_dim(dim))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dim:
        """Parses `<4 * n + 1>`."""
        with parser.in_angle_brackets():
            return parse_dim_expr(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<4 * n + 1>`."""
        with printer.in_angle_brackets():
            print_dim(printer, self.data)


Interval: TypeAlias = tuple[int, int | None]


@irdl_attr_definition
class SymbolAttr(ParametrizedAttribute):
    """`#tir.symbol<n in [1, 2048]>`: a symbol that a prim_func binds, with its inclusive bounds.

    Without bounds the value is any integer >= 0; in `[1, _]` there is no upper bound.
    """

    name = "tir.symbol"

    symbol: StringAttr
    lower_attr: IntAttr
    upper_attr: IntAttr | NoneAttr

    def __init__(self, symbol: str, lower: int = 0, upper: int | None = None):
        super().__init__(StringAttr(symbol), IntAttr(lower), NoneAttr() if upper is None else IntAttr(upper))

    @property
    def interval(self) -> Interval:
        """Least and greatest value, both inclusive; `None` is unbounded."""
        return self.lower_attr.data, self.upper_attr.data if isinstance(self.upper_attr, IntAttr) else None

    def verify(self) -> None:
        if not is_symbol_name(self.symbol.data):
            raise VerifyException(f"'{self.symbol.data}' cannot name a symbol")
        lower, upper = self.interval
        if lower < 0 or (upper is not None and upper < lower):
            raise VerifyException(f"symbol {self.symbol.data} has empty or negative bounds [{lower}, {upper}]")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_symbol(parser, parser.parse_identifier(" as a symbol")).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.symbol.data)
            print_bounds(printer, self)


def parse_symbol(parser: AttrParser, name: str) -> SymbolAttr:
    """Parses the bounds of a symbol, `in [1, 2048]`, if there are any."""
    if parser.parse_optional_keyword("in") is None:
        return SymbolAttr(name)
    with parser.in_square_brackets():
        lower = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation(",")
        upper = None if parser.parse_optional_keyword("_") else parser.parse_integer(allow_boolean=False)
    return SymbolAttr(name, lower, upper)


def print_bounds(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints ` in [1, 2048]`, or nothing if the symbol is any integer >= 0."""
    lower, upper = symbol.interval
    if (lower, upper) != (0, None):
        printer.print_string(f" in [{lower}, {'_' if upper is None else upper}]")


_NUMBER = re.compile(r"(_\d+)+$")
"""What xDSL takes off a name, once each time that it is copied."""


def as_name_hint(name: str | None) -> str | None:
    """The name as the hint of a value, without numbers at its end; `None` if nothing is left, or it is no identifier of
    MLIR's, which is ASCII.

    xDSL makes an empty hint of `_1`, which it then refuses to copy.
    """
    if name is None or not name.isascii() or not SSAValue.is_valid_name(name):
        return None
    return _NUMBER.sub("", name) or None


GLOBAL_SCOPE = "global"
"""The scope of buffers that say nothing else: ordinary memory."""

SCOPES = (GLOBAL_SCOPE, "local")
"""The kinds of memory that processors have; what is local lives in registers or on the stack if its size is known."""

_HOST_SCOPES = {"": "global", "global": "global", "local": "local", "shared": "global", "warp": "global"}


def host_scope(scope: str) -> str | None:
    """The scope used on a CPU for a memory scope of TVM such as `shared.dyn`; `None` for an unknown scope.

    The memory spaces of a GPU are ordinary memory here.
    """
    return _HOST_SCOPES.get(scope.partition(".")[0])


class LoopKind(StrEnum):
    """How the iterations of a `tir.for` run."""

    SERIAL = "serial"
    """In order."""
    PARALLEL = "parallel"
    """On several threads, in any order."""
    VECTORIZED = "vectorized"
    """As the lanes of vector instructions."""
    UNROLLED = "unrolled"
    """In order, unrolled to straight-line code."""
    THREAD_BINDING = "thread_binding"
    """On the hardware threads that the tag names."""


@irdl_attr_definition
class LoopKindAttr(EnumAttribute[LoopKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a loop: `#tir<loop_kind parallel>`."""

    name = "tir.loop_kind"


class IteratorKind(StrEnum):
    """How the instances of a block that differ in one iterator are related."""

    SPATIAL = "spatial"
    """Independent: each instance writes its own elements."""
    REDUCE = "reduce"
    """A reduction: instances update the same elements by an associative and commutative operation."""
    SCAN = "scan"
    """A recurrence: instances have to run in order."""
    OPAQUE = "opaque"
    """Unknown."""

    @property
    def is_reduced(self) -> bool:
        """Whether instances that differ in the iterator update the same result, which the first of them initialises."""
        return self in (IteratorKind.REDUCE, IteratorKind.SCAN)


@irdl_attr_definition
class IteratorKindAttr(EnumAttribute[IteratorKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a block iterator: `#tir<iterator_kind reduce>`."""

    name = "tir.iterator_kind"


def row_major_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The strides, in elements, of a compact row-major buffer."""
    strides: list[Dim] = []
    step = constant(1)
    for dim in reversed(shape):
        strides.append(step)
        step = step * dim
    return tuple(reversed(strides))


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`!tir.buffer<[n, 4], f32, strides = [8, 1], offset = 2, scope = "local", align = 64>`: typed memory.

    Element `[i, j]` is at `offset + i * stride0 + j * stride1` elements after the base address. By default strides are
    row-major, the offset is 0, the scope is `global`, and the alignment of the base address (in bytes) is the size of
    an element. Default strides are dropped from the type, so that equal layouts are equal types. Memory that a function
    allocates has the alignment of its type; a parameter only has to be aligned to its element size.

    C1: the element type is one of `tir_dialect.dtypes`.
    C2: there are as many strides as dimensions.
    C3: the alignment is a power of two and at least the size of an element.
    C4: a constant extent is not negative.
    """

    name = "tir.buffer"

    shape_attr: ArrayAttr[DimAttr]
    dtype: Attribute
    strides_attr: ArrayAttr[DimAttr] | NoneAttr
    offset_attr: DimAttr
    scope_attr: StringAttr
    align_attr: IntAttr

    def __init__(
        self,
        shape: Sequence[DimLike],
        dtype: Attribute,
        *,
        strides: Sequence[DimLike] | None = None,
        offset: DimLike = 0,
        scope: str = GLOBAL_SCOPE,
        align: int | None = None,
    ):
        dims = tuple(to_dim(dim) for dim in shape)
        steps = None if strides is None else tuple(to_dim(stride) for stride in strides)
        if steps == row_major_strides(dims):
            steps = None
        if align is None:
            align = byte_size(dtype) if is_dtype(dtype) else 1
        super().__init__(
            ArrayAttr([DimAttr(dim) for dim in dims]),
            dtype,
            NoneAttr() if steps is None else ArrayAttr([DimAttr(step) for step in steps]),
            DimAttr(offset),
            StringAttr(scope),
            IntAttr(align),
        )

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The extents."""
        return tuple(dim.data for dim in self.shape_attr)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape_attr)

    @property
    def element_type(self) -> ElementType:
        """The type of a loaded element: the dtype, but integers are signless."""
        return scalar_type(self.dtype)

    @property
    def strides(self) -> tuple[Dim, ...]:
        """The strides in elements, explicit or default."""
        if isinstance(self.strides_attr, NoneAttr):
            return row_major_strides(self.shape)
        return tuple(stride.data for stride in self.strides_attr)

    @property
    def has_default_strides(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
        return isinstance(self.strides_attr, NoneAttr)

    @property
    def is_compact(self) -> bool:
        """Whether it has default strides and the offset 0, so that its elements are one block of memory."""
        return self.has_default_strides and not self.offset.terms

    @property
    def span(self) -> Dim:
        """The number of elements from the first to the last one in memory, gaps included."""
        return total((1, *((dim - 1) * stride for dim, stride in zip(self.shape, self.strides, strict=True))))

    @property
    def offset(self) -> Dim:
        """The offset of the first element from the base address, in elements."""
        return self.offset_attr.data

    @property
    def scope(self) -> str:
        """The memory scope: one of `SCOPES`, or a name that other tools know."""
        return self.scope_attr.data

    @property
    def align(self) -> int:
        """The alignment of the base address in bytes."""
        return self.align_attr.data

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols in shape, strides and offset."""
        dims = [*self.shape_attr, self.offset_attr]
        if isinstance(self.strides_attr, ArrayAttr):
            dims += self.strides_attr
        return frozenset[str]().union(*(dim.data.symbols for dim in dims))

    def with_scope(self, scope: str) -> BufferType:
        """The type in another memory scope."""
        return BufferType(
            self.shape, self.dtype, strides=self.strides, offset=self.offset, scope=scope, align=self.align
        )

    def substitute(self, values: Mapping[str, DimLike]) -> BufferType:
        """The type with symbols replaced by dimensions."""
        if self.symbols.isdisjoint(values):
            return self
        return BufferType(
            [dim.substitute(values) for dim in self.shape],
            self.dtype,
            strides=[stride.substitute(values) for stride in self.strides],
            offset=self.offset.substitute(values),
            scope=self.scope,
            align=self.align,
        )

    def verify(self) -> None:
        if not is_dtype(self.dtype):
            raise VerifyException(f"'tir.buffer' has unsupported dtype {self.dtype}")  # C1
        if isinstance(self.strides_attr, ArrayAttr) and len(self.strides_attr) != self.rank:
            raise VerifyException(f"'tir.buffer' expected {self.rank} strides, got {len(self.strides_attr)}")  # C2
        align, size = self.align, byte_size(self.dtype)
        if align < size or align & (align - 1):
            raise VerifyException(
                f"'tir.buffer' alignment expected a power of two of at least {size}, got {align}"
            )  # C3
        for axis, dim in enumerate(self.shape):
            if dim.constant_value is not None and dim.constant_value < 0:
                raise VerifyException(f"'tir.buffer' dimension {axis} is negative: {dim}")  # C4

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            shape = parse_dim_list(parser)
            parser.parse_punctuation(",")
            dtype = parser.parse_type()
            strides, offset, scope, align = None, constant(0), GLOBAL_SCOPE, None
            while parser.parse_optional_punctuation(",") is not None:
                key = parser.parse_keyword_in(("strides", "offset", "scope", "align"), " in buffer type")
                parser.parse_punctuation("=")
                match key:
                    case "strides":
                        strides = parse_dim_list(parser)
                    case "offset":
                        offset = parse_dim_expr(parser)
                    case "scope":
                        scope = parser.parse_str_literal()
                    case _:
                        align = parser.parse_integer(allow_boolean=False, allow_negative=False)
        try:
            buffer = BufferType(shape, dtype, strides=strides, offset=offset, scope=scope, align=align)
        except VerifyException as error:
            parser.raise_error(str(error), start, parser.pos)
        return buffer.parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_dim_list(printer, self.shape)
            printer.print_string(", ")
            printer.print_attribute(self.dtype)
            if not self.has_default_strides:
                printer.print_string(", strides = ")
                print_dim_list(printer, self.strides)
            if self.offset.terms:
                printer.print_string(f", offset = {self.offset}")
            if self.scope != GLOBAL_SCOPE:
                printer.print_string(", scope = ")
                printer.print_string_literal(self.scope)
            if self.align != byte_size(self.dtype):
                printer.print_string(f", align = {self.align}")


def buffer_type(value: SSAValue) -> BufferType:
    """The type of a buffer; `ValueError` for another value."""
    if not isinstance(value.type, BufferType):
        raise ValueError(f"expected a buffer, got a value of type {value.type}")
    return value.type


BYTES = 1 << 8
"""How many values a byte has."""


def is_byte_table(kind: BufferType) -> bool:
    """Whether a buffer has bytes in one dimension, side by side, of which every byte is the index of one."""
    lies_flat = len(kind.shape) == 1 and kind.has_default_strides and not kind.offset.terms
    return lies_flat and byte_size(kind.dtype) == 1 and kind.shape[0].constant_value == BYTES
