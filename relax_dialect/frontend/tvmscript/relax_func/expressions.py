"""Expressions of relax functions: they emit ops where the builder stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i64
from xdsl.ir import Attribute, OpResult

from relax_dialect.builder import expr as builder_operators
from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.operator_signs import COMPARISONS, OPERATORS, UNARY
from relax_dialect.frontend.tvmscript.relax_func.operators import call_operator
from relax_dialect.frontend.tvmscript.text.captured import is_python
from relax_dialect.frontend.tvmscript.text.errors import Source, TVMScriptError
from relax_dialect.frontend.tvmscript.text.evaluator import is_number, items_of
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.program import Program
from relax_dialect.frontend.tvmscript.text.recovery import BUILD_ERRORS, at_ops, build_error
from relax_dialect.frontend.tvmscript.text.scope import FunctionRef, ModuleRef, Scope
from relax_dialect.frontend.tvmscript.text.static import StaticReader, describe
from relax_dialect.frontend.tvmscript.text.typed_numbers import dtype_of
from relax_dialect.frontend.tvmscript.text.types import TypeReader
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.values import DTypeOp, PrimOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.subtype import Verdict, is_subtype
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from relax_dialect.verifiers import Violations
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim

T = TypeVar("T")


class ShapeDims(tuple[Dim, ...]):
    """A shape value of which all dimensions are known; it becomes an op where a value is needed."""


class ExpressionReader(StaticReader):
    """Reads the expressions of one function."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope, builder: BlockBuilder, program: Program):
        super().__init__(source, aliases, scope)
        self.builder = builder
        self.program = program
        self.types = TypeReader(self)
        self.expected: StructInfo | None = None
        """The annotation of what is being read, if it has one."""
        self.in_dataflow = False

    def emit(self, node: ast.AST, make: Callable[[], T]) -> T:
        """The result of building something, with errors at the place of `node`."""
        return self.source.built(node, make, BUILD_ERRORS)

    @contextmanager
    def errors_at(self, node: ast.AST) -> Generator[None]:
        """Gives errors of the end of a scope the place of `node`, or that of the op which breaks a rule."""
        try:
            yield
        except TVMScriptError:
            raise
        except Violations as error:
            raise at_ops(self.source, node, error.violations) from error
        except BUILD_ERRORS as error:
            raise build_error(self.source, node, self.builder.functions.module, error) from error

    # What names and operators mean

    def name(self, node: ast.Name) -> object:
        if node.id not in self.scope and node.id in self.program:
            return FunctionRef(node.id)
        if node.id not in self.scope and self.program.is_module(node.id):
            return ModuleRef()
        return super().name(node)

    def binary(self, node: ast.BinOp, left: object, right: object) -> object:
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return super().binary(node, left, right)
        return self.arithmetic(node, OPERATORS[type(node.op)], left, right)

    def arithmetic(self, node: ast.AST, name: str, left: object, right: object) -> Expr:
        """The result of a binary operator, at least one of whose sides is a value of the program."""
        left, right = self._alike(node, left, right), self._alike(node, right, left)
        return self.emit(node, lambda: builder_operators.binary(name, self._side(node, left), self._side(node, right)))

    def _alike(self, node: ast.AST, value: object, other: object) -> object:
        """A prim value beside a tensor as a tensor of rank 0."""
        beside_tensor = isinstance(other, Expr) and isinstance(other.type, TensorType)
        is_prim = isinstance(value, Dim) or (isinstance(value, Expr) and isinstance(value.type, PrimType))
        if not beside_tensor or not is_prim:
            return value
        return self.scalar_tensor(node, self.expr(node, value))

    def _side(self, node: ast.AST, value: object) -> object:
        if isinstance(value, Expr) and not isinstance(value.type, TensorType | PrimType):
            return self.refine(node, value, TensorType(None, None))
        if isinstance(value, Expr) and value.type == PrimType(i64):
            return self._as_symbol(node, value)
        return value if is_number(value) or isinstance(value, Dim) else self.expr(node, value)

    def unary(self, node: ast.UnaryOp, operand: object) -> object:
        if not isinstance(operand, Expr):
            return super().unary(node, operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        return self.emit(node, lambda: builder_operators.unary(UNARY[type(node.op)], operand))

    def compare(self, node: ast.Compare, kind: ast.cmpop, left: object, right: object) -> object:
        name = COMPARISONS.get(type(kind))
        if name is None or not any(isinstance(side, Expr | Dim) for side in (left, right)):
            return super().compare(node, kind, left, right)
        if not any(isinstance(side, Expr) and not isinstance(side.type, PrimType) for side in (left, right)):
            # of numbers that are known when the program runs
            left, right = (self.scalar_tensor(node, self.expr(node, side)) for side in (left, right))
        return self.emit(node, lambda: builder_operators.binary(name, self._side(node, left), self._side(node, right)))

    def scalar_tensor(self, node: ast.AST, value: Expr) -> Expr:
        """A prim value as a tensor of rank 0."""
        full = function_of(operator_classes()["relax.full"])
        dtype = value.type.dtype if isinstance(value.type, PrimType) else None
        return self.emit(node, lambda: full([], value, dtype))

    def attribute(self, node: ast.Attribute) -> object:
        found = self.aliases.resolve(node)
        if found is not None and found[0] not in ("math", "numpy"):
            if (dtype := self.types.scalar(node)) is not None:
                return dtype
            self.fail(node, "expected a value; a name of R or T is called, as in R.exp(x)")
        if is_python(self.aliases, self.scope, node):
            return self.unsupported(node)
        owner = self.value(node.value)
        if isinstance(owner, Expr) and isinstance(owner.type, ObjectType) and node.attr in ("shape", "dtype", "ndim"):
            owner = self.refine(node, owner, TensorType(None, None))
        if isinstance(owner, ModuleRef):
            return self._function(node, node.attr)
        if isinstance(owner, Expr):
            return self._property(node, owner)
        self.fail(node, f"{describe(owner)} has no {node.attr}")

    def _function(self, node: ast.AST, name: str) -> FunctionRef:
        if name not in self.program:
            self.fail(node, f"the module has no function {name}{self.program.suggestion(name)}")
        return FunctionRef(name)

    def _property(self, node: ast.Attribute, owner: Expr) -> object:
        match node.attr:
            case "shape":
                known = owner.type.known_dims if isinstance(owner.type, TensorType) else None
                if known is not None:
                    return ShapeDims(known)
                return self.emit(node, lambda: function_of(operator_classes()["relax.shape_of"])(owner))
            case "dtype" if isinstance(owner.type, TensorType | PrimType) and owner.type.dtype is not None:
                return owner.type.dtype
            case "ndim" if isinstance(owner.type, TensorType) and owner.type.rank is not None:
                return owner.type.rank
            case "ty" | "struct_info":
                return owner  # of which Python code asks for shape, dtype or ndim
            case _:
                self.fail(node, f"a value has no {node.attr}; values have shape, dtype, ndim and astype")

    def subscript(self, node: ast.Subscript) -> object:
        owner = self.value(node.value)
        if isinstance(owner, Expr):
            index = self._index(node.slice)
            return self.emit(node, lambda: owner[index])
        return super().subscript(node)

    def _index(self, node: ast.expr) -> object:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(each) for each in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if each is None else self.value(each) for each in ends))
        if isinstance(node, ast.Constant) and node.value in (..., None):
            return node.value
        return self.value(node)

    def call(self, node: ast.Call) -> object:
        from relax_dialect.frontend.tvmscript.relax_func.calls import FORMS, call_function

        node = self.meant_call(node)
        name = self.aliases.name_in("relax", node.func)
        if name is None and (self.aliases.resolve(node.func) or is_python(self.aliases, self.scope, node.func)):
            return super().call(node)
        if name is None and isinstance(node.func, ast.Attribute) and node.func.attr == "get_global_var" and node.args:
            return self._function(node.args[0], self.text(node.args[0]))
        if name is None:
            with self.implicit(False):
                return call_function(self, node)
        form = FORMS.get(name)
        return call_operator(self, node, name) if form is None else form(self, node)

    # Values of the program

    def expr(self, node: ast.AST, value: object) -> Expr:
        """What stands for a value of the program, as one."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, ShapeDims):
            return self.emit(node, lambda: function_of(operator_classes()["relax.shape"])(list(value)))
        if (items := () if value is None else items_of(value)) is not None:
            fields = [self.expr(node, each) for each in items]
            made = self.emit(node, lambda: self.builder.insert(TupleOp(*(field.value for field in fields))))
            return self.builder.expr(made.result)
        if isinstance(value, bool | int | float | Dim):
            return self.emit(node, lambda: self.builder.prim(value, dtype_of(value)))
        if isinstance(value, str):
            return self.emit(node, lambda: function_of(operator_classes()["relax.string"])(value))
        if isinstance(value, FunctionRef):
            return self.program.function_value(self, node, value.name)
        if isinstance(value, Attribute) and not isinstance(value, StructInfo):
            return self.emit(node, lambda: function_of(operator_classes()["relax.dtype"])(value))
        self.fail(node, f"expected a value, got {describe(value)}")

    def read(self, node: ast.expr) -> Expr:
        """An expression as a value of the program."""
        return self.expr(node, self.value(node))

    def fields(self, node: ast.AST, value: object) -> Sequence[object]:
        """The values of a tuple or list."""
        if (items := items_of(value)) is not None:
            return items
        if isinstance(value, Expr) and isinstance(value.type, TupleType):
            return self.emit(node, lambda: tuple(value))
        return (value,)

    def shape(self, node: ast.AST, value: object) -> list[Dim] | Expr:
        """A shape: its dimensions, or a value of the program; a tensor stands for its own shape."""
        if isinstance(value, Expr):
            if isinstance(value.type, TensorType):
                return self.emit(node, lambda: function_of(operator_classes()["relax.shape_of"])(value))
            return value if isinstance(value.type, ShapeType) else self.refine(node, value, ShapeType(None))
        if (items := items_of(value)) is not None:
            return [self.to_dim(node, each) for each in items]
        return [self.to_dim(node, value)]

    def to_dim(self, node: ast.AST, value: object) -> Dim:
        if isinstance(value, Expr) and isinstance(value.type, PrimType):
            if value.type.value is not None:
                return value.type.value
            if value.type.dtype == i64:
                return self._as_symbol(node, value).dim
        return super().to_dim(node, value)

    def _as_symbol(self, node: ast.AST, value: Expr) -> Expr:
        """An integer of which nothing is known, as a dimension with a name of its own."""
        name = self.builder.fresh_symbol(value.value.name_hint or "s")
        refined = self.emit(node, lambda: self.builder.match_cast(value, PrimType(i64, name)))
        for known in [each for each in self.scope.names() if self.scope.find(each) is value]:
            self.scope.bind(known, refined)
        return refined

    def known(self, node: ast.AST, value: Expr) -> object:
        """The number or dimension that a scalar is known to be."""
        if isinstance(value.type, PrimType) and value.type.value is not None:
            return value.type.value.constant_value if value.type.value.is_constant else value.type.value
        op = value.value.owner
        if isinstance(value.value, OpResult) and isinstance(op, PrimOp) and not isinstance(op.value, DimAttr):
            scalar: IntegerAttr | FloatAttr = op.value
            return scalar.value.data
        self.fail(node, f"expected what is known when the text is read, got a value of type {value.type}")

    def dtype(self, node: ast.expr) -> Attribute:
        """A dtype: its name, `T.float32`, that of a value, or a dtype value that is known when the text is read."""
        if self.aliases.name_in("tir", node) is not None or (isinstance(node, ast.Name) and node.id not in self.scope):
            return super().dtype(node)
        value = self.value(node)
        if not isinstance(value, Expr):
            return value if isinstance(value, Attribute) else super().dtype(node)
        op = value.value.owner
        if not isinstance(op, DTypeOp):
            self.fail(
                node, "expected the name of a dtype: what a tensor has is part of the compiled program, no value of it"
            )
        return op.value

    def refine(self, node: ast.AST, value: Expr, info: StructInfo) -> Expr:
        """The value with a type that says at least `info`: itself if it does, else checked at run time."""
        verdict = is_subtype(value.type, info, None)
        if verdict is Verdict.YES:
            return value
        if verdict is Verdict.NEVER:
            self.fail(node, f"expected a value of type {info}, got {value.type}")
        return self.emit(node, lambda: self.builder.match_cast(value, info))
