"""`R.<name>(...)` of any kind, and `R.emit_te` of a function on tensor expressions, which is read, not executed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.functions import PlainFunction, call_helper, evaluate
from relax_dialect.frontend.tvmscript.prim_func.intrinsics import TirCallReader
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS, promoted
from relax_dialect.frontend.tvmscript.relax_func.call_tir import TIR_FORMS
from relax_dialect.frontend.tvmscript.relax_func.composed import (
    COMPOSED_FORMS,
)
from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader, Form, call_operator
from relax_dialect.frontend.tvmscript.relax_func.packed import FUNCTION_FORMS, call_function
from relax_dialect.frontend.tvmscript.relax_func.values import (
    VALUE_FORMS,
)
from relax_dialect.frontend.tvmscript.scopes import PythonFunction, Scope
from relax_dialect.frontend.tvmscript.source import Aliases
from relax_dialect.frontend.tvmscript.static import is_python
from tir_dialect import te
from tir_dialect.te.nodes import IterVar, Slice
from tir_dialect.te.reducer import reduce_axis

_HINTS = ("primfunc_name_hint", "primfunc_attrs")

_REDUCTIONS: dict[str, Callable[..., te.Expr]] = {"sum": te.sum, "max": te.max, "min": te.min, "prod": te.prod}


def emit_te(reader: ExpressionReader, node: ast.Call) -> object:
    """The result of the PrimFunc that a function on tensors describes."""
    if not node.args:
        reader.fail(node, "R.emit_te expected a function and its arguments")
    function, *rest = node.args
    keywords = [each for each in node.keywords if each.arg not in _HINTS]
    if reader.aliases.name_in("topi", function) is not None:
        return call_topi(reader, ast.copy_location(ast.Call(function, rest, keywords), node))
    definition = _definition(reader, function)
    arguments = [reader.value(each) for each in rest]
    named = {each.arg: reader.value(each.value) for each in keywords if each.arg is not None}
    hint = next((reader.text(each.value) for each in node.keywords if each.arg == _HINTS[0]), None)
    try:
        if uses_topi(reader.aliases, definition.node):
            operators = TopiReader(definition.source, reader.aliases, definition.scope, reader.builder, reader.program)
            return evaluate(operators, definition.node, arguments, named)
        callee = TensorExpressionReader(definition.source, reader.aliases, definition.scope).function(definition.node)
        return reader.emit(node, lambda: reader.builder.emit_te(callee, *arguments, name_hint=hint, **named))
    except RecursionError:
        reader.fail(node, "the function calls itself, which nothing ends")


def _definition(reader: ExpressionReader, node: ast.expr) -> PlainFunction:
    """The function, with the names that are visible where it stands."""
    found = node if isinstance(node, ast.Lambda) else None
    if isinstance(node, ast.Name):
        value = reader.scope.find(node.id)
        if isinstance(value, PythonFunction):
            return PlainFunction.of_surroundings(value, reader.aliases)
        found = reader.program.plain.get(node.id)
    if found is None:
        reader.fail(node, "expected a lambda, a function of the text, or topi.<name>; nothing else can be read here")
    # What the function can see: numbers, dimensions, and other functions without a decorator.
    known = {name: reader.scope.find(name) for name in reader.scope.names()}
    kinds = bool | int | float | str | PythonFunction
    scope = Scope({name: value for name, value in known.items() if isinstance(value, kinds)})
    for name, each in reader.program.plain.items():
        scope.bind(name, PlainFunction(each, reader.source, scope))
    return PlainFunction(found, reader.source, scope)


class TensorExpressionReader(TirCallReader):
    """Evaluates functions on tensor expressions."""

    def function(self, node: ast.Lambda | ast.FunctionDef) -> Callable[..., Any]:
        """A lambda or function of the text as one that `te` can call."""
        args = node.args
        names = [each.arg for each in (*args.posonlyargs, *args.args)]

        def applied(*values: Any, **named: Any) -> Any:
            return evaluate(self, node, values, named)

        kinds = inspect.Parameter
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
        if args.vararg is not None:
            parameters.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
        applied.__signature__ = inspect.Signature(parameters)
        applied.__name__ = node.name if isinstance(node, ast.FunctionDef) else "te"
        return applied

    def item(self, node: ast.Subscript, found: object) -> object:
        if not isinstance(found, te.Tensor | Slice):
            return super().item(node, found)
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._element(node, found, parts)

    def _element(self, node: ast.AST, tensor: te.Tensor | Slice, parts: Sequence[ast.expr]) -> te.Expr:
        values: list[object] = []
        for part in parts:
            value = self.value(part.value if isinstance(part, ast.Starred) else part)
            values += items_of(value) or (value,)
        indices = tuple(self.index(node, value) for value in values)
        return self.emit(node, lambda: tensor[indices])

    def attribute(self, node: ast.Attribute) -> object:
        owner = self.value(node.value)
        if isinstance(owner, te.Tensor):
            match node.attr:
                case "shape":
                    return tuple(owner.shape)
                case "dtype":
                    return str(owner.dtype)
                case "ndim":
                    return owner.ndim
                case _:
                    self.fail(node, f"a tensor has no {node.attr}; it has shape, dtype and ndim")
        if isinstance(owner, te.Expr) and node.attr == "dtype":
            return str(owner.dtype)
        return super().attribute(node)

    def call(self, node: ast.Call) -> object:
        name = self.aliases.name_in("te", node.func)
        if self.aliases.name_in("topi", node.func) is not None:
            self.fail(node, "functions of topi are operators: they stand in the function that R.emit_te is given")
        if name == "compute":
            return self._compute(node)
        if name == "reduce_axis":
            given = self.arguments(node, "te.reduce_axis", "dom name")
            domain = given.require("dom")
            ends = items_of(self.value(domain)) or (0, self.value(domain))
            name = "r" if (label := given.get("name")) is None else self.text(label)
            if len(ends) != 2:
                self.fail(domain, "expected the first value and the end")
            lo, hi = (each if isinstance(each, te.Expr) else self.to_dim(domain, each) for each in ends)
            return self.emit(node, lambda: reduce_axis((lo, hi), name))
        if name in _REDUCTIONS:
            reduce = _REDUCTIONS[name]
            given = self.arguments(node, "the reduction", "expr axis where init")
            operand, axis_node = self.read_scalar(given.require("expr")), given.require("axis")
            value = self.value(axis_node)
            axes = [each for each in (items_of(value) or (value,)) if isinstance(each, IterVar)]
            if not axes:
                self.fail(axis_node, "expected variables of te.reduce_axis")
            return self.emit(node, lambda: reduce(promoted(operand)[0], tuple(axes)))
        if name is not None and name in FUNCTIONS:
            operands = [self.scalar_operand(each, self.value(each)) for each in node.args]
            return self.emit(node, lambda: FUNCTIONS[name](*operands))
        if self.aliases.resolve(node.func) is None and isinstance(node.func, ast.Name):
            owner = self.scope.find(node.func.id)
            if isinstance(owner, te.Tensor):
                return self._element(node, owner, node.args)
        helper = call_helper(self, node)
        return super().call(node) if helper is None else helper[0]

    def _compute(self, node: ast.Call) -> object:
        given = self.arguments(node, "te.compute", "shape fcompute name tag attrs", {"f": "fcompute"})
        shape_node, body = given.require("shape"), given.require("fcompute")
        if not isinstance(body, ast.Lambda):
            self.fail(body, "te.compute expected a lambda")
        shape = items_of(self.value(shape_node)) or (self.value(shape_node),)
        dims = [self.to_dim(shape_node, each) for each in shape]
        name = "compute" if (label := given.get("name")) is None else self.text(label)
        function = self.function(body)

        def element(*indices: Any) -> Any:
            value = function(*indices)
            items = items_of(value)
            return promoted(self.scalar_operand(body, value))[0] if items is None else items

        element.__signature__ = inspect.signature(function)
        return self.emit(node, lambda: te.compute(dims, element, name))


FORMS: Mapping[str, Form] = {
    **TIR_FORMS,
    **COMPOSED_FORMS,
    **VALUE_FORMS,
    **FUNCTION_FORMS,
    "emit_te": emit_te,
}
"""What `R.<name>(...)` is, where it is no operator."""


class CallReader(ExpressionReader):
    """Reads expressions of relax functions with calls in them."""

    def call(self, node: ast.Call) -> object:
        node = self.meant_call(node)
        name = self.aliases.name_in("relax", node.func)
        if name is None and (self.aliases.resolve(node.func) or is_python(self.aliases, self.scope, node.func)):
            return super().call(node)
        if name is None and isinstance(node.func, ast.Attribute) and node.func.attr == "get_global_var" and node.args:
            return self.function_ref(node.args[0], self.text(node.args[0]))
        if name is None:
            with self.implicit(False):
                return call_function(self, node)
        form = FORMS.get(name)
        return call_operator(self, node, name) if form is None else form(self, node)


_ORDER = {"full": (0, 2, 1)}
"""Where the arguments of the operator stand in topi's function."""


