"""Calls of operators: any op class of the dialect under TVM's name, with TVM's arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from xdsl.irdl import IRDLOperation

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import Kind, Parameter, function_of, operator_classes, parameters_of
from relax_dialect.frontend.tvmscript.relax_func.operator_results import FUNCTIONS, RESULTS
from relax_dialect.frontend.tvmscript.relax_func.operator_table import OPERATOR_NAMES, SIGNATURES, SYNONYMS
from relax_dialect.frontend.tvmscript.relax_func.refusals import OPERATORS
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.names import suggestion
from relax_dialect.struct_info.types import ObjectType, PrimType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import parse_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def operator_class(name: str) -> type[IRDLOperation] | None:
    """The op class of `R.<name>`."""
    return operator_classes().get(f"relax.{OPERATOR_NAMES.get(name, name)}")


def call_operator(reader: ExpressionReader, node: ast.Call, name: str) -> object:
    """The result of `R.<name>(...)`: an expression, or a tuple of the results."""
    cls = operator_class(name)
    if cls is None:
        _refuse(reader, node, name)
    ours = OPERATOR_NAMES.get(name, name)
    parameters = {parameter.source.name: parameter for parameter in parameters_of(cls)}
    names, defaults = _signature(ours, cls)
    given = Arguments(reader.source, node, f"R.{name}", names, _renamed(names), ("ty_args",))
    values: dict[str, object] = {}
    for each in names:
        if (argument := given.get(each)) is not None:
            if each in parameters:
                values[each] = convert(reader, argument, parameters[each])
            else:
                values |= _other(reader, argument, ours, each)
        elif each in defaults and each in parameters:
            values[each] = _default(defaults[each], parameters[each])
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


def _refuse(reader: ExpressionReader, node: ast.Call, name: str) -> NoReturn:
    reason = OPERATORS.get(name) or OPERATORS.get(name.partition(".")[0])
    if reason is not None:
        reader.fail(node.func, reason)
    known = [each.removeprefix("relax.") for each in operator_classes()]
    reader.fail(node.func, f"there is no operator R.{name}{suggestion(name, known)}")


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


def _default(text: str, parameter: Parameter) -> object:
    if parameter.kind is Kind.DTYPE:
        return parse_dtype(text)
    value: object = ast.literal_eval(text)
    return _as_annotated(value, parameter)


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
