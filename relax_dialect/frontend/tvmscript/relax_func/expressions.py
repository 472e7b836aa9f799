"""Expressions of relax functions and calls of operators: they emit ops where the builder stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i64
from xdsl.ir import Attribute, OpResult
from xdsl.irdl import IRDLOperation

from relax_dialect.builder import expr as builder_operators
from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import Kind, Parameter, function_of, operator_classes, parameters_of
from relax_dialect.frontend.tvmscript.evaluator import is_number, items_of
from relax_dialect.frontend.tvmscript.program import BUILD_ERRORS, Program, at_ops, build_error
from relax_dialect.frontend.tvmscript.relax_func.operators import (
    COMPARISONS,
    FUNCTIONS,
    OPERATOR_NAMES,
    OPERATORS,
    REFUSED_OPERATORS,
    RESULTS,
    SIGNATURES,
    SYNONYMS,
    UNARY,
    relax_op,
)
from relax_dialect.frontend.tvmscript.scopes import FunctionRef, ModuleRef, Scope, describe, dtype_of
from relax_dialect.frontend.tvmscript.source import Aliases, Source, TVMScriptError, suggestion
from relax_dialect.frontend.tvmscript.static import StaticReader, is_python
from relax_dialect.frontend.tvmscript.types import TypeReader
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.values import DTypeOp, PrimOp
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, StructInfo, TensorType, TupleType
from relax_dialect.traits import Violations
from tir_dialect.dims import Dim
from tir_dialect.dtypes import parse_dtype
from tir_dialect.types import DimAttr

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
        """The result of building something, with errors at the position of `node`."""
        return self.source.built(node, make, BUILD_ERRORS)

    @contextmanager
    def errors_at(self, node: ast.AST) -> Generator[None]:
        """Gives errors of the end of a scope the position of `node`, or that of the op which breaks a rule."""
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
        full = relax_op("full")
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
            return self.function_ref(node, node.attr)
        if isinstance(owner, Expr):
            return self._property(node, owner)
        self.fail(node, f"{describe(owner)} has no {node.attr}")

    def function_ref(self, node: ast.AST, name: str) -> FunctionRef:
        """A function of the module by its name."""
        if name not in self.program:
            self.fail(node, f"the module has no function {name}{self.program.suggestion(name)}")
        return FunctionRef(name)

    def _property(self, node: ast.Attribute, owner: Expr) -> object:
        match node.attr:
            case "shape":
                known = owner.type.known_dims if isinstance(owner.type, TensorType) else None
                if known is not None:
                    return ShapeDims(known)
                return self.emit(node, lambda: relax_op("shape_of")(owner))
            case "dtype" if isinstance(owner.type, TensorType | PrimType) and owner.type.dtype is not None:
                return owner.type.dtype
            case "ndim" if isinstance(owner.type, TensorType) and owner.type.rank is not None:
                return owner.type.rank
            case "ty" | "struct_info":
                return owner  # of which Python code asks for shape, dtype or ndim
            case _:
                self.fail(node, f"a value has no {node.attr}; values have shape, dtype, ndim and astype")

    def item(self, node: ast.Subscript, found: object) -> object:
        if isinstance(found, Expr):
            index = self._index(node.slice)
            return self.emit(node, lambda: found[index])
        return super().item(node, found)

    def _index(self, node: ast.expr) -> object:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(each) for each in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if each is None else self.value(each) for each in ends))
        if isinstance(node, ast.Constant) and node.value in (..., None):
            return node.value
        return self.value(node)

    # Values of the program

    def expr(self, node: ast.AST, value: object) -> Expr:
        """What stands for a value of the program, as one."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, ShapeDims):
            return self.emit(node, lambda: relax_op("shape")(list(value)))
        if (items := () if value is None else items_of(value)) is not None:
            fields = [self.expr(node, each) for each in items]
            made = self.emit(node, lambda: self.builder.insert(TupleOp(*(field.value for field in fields))))
            return self.builder.expr(made.result)
        if isinstance(value, bool | int | float | Dim):
            return self.emit(node, lambda: self.builder.prim(value, dtype_of(value)))
        if isinstance(value, str):
            return self.emit(node, lambda: relax_op("string")(value))
        if isinstance(value, FunctionRef):
            return self.program.function_value(self, node, value.name)
        if isinstance(value, Attribute) and not isinstance(value, StructInfo):
            return self.emit(node, lambda: relax_op("dtype")(value))
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
                return self.emit(node, lambda: relax_op("shape_of")(value))
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


Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"
"""Reads a call of `R.<name>` that is no plain call of an operator."""


