"""The value-like kinds: object, tensor, shape, prim and tuple. Functions are in `functions`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, NoneAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relax_dialect.struct_info.base import (
    PartialShapeAttr,
    Shape,
    ShapeLike,
    StructInfo,
    known_dims,
    parse_shape,
    parse_struct_info,
    print_shape,
    verify_dtype,
)
from relax_dialect.struct_info.sharding import ShardingAttr
from tir_dialect.attributes import DimAttr, parse_dim_expr
from tir_dialect.dims import Dim, DimLike, to_dim


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
