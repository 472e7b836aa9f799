"""Reading of what is known without building anything: constants, dimensions, and strings of them."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn, cast

from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.text import evaluator
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.names import Aliases, suggestion
from relax_dialect.frontend.tvmscript.text.scope import Deferred, Failed, Scope, Unbound, symbol_of
from relax_dialect.frontend.tvmscript.text.source import parse_expression
from tir_dialect.dims import Dim, symbol
from tir_dialect.dtypes import parse_dtype


def describe(value: object) -> str:
    """A value of a text in a message."""
    if isinstance(value, tuple):
        return "a tuple"
    if value is None:
        return "None"
    if isinstance(value, bool | int | float | Dim):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def is_dtype_name(name: str) -> bool:
    """Whether `T.<name>` is a dtype."""
    try:
        parse_dtype(name)
    except ValueError:
        return False
    return True


class StaticReader:
    """Reads expressions that are numbers, strings, dimensions, and tuples and dictionaries of those."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope):
        self.source = source
        self.aliases = aliases
        self.scope = scope
        self._implicit = False

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raises `TVMScriptError` at a node."""
        self.source.fail(node, message)

    # Expressions

    def value(self, node: ast.expr) -> object:
        """What an expression stands for; `None` is Python's `None`."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self.name(node)
            case ast.Tuple() | ast.List():
                return self.elements(node.elts)
            case ast.Dict():
                return self._dictionary(node)
            case ast.BinOp():
                return self.binary(node, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return self.unary(node, self.value(node.operand))
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return self.connective(node)
            case ast.Call():
                return self.call(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case _:
                return self.unsupported(node)

    def elements(self, nodes: Sequence[ast.expr]) -> tuple[object, ...]:
        """The elements of a tuple or list; `*x` stands for those of `x`."""
        found: list[object] = []
        for node in nodes:
            value = self.value(node.value if isinstance(node, ast.Starred) else node)
            items = evaluator.items_of(value) if isinstance(node, ast.Starred) else (value,)
            if items is None:
                self.fail(node, "expected a tuple after *")
            found += items
        return tuple(found)

    def _constant(self, node: ast.Constant) -> object:
        value = node.value
        if isinstance(value, bytes | complex) or value is ...:
            self.fail(node, "expected a number, a string or a truth value")
        if isinstance(value, str) and self._implicit:
            return self._text(node, value)
        if isinstance(value, int) and not -evaluator.LIMIT < value < evaluator.LIMIT:
            self.fail(node, "expected an integer of 64 bits, got a larger one")
        return value

    def _text(self, node: ast.AST, text: str) -> object:
        """A dimension that is written as a string: `"n"`, `"4 * n"`."""
        try:
            tree = self._parsed(node, text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.fail(node, f'expected a dimension, got the string "{text}"')
        return self.value(tree)

    def name(self, node: ast.Name) -> object:
        """What a name stands for; in a signature a new one is a new dimension."""
        if node.id in self.scope:
            found = self.scope.find(node.id)
            if isinstance(found, Failed):
                raise self.source.follows(node, found.reason)
            if isinstance(found, Unbound):
                self.fail(node, found.reason)
            return self.value(self.meant(node)) if isinstance(found, Deferred) else found
        if self._implicit:
            return self.declare(node, node.id)
        if node.id == "metadata":
            self.fail(node, "the text refers to constants of a metadata section, whose elements it does not have")
        self.fail(node, f"the name {node.id} is not defined here{suggestion(node.id, self.scope.names())}")

    def meant(self, node: ast.expr) -> ast.expr:
        """The expression that a name stands for, if it is one that is read where it is used."""
        found = self.scope.find(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(found, Deferred):
            return node
        tree = found.expression
        return self.meant(self._parsed(node, tree) if isinstance(tree, str) else tree)

    def meant_call(self, node: ast.Call) -> ast.Call:
        """The call with what a name for a function stands for, and `T.exp` for `getattr(T, "exp")`."""
        function = self.meant(node.func)
        match function:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name]):
                function = ast.copy_location(ast.Attribute(owner, self.text(name), ast.Load()), function)
            case _:
                pass
        return node if function is node.func else ast.copy_location(ast.Call(function, node.args, node.keywords), node)

    def _parsed(self, node: ast.AST, text: str) -> ast.expr:
        tree = parse_expression(text)
        for each in ast.walk(tree):
            ast.copy_location(each, node)
        return tree

    def declare(self, node: ast.AST, name: str) -> Dim:
        """A new dimension."""
        try:
            dim = symbol_of(name)
        except ValueError as error:
            self.fail(node, str(error))
        self.scope.bind(name, dim)
        return dim

    def _dictionary(self, node: ast.Dict) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.value(key)
            if not isinstance(name, str):
                self.fail(key or node, "expected strings as keys")
            found[name] = self.value(value)
        return found

    def binary(self, node: ast.BinOp, left: object, right: object) -> object:
        """`left op right`."""
        try:
            result = evaluator.binary(node.op, left, right)
        except evaluator.StaticError as error:
            self.fail(node, str(error))
        if result is None:
            from relax_dialect.frontend.tvmscript.text.python_values import joined

            result = joined(node.op, left, right)
        if result is None:
            self.fail(node, f"expected numbers or dimensions, got {describe(left)} and {describe(right)}")
        return result

    def unary(self, node: ast.UnaryOp, operand: object) -> object:
        """`op operand`."""
        result = evaluator.unary(node.op, operand)
        if result is None:
            self.fail(node, f"expected a number or a dimension, got {describe(operand)}")
        return result

    def comparison(self, node: ast.Compare) -> object:
        """`left op right`; of one pair only."""
        if len(node.ops) != 1:
            self.fail(node, "expected one comparison; write `a < b and b < c` in full")
        return self.compare(node, node.ops[0], self.value(node.left), self.value(node.comparators[0]))

    def compare(self, node: ast.Compare, kind: ast.cmpop, left: object, right: object) -> object:
        """`left op right`."""
        result = evaluator.compare(kind, left, right)
        if result is None:
            self.fail(node, f"expected numbers, got {describe(left)} and {describe(right)}")
        return result

    def connective(self, node: ast.BoolOp) -> object:
        """`a and b`, `a or b`."""
        return self.unsupported(node)

    def call(self, node: ast.Call) -> object:
        """A call: of a dtype on a number, of a function on dimensions, or of what Python alone sees."""
        from relax_dialect.frontend.tvmscript.text.static_calls import static_call

        return static_call(self, node)

    def attribute(self, node: ast.Attribute) -> object:
        """`value.name`."""
        return self.unsupported(node)

    def subscript(self, node: ast.Subscript) -> object:
        """`value[index]`."""
        found = self.value(node.value)
        if isinstance(node.slice, ast.Slice) and (items := evaluator.items_of(found)) is not None:
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return items[slice(*(None if each is None else self.integer(each) for each in ends))]
        index = self.value(node.slice)
        if isinstance(index, str):
            return self._entry(node, found, index)
        if (items := evaluator.items_of(found)) is not None and isinstance(index, int):
            if -len(items) <= index < len(items):
                return items[index]
            self.fail(node, f"expected an index below {len(items)}, got {index}")
        return self.unsupported(node)

    def _entry(self, node: ast.Subscript, owner: object, key: str) -> object:
        entries = cast("dict[str, object]", owner) if isinstance(owner, dict) else {}
        return entries[key] if key in entries else self.unsupported(node)

    def unsupported(self, node: ast.expr) -> object:
        """An expression of plain Python; any other has no place here."""
        from relax_dialect.frontend.tvmscript.text.python_values import python_value

        return python_value(self, node)

    # Kinds of values

    @contextmanager
    def implicit(self, on: bool = True) -> Generator[None]:
        """Makes new names new dimensions, and strings dimensions."""
        before, self._implicit = self._implicit, on
        try:
            yield
        finally:
            self._implicit = before

    def _as_dim(self, node: ast.AST, value: object) -> Dim:
        dim = evaluator.as_dim(value)
        if dim is None:
            self.fail(node, f"expected a dimension, got {describe(value)}")
        return dim

    def dim(self, node: ast.expr, *, implicit: bool = False) -> Dim:
        """An expression as a dimension; a string is read as one."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            implicit = True
        if isinstance(node, ast.Name) and not (implicit or self._implicit) and node.id not in self.scope:
            self.fail(
                node,
                f"the name {node.id} is not defined here; a dimension is declared by {node.id} = T.int64() before, by "
                f'def f[{node.id}](...), or by writing "{node.id}"',
            )
        with self.implicit(implicit or self._implicit):
            return self.to_dim(node, self.value(node))

    def to_dim(self, node: ast.AST, value: object) -> Dim:
        """A value as a dimension."""
        return self._as_dim(node, value)

    def integer(self, node: ast.expr) -> int:
        """An expression that is an integer."""
        value = self.value(node)
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(node, f"expected an integer, got {describe(value)}")
        return value

    def text(self, node: ast.expr) -> str:
        """An expression that is a string."""
        value = self.value(node)
        if not isinstance(value, str):
            self.fail(node, f"expected a string, got {describe(value)}")
        return value

    def dtype(self, node: ast.expr) -> Attribute:
        """An expression that is the name of a dtype, or `T.float32`."""
        name = self.aliases.name_in("tir", node)
        if isinstance(node, ast.Name) and node.id not in self.scope and is_dtype_name(node.id):
            # tools that tidy annotations take the quotes away
            name = node.id
        text = self.text(node) if name is None else name
        try:
            return parse_dtype(text)
        except ValueError as error:
            self.fail(node, str(error))

    def symbol(self, name: str) -> Dim:
        """The dimension of that name."""
        return symbol(name)