def rank_of(reader: ExpressionReader, node: ast.AST, value: Expr) -> int:
    """The rank of a tensor, which has to be known."""
    rank = value.type.rank if isinstance(value.type, TensorType) else None
    if rank is None:
        reader.fail(node, f"expected a tensor of known rank, got {value.type}")
    return rank


def operator_class(name: str) -> type[IRDLOperation] | None:
    """The op class of `R.<name>`."""
    return operator_classes().get(f"relax.{OPERATOR_NAMES.get(name, name)}")


def call_operator(reader: ExpressionReader, node: ast.Call, name: str) -> object:
    """The result of `R.<name>(...)`: an expression, or a tuple of the results."""
    cls = operator_class(name)
    if cls is None:
        reason = REFUSED_OPERATORS.get(name) or REFUSED_OPERATORS.get(name.partition(".")[0])
        if reason is not None:
            reader.fail(node.func, reason)
        known = [each.removeprefix("relax.") for each in operator_classes()]
        reader.fail(node.func, f"there is no operator R.{name}{suggestion(name, known)}")
    ours = OPERATOR_NAMES.get(name, name)
    parameters = {parameter.source.name: parameter for parameter in parameters_of(cls)}
    names, defaults = _signature(ours, cls)
    given = reader.arguments(node, f"R.{name}", names, _renamed(names), ("ty_args",))
    values: dict[str, object] = {}
    for each in names:
        if (argument := given.get(each)) is not None:
            if each in parameters:
                values[each] = convert(reader, argument, parameters[each])
            else:
                values |= _other(reader, argument, ours, each)
        elif each in defaults and each in parameters:
            text = defaults[each]
            parameter = parameters[each]
            if parameter.kind is Kind.DTYPE:
                values[each] = parse_dtype(text)
            else:
                value: object = ast.literal_eval(text)
                values[each] = _as_annotated(value, parameter)
    made = _variant(ours, values) or cls
    required = [each for each, parameter in parameters.items() if parameter.source.default is parameter.source.empty]
    values |= _implied(ours, values)
    for each in required:
        if each not in values:
            reader.fail(node, f"R.{name} expected the argument {each}")
    make = FUNCTIONS.get(ours) or _function_of(made)
    result = reader.emit(node, lambda: make(**values))
    adapt = RESULTS.get(ours)
    return result if adapt is None else reader.emit(node, lambda: adapt(result, values))


