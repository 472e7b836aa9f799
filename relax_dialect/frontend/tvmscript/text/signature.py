"""The head of a relax function: parameters, result, attributes and the bounds of dimensions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, StringAttr, f64, i64
from xdsl.ir import Attribute

from relax_dialect.builder.scopes import as_attribute
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.declarations import declarations
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.names import Aliases, suggestion
from relax_dialect.frontend.tvmscript.text.static import StaticReader
from relax_dialect.frontend.tvmscript.text.types import TypeReader
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import ObjectType, PrimType
from tir_dialect.dims import Dim
from tir_dialect.symbols import Interval

_OPTIONS = ("private", "pure", "check_well_formed", "s_tir", "persistent")
FORCE_PURE = ("relax.force_pure", "force_pure")
_BOUNDS = ("tir_var_upper_bound", "tir_var_lower_bound")


@dataclass
class Signature:
    """What the head of a function says."""

    params: dict[str, StructInfo]
    ret: StructInfo | None
    bounds: dict[str, Interval] = field(default_factory=dict[str, Interval])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    force_pure: bool = False


def type_param_names(text: str) -> list[str]:
    """The names in `[n: T.int64, m]` after the name of a function."""
    return [name for part in text.split(",") if (name := part.partition(":")[0].strip(" *\n\t"))]


def parameters(source: Source, node: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a function, which have to be plain."""
    args = node.args
    for star in (args.vararg, args.kwarg):
        if star is not None:
            source.fail(star, f"{node.name} expected parameters one by one, got *{star.arg}")
    for default in (*args.defaults, *args.kw_defaults):
        if default is not None:
            source.fail(default, f"{node.name}: a parameter has no default value")
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def read_signature(reader: StaticReader, node: ast.FunctionDef, type_params: Sequence[str]) -> Signature:
    """The types of parameters and result; the dimensions that they name become visible."""
    types = TypeReader(reader)
    for name in (*type_params, *_hiding(reader, node)):
        reader.declare(node, name)
    arguments = parameters(reader.source, node)
    scalars = {argument.arg for argument in arguments if _is_size(types, argument)}
    for name in scalars:
        reader.declare(node, name)
    infos = {each.arg: _annotation(types, each) for each in arguments}
    if len(infos) != len(arguments):
        reader.fail(node, f"{node.name} has two parameters of one name")
    ret = types.optional(node.returns)
    used = {name for name, info in infos.items() if name not in scalars for name in iter_symbols(info)}
    used |= set() if ret is None else set(iter_symbols(ret))
    for name in scalars & used:
        infos[name] = PrimType(i64, name)
    signature = Signature(infos, ret)
    _read_attributes(reader, node, signature)
    return signature


def _hiding(reader: StaticReader, node: ast.FunctionDef) -> list[str]:
    """The dimensions that the body declares, `n = T.int64()`, where the name is that of a value around the function."""
    pairs = [(each.targets[0], each.value) for each in node.body if isinstance(each, ast.Assign)]
    names = [name for pair in pairs for _, name, _ in declarations(reader.aliases, *pair)]
    return [name for name in names if name in reader.scope and not isinstance(reader.scope.find(name), Dim)]


def _annotation(types: TypeReader, argument: ast.arg) -> StructInfo:
    return ObjectType() if argument.annotation is None else types.read(argument.annotation)


def _is_size(types: TypeReader, argument: ast.arg) -> bool:
    """Whether a parameter is an integer, which other parameters may use as a dimension."""
    node = argument.annotation
    if isinstance(node, ast.Call) and not node.keywords and types.kind(node.func) == "Prim":
        return len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == "int64"
    if isinstance(node, ast.Call):
        node = node.func if not node.args and not node.keywords else None
    return node is not None and types.scalar(node) == i64


def _read_attributes(reader: StaticReader, node: ast.FunctionDef, signature: Signature) -> None:
    for statement in node.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and reader.aliases.name_in("relax", call.func) == "func_attr":
            attributes = read_dictionary(reader, call, "R.func_attr", "attrs")
            signature.bounds = _bounds(reader, call, attributes)
            signature.force_pure = any(bool(attributes.pop(name, False)) for name in FORCE_PURE)
            signature.attributes |= as_attributes(
                reader.source, call, {name: each for name, each in attributes.items() if name not in _BOUNDS}
            )


def read_dictionary(reader: StaticReader, call: ast.Call, what: str, parameter: str) -> dict[str, object]:
    """The dictionary that a call is given."""
    argument = Arguments(reader.source, call, what, parameter).require(parameter)
    found = reader.value(argument)
    if not isinstance(found, dict):
        reader.fail(argument, f"{what} expected a dictionary")
    return cast("dict[str, object]", found)


def _bounds(reader: StaticReader, call: ast.Call, attributes: Mapping[str, object]) -> dict[str, Interval]:
    upper, lower = (_integers(reader, call, attributes.get(name, {})) for name in _BOUNDS)
    return {name: (lower.get(name, 0), upper.get(name)) for name in (*upper, *lower)}


def _integers(reader: StaticReader, node: ast.AST, found: object) -> dict[str, int]:
    if not isinstance(found, dict):
        reader.fail(node, "expected the bounds of dimensions as a dictionary")
    pairs = cast("dict[str, object]", found)
    bounds = {name: value for name, value in pairs.items() if isinstance(value, int)}
    if len(bounds) != len(pairs):
        reader.fail(node, "expected integers as bounds of dimensions")
    return bounds


def as_attributes(source: Source, node: ast.AST, values: Mapping[str, object]) -> dict[str, Attribute]:
    """Python values as attributes."""
    return {name: to_attribute(source, node, value) for name, value in values.items() if value is not None}


def to_attribute(source: Source, node: ast.AST, value: object) -> Attribute:
    """One Python value as an attribute; integers are `i64`, floats `f64`."""
    match value:
        case Attribute():
            return value
        case float():
            return FloatAttr(value, f64)
        case bool() | str():
            return as_attribute(value)
        case int() if -(1 << 63) <= value < 1 << 63:
            return as_attribute(value)
        case tuple():
            items = cast("tuple[object, ...]", value)
            return ArrayAttr([to_attribute(source, node, each) for each in items])
        case dict():
            pairs = cast("dict[str, object]", value)
            return DictionaryAttr(as_attributes(source, node, pairs))
        case None:
            return StringAttr("")
        case _:
            source.fail(node, "expected a number, a string, or a list or dictionary of those as an attribute")


def decorator_options(source: Source, aliases: Aliases, node: ast.expr) -> dict[str, bool]:
    """The truth values that a decorator is given: `@R.function(private=True)`."""
    if not isinstance(node, ast.Call):
        return {}
    found: dict[str, bool] = {}
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg is None or value not in (True, False, None):
            source.fail(keyword.value, "expected True or False")
        if keyword.arg not in _OPTIONS:
            source.fail(keyword, f"a decorator has no option {keyword.arg}{suggestion(keyword.arg, _OPTIONS)}")
        found[keyword.arg] = bool(value)
    if node.args:
        source.fail(node.args[0], "a decorator takes no positional arguments")
    return found
