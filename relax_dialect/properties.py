"""The properties of an op, read as what its definition says they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeGuard, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_dtype

AttributeT = TypeVar("AttributeT", bound=Attribute)


def is_integers(attribute: Attribute) -> TypeGuard[DenseArrayBase[IntegerType]]:
    """Whether an attribute is a list of integers; `isa` would build a constraint for it on each call."""
    return isinstance(attribute, DenseArrayBase) and isinstance(attribute.parameters[0], IntegerType)


class Properties:
    """The properties that an op has or will have; one that is absent has its default."""

    def __init__(self, op: type[IRDLOperation], properties: Mapping[str, Attribute]):
        self.op = op
        self.properties = properties

    def fail(self, message: str) -> NoReturn:
        """Raises `VerifyException`: the op can never be right."""
        raise VerifyException(f"'{self.op.name}' op {message}")

    def get(self, name: str, kind: type[AttributeT]) -> AttributeT | None:
        """The property `name`, or its default; `None` if it is absent."""
        found = self.properties.get(name)
        if found is None:
            found = self.op.get_irdl_definition().properties[name].default_value
        if found is not None and not isinstance(found, kind):
            self.fail(f"property {name} expected {kind.name}, got {found}")
        return found

    def require(self, name: str, kind: type[AttributeT]) -> AttributeT:
        """The property `name`, which has to be there."""
        found = self.get(name, kind)
        if found is None:
            self.fail(f"expected a property {name}")
        return found

    def integer(self, name: str) -> int:
        """The integer property `name`."""
        return self.require(name, IntegerAttr).value.data

    def optional_integer(self, name: str) -> int | None:
        """The integer property `name`, if it is present."""
        found = self.get(name, IntegerAttr)
        return None if found is None else found.value.data

    def integers(self, name: str) -> tuple[int, ...]:
        """The property `name`, a list of integers."""
        found = self.require(name, DenseArrayBase)
        if not is_integers(found):
            self.fail(f"property {name} expected integers, got {found}")
        return tuple(found.get_values())

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """The property `name`, a list of integers, if it is present."""
        return self.integers(name) if self.get(name, DenseArrayBase) is not None else None

    def dims(self, name: str) -> tuple[Dim, ...]:
        """The property `name`, a list of dimensions."""
        return tuple(attribute.data for attribute in self.require(name, ArrayAttr) if isinstance(attribute, DimAttr))

    def dim(self, name: str) -> Dim:
        """The property `name`, a dimension."""
        return self.require(name, DimAttr).data

    def flag(self, name: str) -> bool:
        """Whether the flag `name` is set."""
        return self.get(name, UnitAttr) is not None

    def number(self, name: str) -> float:
        """The property `name`, a number: of any dtype, or of `f64`."""
        found = self.require(name, Attribute)
        if not isinstance(found, FloatAttr | IntegerAttr):
            self.fail(f"property {name} expected a number, got {found}")
        return found.value.data

    def string(self, name: str) -> str:
        """The string property `name`."""
        return self.require(name, StringAttr).data

    def optional_string(self, name: str) -> str | None:
        """The string property `name`, if it is present."""
        found = self.get(name, StringAttr)
        return None if found is None else found.data

    def dtype(self, name: str) -> Attribute:
        """The property `name`, an element type."""
        found = self.require(name, Attribute)
        if not is_dtype(found):
            self.fail(f"property {name} expected an element type, got {found}")
        return found

    def axis(self, value: int, rank: int) -> int:
        """`value` counted from the front; negative ones count from the back. Fails if it is out of range."""
        if not -rank <= value < rank:
            self.fail(f"axis {value} is out of range for rank {rank}")
        return value % rank

    def axes(self, values: Iterable[int], rank: int) -> tuple[int, ...]:
        """The axes counted from the front; fails if one is out of range or given twice."""
        axes = tuple(self.axis(value, rank) for value in values)
        if len(set(axes)) != len(axes):
            self.fail(f"expected each axis once, got [{', '.join(map(str, axes))}]")
        return axes
