"""What expressions of PrimFuncs stand for, and the reader of scalars: operators, indices and conditions."""

from __future__ import annotations

import ast
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript import evaluator
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import (
    COMPARISONS,
    OPERATORS,
    converted,
    logical_and,
    logical_not,
    logical_or,
    promoted,
)
from relax_dialect.frontend.tvmscript.scopes import Scope, describe
from relax_dialect.frontend.tvmscript.source import Aliases, Source
from relax_dialect.frontend.tvmscript.static import StaticReader
from tir_dialect import te
from tir_dialect.dims import Dim, constant, product, symbol
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import lanes_of
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_float
from tir_dialect.te.emit_scalar import Names, ScalarEmitter, Signs, dim_of, emit_dim
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.nodes import post_order
from tir_dialect.types import BufferType

Index: TypeAlias = "Scalar | Dim"
"""An index, or an end of a range."""

_ZERO = constant(0)


@dataclass(frozen=True, eq=False)
class Buffer:
    """A buffer: the value, and the tensor that stands for it in expressions."""

    value: SSAValue[BufferType]
    tensor: te.Tensor
    lanes: int | None = None
    """The lanes of an element, which lie along a last dimension that the text has not."""
    extents: tuple[Index, ...] | None = None
    """The shape of memory at an address, where the program computes it: the value has one dimension then."""
    steps: tuple[Index, ...] = ()
    """The strides that go with `extents`, in elements."""
    base: Buffer | None = None
    """The buffer that this one is a part of, by `T.match_buffer`: they have one `data`."""
    start: Index = _ZERO
    """Where the part begins, in elements after the `data` of the base."""

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
class MutableVariable:
    """A name that the text assigns more than once: memory of its own for a scalar or vector."""

    buffer: Buffer


@dataclass(frozen=True)
class Declared:
    """What a text declares a buffer to be: its type, and the lanes of its elements if they are vectors."""

    type: BufferType
    lanes: int | None = None
    start: str = ""
    """The name that a parameter gives the offset of its first element, which is 0 here."""


@dataclass(frozen=True)
class Axis:
    """One dimension of a region: a point, or a range with a step."""

    lower: Index | Vector
    upper: Index | None = None
    step: int = 1

    @property
    def is_point(self) -> bool:
        """Whether it is one index."""
        return self.upper is None and not isinstance(self.lower, Vector)


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a buffer, or a vector of its elements."""

    buffer: Buffer
    axes: tuple[Axis, ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is a vector of elements, not one."""
        return not all(axis.is_point for axis in self.axes)


@dataclass(eq=False)
class Pointer:
    """Memory that has no shape yet: `T.allocate`, or the data of a buffer, from an element of its dtype on."""

    extent: Dim
    dtype: Attribute
    scope: str
    buffer: Buffer | None = None
    start: Index = _ZERO

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


def whole(buffer: Buffer) -> Region:
    """All of a buffer."""
    return Region(buffer, tuple(Axis(constant(0), dim) for dim in buffer.type.shape))


def known_difference(one: Scalar, other: Scalar) -> int | None:
    """`one - other`, if it is the same for all values of the variables."""
    found: dict[Scalar, Dim] = {}
    for scalar in post_order((one, other)):
        # A scalar as a dimension; what is none stands for itself.
        if isinstance(scalar, nodes.Size):
            found[scalar] = scalar.dim
        else:
            known = None
            if isinstance(scalar, nodes.Apply):
                known = dim_of(scalar.function, [found[operand] for operand in scalar.operands])
            found[scalar] = symbol(f"value_{len(found)}_") if known is None else known
    return (found[one] - found[other]).constant_value


T = TypeVar("T")

BUILD_ERRORS = (
    VerifyException,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    ZeroDivisionError,
    struct.error,
)
"""What `te` and op classes raise for a program that is wrong."""


