"""Expressions that are known without building anything: constants, dimensions, dtypes, and plain Python on them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import numpy as np
from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript import evaluator
from relax_dialect.frontend.tvmscript.evaluator import (
    ARRAY_METHODS,
    ARRAY_PROPERTIES,
    BUILTINS,
    DIM_FUNCTIONS,
    INDICATORS,
    MATH_CONSTANTS,
    PYTHON_FUNCTIONS,
    items_of,
    joined,
    numpy_dtype_name,
)
from relax_dialect.frontend.tvmscript.scopes import (
    VARIABLES,
    Deferred,
    Failed,
    Opaque,
    Scope,
    Unbound,
    describe,
    is_dtype_name,
    symbol_of,
)
from relax_dialect.frontend.tvmscript.source import (
    Aliases,
    Arguments,
    Source,
    TVMScriptError,
    parse_expression,
    suggestion,
)
from tir_dialect.dims import Dim, product, symbol
from tir_dialect.dtypes import parse_dtype


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

    def arguments(
        self,
        node: ast.Call,
        what: str,
        parameters: str | Sequence[str],
        renamed: Mapping[str, str] | None = None,
        keywords: Sequence[str] = (),
    ) -> Arguments:
        """The argument expressions of a call, which messages call `what`."""
        return Arguments(self.source, node, what, parameters, renamed, keywords)

    def typed_arguments(self, node: ast.Call, what: str, others: str) -> Arguments:
        """Those of a call that has a dtype: by keyword, else before the others."""
        by_keyword = any(keyword.arg == "dtype" for keyword in node.keywords)
        return self.arguments(node, what, f"{others} dtype" if by_keyword else f"dtype {others}")

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
            # A dimension that is written as a string: `"n"`, `"4 * n"`.
            try:
                tree = parse_expression(value.strip(), node)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.fail(node, f'expected a dimension, got the string "{value}"')
            return self.value(tree)
        if isinstance(value, int) and not -evaluator.LIMIT < value < evaluator.LIMIT:
            self.fail(node, "expected an integer of 64 bits, got a larger one")
        return value

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
        return self.meant(parse_expression(tree, node) if isinstance(tree, str) else tree)

    def meant_call(self, node: ast.Call) -> ast.Call:
        """The call with what a name for a function stands for, and `T.exp` for `getattr(T, "exp")`."""
        function = self.meant(node.func)
        match function:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name]):
                function = ast.copy_location(ast.Attribute(owner, self.text(name), ast.Load()), function)
            case _:
                pass
        return node if function is node.func else ast.copy_location(ast.Call(function, node.args, node.keywords), node)

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
        return static_call(self, node)

    def attribute(self, node: ast.Attribute) -> object:
        """`value.name`."""
        return self.unsupported(node)

    def subscript(self, node: ast.Subscript) -> object:
        """`value[index]`."""
        return self.item(node, self.value(node.value))

    def item(self, node: ast.Subscript, found: object) -> object:
        """What a subscript takes of a value, which has been evaluated."""
        if isinstance(node.slice, ast.Slice) and (items := evaluator.items_of(found)) is not None:
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return items[slice(*(None if each is None else self.integer(each) for each in ends))]
        index = self.value(node.slice)
        if isinstance(index, str):
            entries = cast("dict[str, object]", found) if isinstance(found, dict) else {}
            return entries[index] if index in entries else self.unsupported(node)
        if (items := evaluator.items_of(found)) is not None and isinstance(index, int):
            if -len(items) <= index < len(items):
                return items[index]
            self.fail(node, f"expected an index below {len(items)}, got {index}")
        return self.unsupported(node)

    def unsupported(self, node: ast.expr) -> object:
        """An expression of plain Python; any other has no position here."""
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
        dim = evaluator.as_dim(value)
        if dim is None:
            self.fail(node, f"expected a dimension, got {describe(value)}")
        return dim

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


_CASTS = {"cast": (0, 1), "Cast": (1, 0)}
"""Where the value and the dtype of a conversion stand; dimensions have one dtype."""


def static_call(reader: StaticReader, node: ast.Call) -> object:
    """A call of a dtype on a number, of a function on dimensions, or of what Python alone sees."""
    name = reader.aliases.name_in("tir", node.func) or reader.aliases.name_in("te", node.func)
    position = evaluator.VALUE_AT.get(name or reader.aliases.name_in("ir", node.func) or "")
    if position is not None and position < len(node.args):
        return reader.value(node.args[position])
    if isinstance(node.func, ast.Name) and node.func.id not in reader.scope:
        name = node.func.id if node.func.id in evaluator.DIM_FUNCTIONS else name
    if name is None or node.keywords:
        return reader.unsupported(node)
    if name in CHOICES and len(node.args) == 3:
        if (found := choice(reader, node)) is None:
            reader.fail(node, f"T.{name} expected a comparison of dimensions, as n < 4, and two dimensions")
        return found
    if is_dtype_name(name) and len(node.args) == 1:
        return _typed(reader, node, reader.value(node.args[0]))
    if name in _CASTS and len(node.args) == 2:
        return _typed(reader, node, reader.value(node.args[_CASTS[name][0]]))
    if name in VARIABLES and node.args:
        return symbol_of(reader.text(node.args[0]))
    return _of_dimensions(reader, node, name)


def _of_dimensions(reader: StaticReader, node: ast.Call, name: str) -> object:
    """A function on two dimensions; of more numbers, as Python's `max` takes, it is plain Python."""
    function = evaluator.DIM_FUNCTIONS.get(name)
    if function is None or len(node.args) != 2:
        return reader.unsupported(node)
    left, right = (reader.value(each) for each in node.args)
    if isinstance(left, float) or isinstance(right, float):
        return reader.unsupported(node)
    try:
        return evaluator.simplest(function(reader.to_dim(node.args[0], left), reader.to_dim(node.args[1], right)))
    except ZeroDivisionError:
        reader.fail(node, "division by zero")
    except evaluator.StaticError as error:
        reader.fail(node, str(error))


