"""`R.emit_te(f, x, ...)`: `f` is a lambda or a function of the text, of `te.compute` and arithmetic, or `topi.<name>`.

The function is read like everything else: it is evaluated on tensor expressions, not executed by Python.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from relax_dialect.frontend.tvmscript.relax_func.operators import call_operator
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.captured import PythonFunction, captured_names
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.scope import Scope
from tir_dialect import te
from tir_dialect.te.nodes import IterVar
from tir_dialect.te.reducer import reduce_axis

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_HINTS = ("primfunc_name_hint", "primfunc_attrs")
_TOPI_ORDER = {"full": (0, 2, 1)}
"""Where the arguments of the operator stand in topi's function."""
_REDUCTIONS: dict[str, Callable[..., te.Expr]] = {"sum": te.sum, "max": te.max, "min": te.min, "prod": te.prod}


def emit_te(reader: ExpressionReader, node: ast.Call) -> object:
    """The result of the PrimFunc that a function on tensors describes."""
    if not node.args:
        reader.fail(node, "R.emit_te expected a function and its arguments")
    function, *rest = node.args
    name = reader.aliases.name_in("topi", function)
    keywords = [each for each in node.keywords if each.arg not in _HINTS]
    if name is not None:
        rest = [rest[place] for place in _TOPI_ORDER[name]] if len(rest) == len(_TOPI_ORDER.get(name, ())) else rest
        if name == "trilu":
            name, rest, keywords = _triangle(reader, node, rest, keywords)
        return call_operator(reader, ast.copy_location(ast.Call(function, rest, keywords), node), name)
    definition, expressions = _definition(reader, function)
    arguments = [reader.value(each) for each in rest]
    named = {each.arg: reader.value(each.value) for each in keywords if each.arg is not None}
    hint = next((reader.text(each.value) for each in node.keywords if each.arg == _HINTS[0]), None)
    callee = expressions.function(definition)
    return reader.emit(node, lambda: reader.builder.emit_te(callee, *arguments, name_hint=hint, **named))


def _triangle(
    reader: ExpressionReader, node: ast.Call, rest: list[ast.expr], keywords: list[ast.keyword]
) -> tuple[str, list[ast.expr], list[ast.keyword]]:
    """`topi.trilu(x, k, upper)` as an operator."""
    call = ast.copy_location(ast.Call(node.func, rest, keywords), node)
    given = Arguments(reader.source, call, "topi.trilu", "data k upper")
    name = "triu" if reader.value(given.require("upper")) else "tril"
    return name, [given.require("data"), given.require("k")], []


def _definition(
    reader: ExpressionReader, node: ast.expr
) -> tuple[ast.Lambda | ast.FunctionDef, TensorExpressionReader]:
    """The function, and what reads it: with the names that are visible where it stands."""
    found = node if isinstance(node, ast.Lambda) else None
    if isinstance(node, ast.Name):
        value = reader.scope.find(node.id)
        if isinstance(value, PythonFunction):
            found, tree = value.definition()
            names = Scope(captured_names(tree, reader.aliases))
            return found, TensorExpressionReader(tree.source, reader.aliases, names)
        found = reader.program.plain.get(node.id)
    if found is None:
        reader.fail(node, "expected a lambda, a function of the text, or topi.<name>; nothing else can be read here")
    return found, TensorExpressionReader(reader.source, reader.aliases, _constants(reader))


def _constants(reader: ExpressionReader) -> Scope:
    """The numbers and dimensions that the function can see."""
    known = {name: reader.scope.find(name) for name in reader.scope.names()}
    return Scope({name: value for name, value in known.items() if isinstance(value, bool | int | float | str)})


class TensorExpressionReader(TirExpressionReader):
    """Evaluates functions on tensor expressions."""

    def function(self, node: ast.Lambda | ast.FunctionDef) -> Callable[..., Any]:
        """A lambda or function of the text as one that `te` can call."""
        args = node.args
        names = [each.arg for each in (*args.posonlyargs, *args.args)]

        def evaluate(*values: Any, **named: Any) -> Any:
            with self.scope.inner():
                for name, value in (*zip(names, values, strict=False), *named.items()):
                    self.scope.bind(name, value)
                if args.vararg is not None:
                    self.scope.bind(args.vararg.arg, tuple(values[len(names) :]))
                return self._result(node)

        kinds = inspect.Parameter
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
        if args.vararg is not None:
            parameters.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
        evaluate.__signature__ = inspect.Signature(parameters)
        evaluate.__name__ = node.name if isinstance(node, ast.FunctionDef) else "te"
        return evaluate

    def _result(self, node: ast.Lambda | ast.FunctionDef) -> object:
        if isinstance(node, ast.Lambda):
            return self.value(node.body)
        for statement in node.body:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return self.value(value)
                case ast.Assign(targets=[target]):
                    self._bind(target, self.value(statement.value))
                case ast.Expr(value=ast.Constant()):
                    continue
                case _:
                    self.fail(statement, "expected a binding or a return")
        self.fail(node, f"expected a return at the end of {node.name}")

    def _bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, value)
            return
        items = items_of(value)
        if not isinstance(target, ast.Tuple | ast.List) or items is None or len(items) != len(target.elts):
            self.fail(target, "expected a name, or as many names as there are values")
        for each, item in zip(target.elts, items, strict=True):
            self._bind(each, item)

    def subscript(self, node: ast.Subscript) -> object:
        owner = self.value(node.value)
        if not isinstance(owner, te.Tensor):
            return super().subscript(node)
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._element(node, owner, parts)

    def _element(self, node: ast.AST, tensor: te.Tensor, parts: Sequence[ast.expr]) -> te.Expr:
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
        if name == "compute":
            return self._compute(node)
        if name == "reduce_axis":
            return self._reduce_axis(node)
        if name in _REDUCTIONS:
            return self._reduction(node, _REDUCTIONS[name])
        if name is not None and name in FUNCTIONS:
            operands = [self.scalar_operand(each, self.value(each)) for each in node.args]
            return self.emit(node, lambda: FUNCTIONS[name](*operands))
        if self.aliases.resolve(node.func) is None and isinstance(node.func, ast.Name):
            owner = self.scope.find(node.func.id)
            if isinstance(owner, te.Tensor):
                return self._element(node, owner, node.args)
        return super().call(node)

    def _compute(self, node: ast.Call) -> object:
        given = Arguments(self.source, node, "te.compute", "shape fcompute name tag attrs", {"f": "fcompute"})
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

    def _reduce_axis(self, node: ast.Call) -> IterVar:
        given = Arguments(self.source, node, "te.reduce_axis", "dom name")
        domain = given.require("dom")
        ends = items_of(self.value(domain)) or (0, self.value(domain))
        name = "r" if (label := given.get("name")) is None else self.text(label)
        if len(ends) != 2:
            self.fail(domain, "expected the first value and the end")
        pair = self.to_dim(domain, ends[0]), self.to_dim(domain, ends[1])
        return self.emit(node, lambda: reduce_axis(pair, name))

    def _reduction(self, node: ast.Call, reduce: Callable[..., te.Expr]) -> te.Expr:
        given = Arguments(self.source, node, "the reduction", "expr axis where init")
        operand, axis_node = self.read_scalar(given.require("expr")), given.require("axis")
        value = self.value(axis_node)
        axes = [each for each in (items_of(value) or (value,)) if isinstance(each, IterVar)]
        if not axes:
            self.fail(axis_node, "expected variables of te.reduce_axis")
        return self.emit(node, lambda: reduce(promoted(operand)[0], tuple(axes)))
