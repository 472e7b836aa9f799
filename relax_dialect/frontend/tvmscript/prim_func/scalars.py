"""Scalars of PrimFuncs: what operators mean, as trees of `te`, which are emitted where a statement needs them."""

from __future__ import annotations

import ast
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import reduce
from typing import TypeVar

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.prim_func.operators import COMPARISONS, OPERATORS
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import logical_and, logical_not, logical_or
from relax_dialect.frontend.tvmscript.prim_func.values import Region, Vector
from relax_dialect.frontend.tvmscript.text import evaluator
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.static import StaticReader, describe
from tir_dialect.dims import Dim
from tir_dialect.te import nodes
from tir_dialect.te.emit.scalar import Names, ScalarEmitter
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.signs import Signs

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
        """The result of building something, with errors at the place of `node`."""
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
            case _ if _is_row(operand):
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
        if any(_is_row(value) for value in values):
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


def _is_row(value: object) -> bool:
    return isinstance(value, Vector) or (isinstance(value, Region) and value.is_vector)


def _is_python(value: object) -> bool:
    return isinstance(value, str | tuple) or type(value).__module__ == "numpy"


def _is_static(value: object) -> bool:
    return evaluator.is_number(value) or isinstance(value, Dim)