def _typed(reader: StaticReader, node: ast.Call, value: object) -> object:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            reader.fail(node, f'expected a number, got "{value}"')
    if not isinstance(value, bool | int | float | Dim):
        reader.fail(node, f"expected a number, got {describe(value)}")
    return value


CHOICES = ("if_then_else", "Select")
"""The functions of `T` that give one of two sides."""


def choice(reader: StaticReader, node: ast.Call) -> Dim | int | None:
    """`T.if_then_else(n < 4, n, 4)`, of dimensions all; `None` if one is something else."""
    condition, then, otherwise = node.args
    holds = _holds(reader, condition)
    first, second = (evaluator.as_dim(reader.value(each)) for each in (then, otherwise))
    if holds is None or first is None or second is None:
        return None
    return evaluator.simplest(second + holds * (first - second))


def is_of_dimensions(reader: StaticReader, node: ast.Call) -> bool:
    """Whether all names of a choice are dimensions or numbers, and at least one a dimension."""
    if len(node.args) != 3 or node.keywords:
        return False
    operators = ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Call | ast.Constant
    names: list[object] = []
    pending: list[ast.expr] = [*node.args]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Name):
            names.append(reader.scope.find(each.id))
        elif isinstance(each, operators):
            pending += [part for part in ast.iter_child_nodes(each) if isinstance(part, ast.expr)]
        elif reader.aliases.resolve(each) is None:
            return False
    return any(isinstance(each, Dim) for each in names) and all(isinstance(each, Dim | int) for each in names)


def _holds(reader: StaticReader, node: ast.expr) -> Dim | None:
    """1 where a condition holds, else 0; `None` if it is none of comparisons of dimensions."""
    match node:
        case ast.Compare(ops=[kind]) if type(kind) in INDICATORS:
            left, right = (evaluator.as_dim(reader.value(each)) for each in (node.left, node.comparators[0]))
            return None if left is None or right is None else INDICATORS[type(kind)](left, right)
        case ast.BoolOp():
            parts = [_holds(reader, each) for each in node.values]
            known = [each for each in parts if each is not None]
            if len(known) != len(parts):
                return None
            return product(known) if isinstance(node.op, ast.And) else 1 - product(1 - each for each in known)
        case ast.UnaryOp(op=ast.Not()):
            return None if (holds := _holds(reader, node.operand)) is None else 1 - holds
        case _:
            return None


_ERRORS = (ValueError, TypeError, ZeroDivisionError, OverflowError, IndexError, KeyError, AttributeError)


def python_value(reader: StaticReader, node: ast.expr) -> object:
    """What an expression of plain Python comes to; `TVMScriptError` for one that is none."""
    try:
        found = _computed(reader, node)
    except TVMScriptError:
        raise
    except _ERRORS as error:
        reader.fail(node, str(error))
    return _plain(found)


def _plain(value: Any) -> object:
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, cast("list[object]", value)))
    return numpy_dtype_name(cast("object", value)) if isinstance(value, np.dtype) else value


