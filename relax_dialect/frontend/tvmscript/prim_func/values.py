"""What expressions of PrimFuncs stand for, beside numbers and dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from tir_dialect import te
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import lanes_of
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

Place: TypeAlias = "Scalar | Dim"
"""An index, or an end of a range."""

_ZERO = constant(0)


@dataclass(frozen=True, eq=False)
class Buffer:
    """A buffer: the value, and the tensor that stands for it in expressions."""

    value: SSAValue[BufferType]
    tensor: te.Tensor
    lanes: int | None = None
    """The lanes of an element, which is a row along a last dimension that the text has not."""
    extents: tuple[Place, ...] | None = None
    """The shape of memory at an address, where the program computes it: the value is one row then."""
    steps: tuple[Place, ...] = ()
    """The strides that go with `extents`, in elements."""
    base: Buffer | None = None
    """The buffer that this one is a part of, by `T.match_buffer`: they have one `data`."""
    start: Place = _ZERO
    """Where the part begins, in elements behind the `data` of the base."""

    @property
    def type(self) -> BufferType:
        """Shape, dtype and layout."""
        return self.value.type

    @property
    def rank(self) -> int:
        """How many indices an element has."""
        return self.type.rank - (self.lanes is not None) if self.extents is None else len(self.extents)

    @staticmethod
    def of(value: SSAValue[BufferType], name: str, lanes: int | None = None) -> Buffer:
        """A buffer under a name."""
        kind = value.type
        return Buffer(value, te.Tensor(name, kind.shape, lookup(kind.dtype).type), lanes)


@dataclass(frozen=True, eq=False)
class Cell:
    """A name that the text assigns more than once: memory of its own for a scalar or vector."""

    buffer: Buffer


@dataclass(frozen=True)
class Declared:
    """What a text declares a buffer to be: its type, and the lanes of its elements if they are vectors."""

    type: BufferType
    lanes: int | None = None
    start: str = ""
    """The name that a parameter gives the place of its first element, which is 0 here."""


@dataclass(frozen=True)
class Axis:
    """One dimension of a region: a point, or a range with a step."""

    lower: Place | Vector
    upper: Place | None = None
    step: int = 1

    @property
    def is_point(self) -> bool:
        """Whether it is one place."""
        return self.upper is None and not isinstance(self.lower, Vector)


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a buffer, or a vector of its elements."""

    buffer: Buffer
    axes: tuple[Axis, ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is a row of elements, not one."""
        return not all(axis.is_point for axis in self.axes)


@dataclass(eq=False)
class Pointer:
    """Memory that has no shape yet: `T.allocate`, or the data of a buffer, from an element of its dtype on."""

    extent: Dim
    dtype: Attribute
    scope: str
    buffer: Buffer | None = None
    start: Place = _ZERO

    @property
    def is_whole(self) -> bool:
        """Whether it begins with the first element."""
        return isinstance(self.start, Dim) and self.start.constant_value == 0


def pointer_to(buffer: Buffer) -> Pointer:
    """The memory of a buffer, from its first element on."""
    return Pointer(product(buffer.type.shape), buffer.type.dtype, buffer.type.scope, buffer)


def data_of(buffer: Buffer) -> Pointer:
    """What the text calls `data`: of a part of a buffer, the memory of the whole."""
    return pointer_to(buffer) if buffer.base is None else data_of(buffer.base)


@dataclass(frozen=True, eq=False)
class Handle:
    """A parameter that `T.match_buffer` makes a buffer of."""

    name: str


@dataclass(frozen=True, eq=False)
class Vector:
    """Several lanes of a dtype."""

    value: SSAValue
    dtype: DType

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return lanes_of(self.value.type) or 1