class ScalarReader(ABC, StaticReader):
    """Reads operators between scalars, and emits scalars at the end of the current block."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope):
        super().__init__(source, aliases, scope)
        self._own_source = source
        self.block = Block()
        self.names = Names()
        self.axes: tuple[nodes.IterVar, ...] = ()
        self.mask: Vector | None = None
        """The lanes for which memory is read, in the side of a choice that only some lanes take."""
        self.pointers: set[Scalar] = set()
        """The integers that the text says to be pointers."""
        self.wants_value = True
        """Whether anything is done with the value of a call."""
        self.wide: set[str] = set()
        """The names of indices that have 64 bits in TVM."""

    @contextmanager
    def reading_in(self, scope: Scope) -> Generator[None]:
        """Looks names up in another scope for a while, which may belong to another text."""
        before = self.scope, self.source
        self.scope, self.source = scope, scope.source or self._own_source
        try:
            yield
        finally:
            self.scope, self.source = before

    def emit(self, node: ast.AST, make: Callable[[], T]) -> T:
        """The result of building something, with errors at the position of `node`."""
        return self.source.built(node, make, BUILD_ERRORS)

    def insert(self, op: Operation) -> SSAValue:
        """Appends an op with one result."""
        self.block.add_op(op)
        return op.results[0]

    def values(self, node: ast.AST, *scalars: Scalar) -> tuple[SSAValue, ...]:
        """Emits scalars; what they load is read here."""
        return self.emit(node, lambda: ScalarEmitter(self.block, self.names, Signs(self.axes)).emit(*scalars))

    def variable(self, value: SSAValue, dtype: DType, name: str = "v") -> Scalar:
        """A value as a scalar."""
        variable = nodes.Var(name, dtype)
        self.names.variables[variable] = value
        return variable

    @abstractmethod
    def load(self, node: ast.AST, region: Region) -> Scalar:
        """The element at a point."""

    @abstractmethod
    def apply(self, node: ast.AST, name: str, *operands: object) -> object:
        """A function by its name, of scalars or, lane by lane, of vectors."""

    def binary(self, node: ast.BinOp, left: object, right: object) -> object:
        if all(_is_static(each) or _is_python(each) for each in (left, right)):
            return super().binary(node, left, right)
        if isinstance(node.op, ast.Div):
            return self.apply(node, "Divide", left, right)
        name = OPERATORS.get(type(node.op))
        if name is None:
            self.fail(node, f"the operator {type(node.op).__name__} has no meaning between scalars")
        return self.apply(node, name, left, right)

    def unary(self, node: ast.UnaryOp, operand: object) -> object:
        if _is_static(operand) and not (isinstance(operand, Dim) and isinstance(node.op, ast.Not)):
            return super().unary(node, operand)
        match node.op:
            case ast.USub():
                return self.apply(node, "Negative", operand)
            case ast.UAdd():
                return operand
            case ast.Invert():
                return self.apply(node, "bitwise_not", operand)
            case _ if _is_vector(operand):
                return self.apply(node, "Not", operand)
            case _:
                return self.emit(node, lambda: logical_not(self.scalar_operand(node, operand)))

    def compare(self, node: ast.Compare, kind: ast.cmpop, left: object, right: object) -> object:
        if (found := evaluator.compare(kind, left, right)) is not None:
            return found
        name = COMPARISONS.get(type(kind))
        if name is None:
            self.fail(node, "expected one of == != < <= > >=")
        return self.apply(node, name, left, right)

    def comparison(self, node: ast.Compare) -> object:
        if len(node.ops) == 1:
            return super().comparison(node)
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(one, [op], [other]) for one, op, other in zip(sides, node.ops, sides[1:], strict=False)]
        chain = ast.BoolOp(ast.And(), [ast.copy_location(pair, node) for pair in pairs])
        return self.connective(ast.copy_location(chain, node))

    def connective(self, node: ast.BoolOp) -> object:
        combine = logical_and if isinstance(node.op, ast.And) else logical_or
        values = [self.value(each) for each in node.values]
        if any(_is_vector(value) for value in values):
            name = "And" if isinstance(node.op, ast.And) else "Or"
            return reduce(lambda one, other: self.apply(node, name, one, other), values)
        operands = [self.scalar_operand(each, value) for each, value in zip(node.values, values, strict=True)]
        result = operands[-1]
        for operand in reversed(operands[:-1]):
            following = result
            result = self.emit(node, lambda operand=operand, following=following: combine(operand, following))
        return result

    def scalar_operand(self, node: ast.AST, value: object) -> Scalar | Dim | float:
        """A scalar, a dimension or a number."""
        if isinstance(value, Scalar | Dim | bool | int | float):
            return value
        if isinstance(value, Region) and not value.is_vector:
            return self.load(node, value)
        self.fail(node, f"expected a scalar, got {describe(value)}")

    def read_scalar(self, node: ast.expr) -> Scalar | Dim | float:
        """An expression that is a scalar."""
        return self.scalar_operand(node, self.value(node))

    # Indices and conditions

    def index(self, node: ast.AST, value: object) -> Scalar | Dim:
        """A value as an index."""
        operand = self.scalar_operand(node, value)
        if isinstance(operand, bool | float):
            self.fail(node, f"expected an integer as index, got {operand}")
        if isinstance(operand, Scalar) and is_float(operand.dtype):
            self.fail(node, f"expected an integer as index, got a scalar of {operand.dtype}")
        if isinstance(operand, int):
            return constant(operand)
        return operand if isinstance(operand, Dim) else self.emit(node, lambda: converted(operand, INDEX))

    def index_value(self, node: ast.AST, value: object) -> SSAValue:
        """An index as a value of the program."""
        index = self.index(node, value)
        if isinstance(index, Dim):
            return self.dim_value(node, index)
        return self.values(node, index)[0]

    def dim_value(self, node: ast.AST, dim: Dim) -> SSAValue:
        """A dimension as a value of the program."""
        known = dim.constant_value
        if known is not None:
            return self.insert(arith.ConstantOp(IntegerAttr(known, IndexType())))
        return self.emit(node, lambda: emit_dim(self.insert, dim, self.names))

    def scalar_value(self, node: ast.AST, value: object, dtype: DType | None = None) -> SSAValue:
        """A scalar, of `dtype` if that is given, as a value of the program."""
        operand = self.scalar_operand(node, value)
        scalar = self.emit(node, lambda: promoted(operand)[0] if dtype is None else converted(operand, dtype))
        return self.values(node, scalar)[0]

    def condition(self, node: ast.expr) -> SSAValue:
        """An expression as a truth value of the program."""
        operand = self.scalar_operand(node, self.value(node))
        if isinstance(operand, bool):
            return self.values(node, te.const(operand, "i1"))[0]
        return self.values(node, self.emit(node, lambda: te.cast(promoted(operand)[0], "i1")))[0]

    def to_dim(self, node: ast.AST, value: object) -> Dim:
        return super().to_dim(node, value.dim if isinstance(value, nodes.Size) else value)


def _is_vector(value: object) -> bool:
    return isinstance(value, Vector) or (isinstance(value, Region) and value.is_vector)


def _is_python(value: object) -> bool:
    return isinstance(value, str | tuple) or type(value).__module__ == "numpy"


def _is_static(value: object) -> bool:
    return evaluator.is_number(value) or isinstance(value, Dim)
