"""Types of VM values."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import (
    Float64Type,
    IntAttr,
    IntegerType,
    NoneAttr,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from vm_dialect.dtypes import ELEMENT_TYPES, ElementType

I64 = IntegerType(64)
I1 = IntegerType(1)
F64 = Float64Type()


def dtype_name(dtype: Attribute) -> str | None:
    """The name of a builtin element type in `vm_dialect.dtypes`; `None` if the run time has no such type."""
    name = str(dtype)
    return name if name in ELEMENT_TYPES else None


def _parse_unknown(parser: AttrParser) -> bool:
    return parser.parse_optional_keyword("_") is not None


def parse_rank(parser: AttrParser) -> IntAttr | NoneAttr:
    """`2` or `_`."""
    return NoneAttr() if _parse_unknown(parser) else IntAttr(parser.parse_integer(allow_boolean=False))


def print_rank(printer: Printer, rank: IntAttr | NoneAttr) -> None:
    """`2` or `_`."""
    printer.print_string("_" if isinstance(rank, NoneAttr) else str(rank.data))


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """A tensor on the CPU: `!vm.tensor<2, f32>`; rank and dtype may be `_`, unknown.

    C1: the rank is not negative.
    C2: the dtype is one that the run time has.
    """

    name = "vm.tensor"

    rank_attr: IntAttr | NoneAttr = param_def()
    dtype: Attribute = param_def()

    def __init__(self, rank: int | None = None, dtype: Attribute | None = None):
        super().__init__(NoneAttr() if rank is None else IntAttr(rank), NoneAttr() if dtype is None else dtype)

    @property
    def rank(self) -> int | None:
        """Number of dimensions; `None` if unknown."""
        return None if isinstance(self.rank_attr, NoneAttr) else self.rank_attr.data

    @property
    def element(self) -> ElementType | None:
        """The run time's element type; `None` if unknown."""
        return None if isinstance(self.dtype, NoneAttr) else ELEMENT_TYPES[str(self.dtype)]

    @override
    def verify(self) -> None:
        if self.rank is not None and self.rank < 0:
            raise VerifyException(f"'vm.tensor' expected a rank >= 0, got {self.rank}")  # C1
        if not isinstance(self.dtype, NoneAttr) and dtype_name(self.dtype) is None:
            raise VerifyException(f"'vm.tensor' has no element type {self.dtype} at run time")  # C2

    @override
    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            rank = parse_rank(parser)
            parser.parse_punctuation(",")
            return rank, NoneAttr() if _parse_unknown(parser) else parser.parse_type()

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_rank(printer, self.rank_attr)
            printer.print_string(", ")
            if isinstance(self.dtype, NoneAttr):
                printer.print_string("_")
            else:
                printer.print_attribute(self.dtype)


@irdl_attr_definition
class ShapeType(ParametrizedAttribute, TypeAttribute):
    """A shape: `!vm.shape<2>`; the rank may be `_`, unknown.

    C1: the rank is not negative.
    """

    name = "vm.shape"

    rank_attr: IntAttr | NoneAttr = param_def()

    def __init__(self, rank: int | None = None):
        super().__init__(NoneAttr() if rank is None else IntAttr(rank))

    @property
    def rank(self) -> int | None:
        """Number of dimensions; `None` if unknown."""
        return None if isinstance(self.rank_attr, NoneAttr) else self.rank_attr.data

    @override
    def verify(self) -> None:
        if self.rank is not None and self.rank < 0:
            raise VerifyException(f"'vm.shape' expected a rank >= 0, got {self.rank}")  # C1

    @override
    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parse_rank(parser),)

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_rank(printer, self.rank_attr)


@irdl_attr_definition
class StorageType(ParametrizedAttribute, TypeAttribute):
    """Raw memory of one call, into which tensors are placed: `!vm.storage`."""

    name = "vm.storage"


@irdl_attr_definition
class ObjectType(ParametrizedAttribute, TypeAttribute):
    """Any run-time value (tensor, shape, tuple, function, number, string, null): `!vm.object`."""

    name = "vm.object"


OBJECT = ObjectType()
STORAGE = StorageType()


def is_subtype(value: Attribute, expected: Attribute) -> bool:
    """Whether every value of type `value` is one of type `expected`.

    `!vm.object` is the top of all but `!vm.storage`, which never leaves its call; unknown rank or dtype contains the
    known ones.
    """
    if value == expected:
        return True
    match value, expected:
        case (StorageType(), _):
            return False
        case (_, ObjectType()):
            return True
        case (TensorType(), TensorType()):
            return expected.rank in (None, value.rank) and (
                isinstance(expected.dtype, NoneAttr) or expected.dtype == value.dtype
            )
        case (ShapeType(), ShapeType()):
            return expected.rank is None
        case _:
            return False