def call_topi(reader: ExpressionReader, node: ast.Call) -> object:
    """`topi.<name>(x, ...)` as the operator."""
    name, order = reader.aliases.name_in("topi", node.func) or "", range(len(node.args))
    if len(node.args) == len(_ORDER.get(name, ())):
        order = _ORDER[name]
    arguments, keywords = [node.args[index] for index in order], node.keywords
    if name == "trilu":
        given = reader.arguments(node, "topi.trilu", "data k upper")
        name = "triu" if reader.value(given.require("upper")) else "tril"
        arguments, keywords = [given.require("data"), given.require("k")], []
    return call_operator(reader, ast.copy_location(ast.Call(node.func, arguments, keywords), node), name)


def uses_topi(aliases: Aliases, node: ast.AST) -> bool:
    """Whether a function calls one of `topi`."""
    return any(aliases.name_in("topi", each) is not None for each in ast.walk(node))


class TopiReader(CallReader):
    """Reads functions of `topi` and arithmetic: what they compute of tensors are operators of the program."""

    def call(self, node: ast.Call) -> object:
        if self.aliases.name_in("topi", node.func) is not None:
            return call_topi(self, node)
        if self.aliases.name_in("te", node.func) is not None:
            self.fail(node, "functions of topi are operators, those of te are not; use R.emit_te for each of them")
        helper = call_helper(self, node)
        return super().call(node) if helper is None else helper[0]
