"""The text of `op.pyi`: the signatures of the operator functions, for editors and type checkers."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter as Source

from xdsl.irdl import IRDLOperation

from relax_dialect.builder.operator_functions import (
    Kind,
    Parameter,
    has_no_result,
    has_one_result,
    parameters_of,
    takes_axis,
)
from relax_dialect.loading import operator_classes

WIDTH = 120

OWN_IMPORTS = {
    "Sequence": "collections.abc",
    "Expr": "relax_dialect.builder.expr",
    "Operand": "relax_dialect.builder.emitter",
    "Value": "relax_dialect.builder.emitter",
    "DTypeLike": "relax_dialect.builder.emitter",
    "DimLike": "tir_dialect.dims",
}
"""Where the types are from that stand for values."""

_TYPES = {
    Kind.TENSOR: "Operand",
    Kind.SHAPE: "Value | Sequence[DimLike]",
    Kind.PRIM: "Value | DimLike | float",
    Kind.SCALAR: "Value | DimLike | float",
    Kind.VALUE: "Value",
}
_BUILTIN = frozenset({"int", "float", "bool", "str", "None"})
_OWN_PACKAGES = ("relax_dialect", "tir_dialect")


def stub_text() -> str:
    """The stub of all operators: functions by name, namespaces as classes."""
    spaces: dict[str, list[type[IRDLOperation]]] = {}
    for name, cls in sorted(operator_classes().items()):
        spaces.setdefault(name.removeprefix("relax.").rpartition(".")[0], []).append(cls)
    functions = "\n".join(_namespaces(spaces))
    title = "# Written by `make docs` from the op classes; see op.py.\n"
    return f"{title}\n{_import_text(spaces)}\n\n{functions}\n"


def _import_text(spaces: Mapping[str, Sequence[type[IRDLOperation]]]) -> str:
    """The imports, in the order of the standard library, others' packages and ours."""
    modules: dict[str, set[str]] = {}
    for cls in (cls for classes in spaces.values() for cls in classes):
        available = _imports_of(cls.__module__) | OWN_IMPORTS
        for parameter in parameters_of(cls):
            for name in set(re.findall(r"[A-Za-z_]\w*", _type(parameter))) - _BUILTIN:
                modules.setdefault(available[name], set()).add(name)
    modules.setdefault(OWN_IMPORTS["Expr"], set()).add("Expr")
    lines = {module: f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items())}
    groups: tuple[list[str], list[str], list[str]] = (["import builtins"], [], [])
    for module, line in lines.items():
        groups[_group(module)].append(line)
    return "\n\n".join("\n".join(group) for group in groups if group)


def _group(module: str) -> int:
    package = module.partition(".")[0]
    return 2 if package in _OWN_PACKAGES else int(package not in sys.stdlib_module_names)


@cache
def _imports_of(module: str) -> dict[str, str]:
    """What a module imports by name, and from where."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        alias.name: node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def _namespaces(spaces: Mapping[str, Sequence[type[IRDLOperation]]]) -> Iterator[str]:
    for space, classes in spaces.items():
        if not space:
            yield from (_function(cls, "") for cls in classes)
            continue
        yield f"\nclass {space}:"
        for cls in classes:
            yield f"    @staticmethod\n{_function(cls, '    ')}"


def _function(cls: type[IRDLOperation], indent: str) -> str:
    name = cls.name.rpartition(".")[2]
    name = f"{name}_" if keyword.iskeyword(name) else name
    result = "None" if has_no_result(cls) else "Expr" if has_one_result(cls) else "builtins.tuple[Expr, ...]"
    parts = list(_parameters(parameters_of(cls)))
    line = f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= WIDTH:
        return line
    inner = f"{indent}    {', '.join(parts)}"
    if len(inner) > WIDTH or "*" in parts[-1]:
        inner = "\n".join(f"{indent}    {part}," for part in parts)
    return f"{indent}def {name}(\n{inner}\n{indent}) -> {result}: ..."


def _parameters(parameters: Sequence[Parameter]) -> Iterator[str]:
    separated = False
    for parameter in parameters:
        source = parameter.source
        if source.kind is Source.KEYWORD_ONLY and not separated:
            separated = True
            yield "*"
        star = "*" if source.kind is Source.VAR_POSITIONAL else ""
        default = "" if source.default is Source.empty else " = ..."
        yield f"{star}{source.name}: {_type(parameter)}{default}"
    if takes_axis(parameters):
        yield from () if separated else ("*",)
        yield "axis: int | Sequence[int] | None = ..."


def _type(parameter: Parameter) -> str:
    declared = str(parameter.source.annotation)
    if parameter.kind is Kind.DTYPE:
        return declared.replace("Attribute", "DTypeLike")
    if parameter.kind is Kind.DATA:
        return re.sub(r"Sequence\[(\w+)\]", r"\1 | Sequence[\1]", declared) if parameter.is_list else declared
    one = _TYPES[parameter.kind]
    several = parameter.several and parameter.source.kind is not Source.VAR_POSITIONAL
    return (f"Sequence[{one}]" if several else one) + (" | None" if declared.endswith("| None") else "")