def _computed(reader: StaticReader, node: ast.expr) -> object:
    match node:
        case ast.Call():
            function = _function(reader, node.func)
            if function is None:
                return _refused(reader, node)
            named = {each.arg: reader.value(each.value) for each in node.keywords if each.arg is not None}
            return function(*reader.elements(node.args), **named)
        case ast.Attribute():
            return _attribute(reader, node)
        case ast.Subscript():
            return cast("Any", reader.value(node.value))[reader.value(node.slice)]
        case ast.IfExp():
            return reader.value(node.body if _truth(reader, node.test) else node.orelse)
        case ast.BoolOp():
            return _connected(reader, node)
        case ast.JoinedStr():
            return "".join(_piece(reader, each) for each in node.values)
        case ast.ListComp() | ast.GeneratorExp():
            return tuple(_comprehended(reader, node.elt, node.generators))
        case _:
            return _refused(reader, node)


def _refused(reader: StaticReader, node: ast.expr) -> object:
    found = reader.aliases.resolve(node.func if isinstance(node, ast.Call) else node)
    if found is not None and found[0] in ("math", "numpy"):
        reader.fail(node, f"{'.'.join(found)} is not among the functions of Python that texts may use; give its value")
    reader.fail(node, "expected a number, a string, a dimension, or a tuple of those")


def _truth(reader: StaticReader, node: ast.expr) -> bool:
    value = reader.value(node)
    if isinstance(value, bool | int | float | str | tuple | None):
        return bool(cast("object", value))
    reader.fail(node, "expected what is true or false when the text is read; in the program, use `if`")


def _connected(reader: StaticReader, node: ast.BoolOp) -> object:
    found: object = None
    for each in node.values:
        found = reader.value(each)
        if isinstance(found, Dim) or bool(found) is isinstance(node.op, ast.Or):
            break
    return found


def _piece(reader: StaticReader, node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return reader.text(node)
    if node.format_spec is not None:
        reader.fail(node, "expected a name or number in braces without a format")
    value = reader.value(node.value)
    if not isinstance(value, bool | int | float | str | Dim | tuple | None):
        reader.fail(node.value, f"expected what is known when the text is read, got {describe(value)}")
    return str(cast("object", value))


def _comprehended(reader: StaticReader, element: ast.expr, parts: list[ast.comprehension]) -> Iterator[object]:
    if not parts:
        yield reader.value(element)
        return
    part, *rest = parts
    items = items_of(reader.value(part.iter))
    if items is None:
        reader.fail(part.iter, "expected a tuple or range, which is known when the text is read")
    for item in items:
        with reader.scope.inner():
            bind_target(reader, part.target, item)
            if all(_truth(reader, test) for test in part.ifs):
                yield from _comprehended(reader, element, rest)


def bind_target(reader: StaticReader, target: ast.expr, value: object) -> None:
    """Gives a name a value, or the names of a tuple its items."""
    if isinstance(target, ast.Name):
        reader.scope.bind(target.id, value)
        return
    items = items_of(value) or ()
    if not isinstance(target, ast.Tuple | ast.List) or len(items) != len(target.elts):
        reader.fail(target, "expected a name, or as many names as there are values")
    for each, item in zip(target.elts, items, strict=True):
        bind_target(reader, each, item)


def _attribute(reader: StaticReader, node: ast.Attribute) -> object:
    found = reader.aliases.resolve(node)
    if found is not None:
        namespace, name = found
        if namespace in ("math", "numpy") and name in MATH_CONSTANTS:
            return getattr(math, name)
        return str(np.dtype(name)) if namespace == "numpy" and is_dtype_name(name) else _refused(reader, node)
    owner = reader.value(node.value)
    if isinstance(owner, Opaque):
        return owner.attribute(node.attr)
    if isinstance(owner, np.ndarray | np.iinfo | np.finfo) and node.attr in ARRAY_PROPERTIES:
        return getattr(cast("Any", owner), node.attr)
    return _refused(reader, node)


def _function(reader: StaticReader, node: ast.expr) -> Callable[..., Any] | None:
    """The function of Python that a call means, if it is one of those that are known."""
    if isinstance(node, ast.Name):
        return None if node.id in reader.scope else BUILTINS.get(node.id)
    found = reader.aliases.resolve(node)
    if found is not None:
        if found[0] == "numpy" and is_dtype_name(found[1]):
            return np.dtype(found[1]).type
        return PYTHON_FUNCTIONS.get(found)
    if isinstance(node, ast.Attribute) and node.attr in ARRAY_METHODS:
        owner = reader.value(node.value)
        return getattr(cast("Any", owner), node.attr) if isinstance(owner, np.ndarray) else None
    return None


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