@cache
def _signature(name: str, cls: type[IRDLOperation]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The parameters in TVM's order, and TVM's defaults where ours are others."""
    row = SIGNATURES.get(name)
    if row is None:
        return tuple(parameter.source.name for parameter in parameters_of(cls)), {}
    pairs = [each.partition("=") for each in row.split()]
    return tuple(first for first, _, _ in pairs), {first: last for first, sign, last in pairs if sign}


_function_of = cache(function_of)


@cache
def _renamed(names: Sequence[str]) -> Mapping[str, str]:
    """TVM's names of these parameters, as far as they are not the same."""
    found = {"sinfo_args": "ty_args", "type_args": "ty_args"}
    for theirs, ours in SYNONYMS.items():
        match = next((each for each in ours if each in names), None)
        if match is not None and theirs not in names:
            found[theirs] = match
    return found


def _other(reader: ExpressionReader, node: ast.expr, name: str, argument: str) -> dict[str, object]:
    """What an argument that only TVM has means for ours."""
    value = reader.value(node)
    match name, argument:
        case "split", "indices_or_sections":
            return {"indices": value} if isinstance(value, tuple) else {"sections": value}
        case "ccl.allgather" | "ccl.allreduce", "in_group":
            return {"all_groups": not value}
        case "topk", "largest":
            return {"smallest": not value}
        case "nn.attention", "bias":
            return {} if value is None else {"bias": reader.expr(node, value)}
        case "nn.batch_norm" | "nn.group_norm" | "nn.instance_norm", _:
            return {argument: value}
        case _ if value is None:
            return {}
        case _:
            reader.fail(node, f"R.{name} is not supported with the argument {argument}")


def _variant(name: str, values: Mapping[str, object]) -> type[IRDLOperation] | None:
    """Another op class that has the arguments."""
    return operator_class("nn.attention_bias") if name == "nn.attention" and "bias" in values else None


def _implied(name: str, values: Mapping[str, object]) -> dict[str, object]:
    """Arguments that follow from others where TVM lets them out."""
    if name == "eye" and values.get("columns") is None and "rows" in values:
        return {"columns": values["rows"]}
    if name == "arange":
        stop, start = values.get("stop"), values.get("start")
        bounds = {"start": 0, "stop": start} if stop is None and start is not None else {}
        return {**bounds, "step": values.get("step", 1)}
    return {}


# Values for parameters


def convert(reader: ExpressionReader, node: ast.expr, parameter: Parameter) -> object:
    """What an expression is for a parameter of an op."""
    if parameter.kind is Kind.DTYPE:
        if isinstance(node, ast.Constant) and node.value in (None, "", "void"):
            return None
        return reader.dtype(node)
    value = reader.value(node)
    if parameter.kind is Kind.DATA:
        if isinstance(value, Expr):
            value = reader.known(node, value)
        return reader.emit(node, lambda: _as_annotated(value, parameter))
    if parameter.several:
        return [_operand(reader, node, parameter.kind, each) for each in reader.fields(node, value)]
    return None if value is None else _operand(reader, node, parameter.kind, value)


def _operand(reader: ExpressionReader, node: ast.expr, kind: Kind, value: object) -> object:
    if isinstance(value, bool | int | float) and kind in (Kind.TENSOR, Kind.SCALAR, Kind.PRIM):
        return value
    if kind is Kind.SHAPE:
        return reader.shape(node, value)
    if kind is Kind.PRIM and not isinstance(value, Expr):
        return reader.to_dim(node, value)
    expr = reader.expr(node, value)
    if kind is Kind.TENSOR and isinstance(expr.type, ObjectType):
        return reader.refine(node, expr, TensorType(None, None))
    if kind is Kind.TENSOR and isinstance(expr.type, PrimType):
        return reader.scalar_tensor(node, expr)
    if kind is Kind.TENSOR and isinstance(expr.type, TupleType):
        reader.fail(node, f"expected a tensor, got {expr.type}")
    return expr


def _as_annotated(value: object, parameter: Parameter) -> object:
    """A value as the constructor's annotation wants it: one integer for a list, a float for an integer that it has."""
    annotation = str(parameter.source.annotation)
    if (items := items_of(value)) is not None:
        dim = next((each for each in items if isinstance(each, Dim)), None)
        if dim is not None and annotation.startswith("Sequence[int]"):
            raise ValueError(f"expected numbers that are known when the text is read, got the dimension {dim}")
        return list(items)
    if isinstance(value, int) and annotation.startswith("Sequence"):
        return [value]
    if isinstance(value, int) and annotation.partition(" ")[0] == "float":
        return float(value) if int(float(value)) == value else value
    return bool(value) if isinstance(value, int) and annotation == "bool" else value
