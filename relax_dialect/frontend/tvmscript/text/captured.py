"""Python's values around a decorated object: which of them a text may use. None is called, no property is asked."""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.text.declarations import declares_dimension
from relax_dialect.frontend.tvmscript.text.evaluator import DIM_FUNCTIONS
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.placeholder import Macro, Placeholder, values_of
from relax_dialect.frontend.tvmscript.text.scalable import fixed_value
from relax_dialect.frontend.tvmscript.text.scope import Deferred, Scope, Unbound, symbol_of
from relax_dialect.frontend.tvmscript.text.source import Tree, parse_expression, read_object
from relax_dialect.frontend.tvmscript.text.typed_numbers import typed
from tir_dialect.dims import Dim
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr
from tir_dialect.te.tree import post_order


@dataclass(frozen=True, eq=False)
class Opaque:
    """A Python object of which only the attributes are used that are plain data."""

    value: object

    def attribute(self, name: str) -> object:
        """What an attribute stands for, as `plain` gives it; `AttributeError` for one that is computed."""
        owner = vars(self.value) if isinstance(self.value, types.ModuleType) else None
        found = inspect.getattr_static(self.value, name) if owner is None else owner.get(name)
        if found is None or isinstance(found, property):
            raise AttributeError(name)
        return plain(name, found)


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """A function of the surroundings; its source is read where it is applied to tensors or indices."""

    function: Callable[..., object]

    def __str__(self) -> str:
        return self.function.__name__

    def definition(self) -> tuple[ast.FunctionDef | ast.Lambda, Tree]:
        """The function as text, with what is around it; `TVMScriptError` where its source is not to be found."""
        tree = read_object(self.function)
        nodes = [each for statement in tree.body for each in ast.walk(statement)]
        named = [each for each in nodes if isinstance(each, ast.FunctionDef) and each.name == self.function.__name__]
        found = named or [each for each in nodes if isinstance(each, ast.Lambda)]
        if len(found) != 1:
            raise tree.source.error_at(1, 1, f"the source of {self} is not the only function of its lines")
        return found[0], tree


_FUNCTIONS = frozenset(
    {"abs", "bool", "float", "int", "len", "list", "max", "min", "range", "round", "str", "sum", "tuple"}
)
"""Functions of Python itself; of dimensions, those of the evaluator."""


def is_python(aliases: Aliases, scope: Scope, node: ast.expr) -> bool:
    """Whether an expression is one of plain Python, by what it begins with: an array, a module, a known function."""
    if isinstance(node, ast.Name) and node.id in scope:
        found = scope.find(node.id)
        return isinstance(found, Opaque | dict | str) or type(found).__module__ == "numpy"
    if isinstance(node, ast.Name):
        return node.id in _FUNCTIONS or node.id in DIM_FUNCTIONS
    found = aliases.resolve(node)
    if found is not None:
        return found[0] in ("math", "numpy")
    match node:
        case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return is_python(aliases, scope, inner)
        case _:
            return False


def captured_names(tree: Tree, aliases: Aliases) -> dict[str, object]:
    """What the names of a text stand for in the Python program around it; `aliases` learns modules' names."""
    mentioned = {node.id for statement in tree.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    found: dict[str, object] = {}
    for name, value in tree.visible.items():
        if isinstance(value, types.ModuleType) and aliases.learn(name, value.__name__):
            continue
        if name in mentioned:
            found[name] = plain(name, value)
            if isinstance(value, Placeholder):
                found |= _parts(tree, value)
    return {name: fixed_value(value, tree.vscale) for name, value in found.items()}


def _parts(tree: Tree, placeholder: Placeholder) -> dict[str, object]:
    """The objects that the text of a placeholder has names for; a dimension is called as the surroundings call it."""
    names = {id(value): name for name, value in tree.visible.items() if isinstance(value, Placeholder)}
    return {name: plain(names.get(id(value), "dim"), value) for name, value in values_of(placeholder).items()}


def plain(name: str, value: object) -> object:
    """A value of Python as texts use it; what is no plain data is kept as an object with attributes."""
    if isinstance(value, bool | str | None | Dim | Attribute | Macro):
        return value
    if isinstance(value, Expr):
        return _expression(name, value)
    if isinstance(value, enum.Enum):
        return plain(name, value.value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, tuple | list):
        return tuple(plain(name, each) for each in cast("list[object]", value))
    if isinstance(value, dict):
        return {str(key): plain(name, each) for key, each in cast("dict[object, object]", value).items()}
    if isinstance(value, Placeholder):
        return _placeholder(name, value)
    if inspect.isfunction(value):
        return PythonFunction(value)
    return _of_numpy(value)


_CLOSED = nodes.Const | nodes.Size | nodes.Apply | nodes.Cast | nodes.Conditional
"""What an expression may consist of that means the same in every function."""


def _expression(name: str, value: Expr) -> object:
    """An expression of te: constants as numbers of their dtype, and nothing with variables of another program."""
    match value:
        case nodes.Const():
            return typed(value.value, value.dtype)
        case nodes.Size():
            return value.dim.constant_value if value.dim.constant_value is not None else value.dim
        case _:
            other = next((each for each in post_order((value,)) if not isinstance(each, _CLOSED)), None)
            return (
                value
                if other is None
                else Unbound(f"{name} is an expression of te with {other}, which is not of this program")
            )


def _placeholder(name: str, value: Placeholder) -> object:
    """A dimension that Python code declared has the name that it was given there."""
    text = str(value)
    return symbol_of(name) if declares_dimension(Aliases(), parse_expression(text)) else Deferred(text)


def _of_numpy(value: object) -> object:
    """Scalars are numbers, dtypes their names, arrays themselves."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return Opaque(value)
    if isinstance(value, numpy.generic):
        return cast("Any", value).item()
    if isinstance(value, numpy.ndarray):
        return value
    if isinstance(value, numpy.dtype) or (isinstance(value, type) and issubclass(value, numpy.generic)):
        return numpy.dtype(value).name
    return Opaque(value)
