"""What names stand for: scopes, values of the Python program around a text, and placeholders for `I`, `R` and `T`."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
import types
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.source import Aliases, Source, Tree, dotted, parse_expression, read_object
from tir_dialect.dims import Dim, is_symbol_name, symbol
from tir_dialect.dtypes import parse_dtype
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import post_order


@dataclass(frozen=True)
class FunctionRef:
    """A function of the module."""

    name: str


@dataclass(frozen=True)
class ModuleRef:
    """The module itself, as `cls`."""


@dataclass(frozen=True)
class Unbound:
    """A name that is bound in only one branch, which nothing may use."""

    reason: str


@dataclass(frozen=True)
class Failed(Unbound):
    """A name whose binding is wrong: what uses it has no error of its own."""


@dataclass(frozen=True, eq=False)
class Deferred:
    """A name for an expression, a tree or text, which is read where the name is used."""

    expression: ast.expr | str


class Scope:
    """A stack of frames, each from names to what they stand for."""

    def __init__(self, outermost: Mapping[str, object] | None = None, source: Source | None = None):
        self._frames: list[dict[str, object]] = [dict(outermost or {})]
        self.source = source
        """Where the text is that uses the names; `None` for the text that is being read."""

    def find(self, name: str) -> object | None:
        """What a name stands for; `None` if nothing."""
        for frame in reversed(self._frames):
            if name in frame:
                return frame[name]
        return None

    def __contains__(self, name: str) -> bool:
        return any(name in frame for frame in self._frames)

    def bind(self, name: str, value: object) -> None:
        """Gives a name a meaning in the innermost frame."""
        self._frames[-1][name] = value

    def hide(self, name: str) -> None:
        """Takes a name back, in every frame."""
        for frame in self._frames:
            frame.pop(name, None)

    def names(self) -> Iterator[str]:
        """All visible names."""
        return (name for frame in self._frames for name in frame)

    def shared(self) -> Scope:
        """A scope of the same frames, whose names it sees whenever they are bound; its inner frames are its own."""
        scope = Scope(source=self.source)
        scope._frames = list(self._frames)
        return scope

    @contextmanager
    def inner(self) -> Generator[dict[str, object]]:
        """A frame that ends with the block; gives what was bound in it."""
        frame: dict[str, object] = {}
        self._frames.append(frame)
        try:
            yield frame
        finally:
            self._frames.pop()


_RESERVED = frozenset({"_", "floordiv", "mod", "ceildiv", "min", "max", "broadcast"})


def symbol_of(name: str) -> Dim:
    """The symbol for a variable of a text; names that symbols cannot have get an underscore."""
    if name in _RESERVED:
        name += "_"
    if not is_symbol_name(name):
        raise ValueError(f"the name {name} cannot name a dimension; use letters, digits and underscores")
    return symbol(name)


_CALL = "vscale"

_UNIT_BITS = 128

_CALLED = re.compile(r"[\w.]*\bvscale\(\)")

_DTYPE = re.compile(r"([a-z]+\d*(?:_\w+?)?)xvscalex(\d+)")


def vscale_of(vector_bits: int | None) -> int:
    """How often a register of a machine has 128 bits; 1 if its width is not known or smaller."""
    return 1 if vector_bits is None else max(1, vector_bits // _UNIT_BITS)


def with_fixed_lanes(body: Sequence[ast.stmt], vscale: int) -> list[ast.stmt]:
    """Statements with a number for `T.vscale()`, and with so many lanes in the names of dtypes."""
    return [_Fixed(vscale).visit(statement) for statement in body]


def fixed_value(value: object, vscale: int) -> object:
    """The same for what a name around a text stands for: the name of a dtype, or an expression."""
    match value:
        case str():
            return _fixed_text(value, vscale)
        case Deferred(expression=str() as text):
            return Deferred(_CALLED.sub(str(vscale), _fixed_text(text, vscale)))
        case _:
            return value


class _Fixed(ast.NodeTransformer):
    """Replaces calls of `T.vscale` and names of dtypes of scalable vectors."""

    def __init__(self, vscale: int):
        self._vscale = vscale

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == _CALL and not node.args and not node.keywords:
            return ast.copy_location(ast.Constant(self._vscale), node)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return ast.copy_location(ast.Constant(_fixed_text(node.value, self._vscale)), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = _fixed_text(node.attr, self._vscale)
        return node


def _fixed_text(text: str, vscale: int) -> str:
    """`float32xvscalex4` as `float32x8` where `vscale` is 2."""
    return _DTYPE.sub(lambda found: f"{found[1]}x{int(found[2]) * vscale}", text)


class Placeholder:
    """Takes every call, index and operator, and keeps its text, which is all that counts."""

    def __init__(self, text: str, values: Mapping[str, object] | None = None):
        self._text = text
        self._values = values or {}

    def __str__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self._text}.{name}", self._values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _composed(self, "({})", *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return _composed(self, "[{}]", index)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self._text} is text of a program and is not executed; decorate what uses it")

    def __bool__(self) -> bool:
        raise TypeError(f"{self._text} is text of a program and is not executed; decorate what uses it")

    def __repr__(self) -> str:
        return f"<{self._text} of a program>"


class Macro:
    """A function under `T.inline`, `T.macro` or `R.macro`: programs read its body instead of a call."""

    def __init__(self, function: Callable[..., object], *, hygienic: bool, of_relax: bool):
        self.function = function
        self.hygienic = hygienic
        self.of_relax = of_relax
        self.frame = names_at_caller(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.function.__name__} is text of a program and is not executed; decorate what uses it")


def macro_decorator(*, of_relax: bool) -> Callable[..., Any]:
    """The decorator, which may have parentheses after it."""

    def decorate(function: Callable[..., object] | None = None, *, hygienic: bool = True) -> Any:
        def made(function: Callable[..., object]) -> Macro:
            return Macro(function, hygienic=hygienic, of_relax=of_relax)

        if function is None:
            return made
        if not callable(function):
            raise ValueError(f"expected a function under the decorator, got {function!r}")
        return made(function)

    return decorate


def values_of(placeholder: Placeholder) -> Mapping[str, object]:
    """What the names stand for that the text of a placeholder has for objects which are no text."""
    return vars(placeholder)["_values"]


def _composed(owner: Placeholder, form: str, *args: object, **kwargs: object) -> Placeholder:
    values = dict(values_of(owner))
    parts = [_text_of(each, values) for each in args]
    parts += [f"{name}={_text_of(each, values)}" for name, each in kwargs.items()]
    return Placeholder(f"{owner}{form.format(', '.join(parts))}", values)


def _text_of(value: object, values: dict[str, object]) -> str:
    """A value in the text of a placeholder: a number or string as such, any other object by a name of its own."""
    if isinstance(value, bool | int | str | None):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"({''.join(f'{_text_of(each, values)}, ' for each in cast('list[object]', value))})"
    if isinstance(value, Placeholder) and not str(value).endswith("()"):
        values |= values_of(value)
        return str(value)
    # a call without arguments makes a new thing each time, such as a dimension
    name = f"value_{id(value)}"
    values[name] = value
    return name


def _unary(sign: str) -> Callable[[Placeholder], Placeholder]:
    return lambda one: Placeholder(f"({sign}{one})", values_of(one))


def _operator(sign: str, *, reflected: bool) -> Callable[[Placeholder, object], Placeholder]:
    def apply(one: Placeholder, other: object) -> Placeholder:
        values: dict[str, object] = {}
        sides = [_text_of(each, values) for each in ((other, one) if reflected else (one, other))]
        return Placeholder(f"({sides[0]} {sign} {sides[1]})", values)

    return apply


_BINARY = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**"}

_BITWISE = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}

for _name, _sign in (_BINARY | _BITWISE).items():
    setattr(Placeholder, f"__{_name}__", _operator(_sign, reflected=False))
    setattr(Placeholder, f"__r{_name}__", _operator(_sign, reflected=True))

for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Placeholder, f"__{_name}__", _operator(_sign, reflected=False))

for _name, _sign in {"neg": "-", "pos": "+", "invert": "~"}.items():
    setattr(Placeholder, f"__{_name}__", _unary(_sign))


def names_at_caller(subject: Callable[..., object] | type) -> dict[str, object]:
    """The names that are visible where the function or class is decorated, those of outer functions included."""
    outer = set(subject.__qualname__.split(".")[:-1])
    frame = inspect.currentframe()
    found: dict[str, object] = {}
    while frame is not None:
        if frame.f_code.co_name in outer and frame.f_globals.get("__name__") == subject.__module__:
            found = {**frame.f_locals, **found}
        frame = frame.f_back
    return found


def is_in_class(function: Callable[..., object]) -> bool:
    """Whether a function stands in the body of a class, which is then read as a whole."""
    outer = function.__qualname__.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")


class TypedInt(int):
    """An integer of a dtype."""

    dtype: Attribute


class TypedFloat(float):
    """A floating-point number of a dtype."""

    dtype: Attribute


def typed(value: float, dtype: Attribute) -> int | float:
    """A number that remembers its dtype; an integer becomes a floating-point number if the dtype is of these."""
    made = TypedFloat(value) if isinstance(dtype, AnyFloat) else TypedInt(value)
    made.dtype = dtype
    return made


def dtype_of(value: object) -> Attribute | None:
    """The dtype that the text names for a number, if it does."""
    return value.dtype if isinstance(value, TypedInt | TypedFloat) else None


VARIABLES = frozenset({"var", "Var", "SizeVar", "size_var"})
"""Functions that make a dimension, whose name they are given."""


def declares_dimension(aliases: Aliases, node: ast.expr) -> bool:
    """Whether an expression makes a new dimension, which is named by what it is assigned to."""
    if not isinstance(node, ast.Call):
        return False
    parts = dotted(node.func)
    if parts is not None and parts[-1] == "TypeVar":
        return True
    name = aliases.name_in("tir", node.func) or aliases.name_in("te", node.func)
    if name is None:
        return False
    if name in VARIABLES:
        return all(isinstance(each, ast.Constant) for each in node.args)
    keywords_only_mark = all(each.arg in ("is_size_var", "size_var") for each in node.keywords)
    return is_dtype_name(name) and not node.args and keywords_only_mark


def declared_dtype(aliases: Aliases, node: ast.expr) -> str:
    """The dtype that a declaration names; `int64` if none."""
    if isinstance(node, ast.Call):
        name = aliases.name_in("tir", node.func)
        if name is not None and is_dtype_name(name):
            return name
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return next((text for text in texts if is_dtype_name(text)), "int64")
    return "int64"


def declarations(aliases: Aliases, target: ast.expr, node: ast.expr) -> list[tuple[ast.expr, str, ast.expr]]:
    """All declarations of `n = T.int64()` or `n, m = T.int64(), T.int64()`, with the target of each; or none at all."""
    if isinstance(target, ast.Tuple) and isinstance(node, ast.Tuple) and len(target.elts) == len(node.elts):
        pairs = list(zip(target.elts, node.elts, strict=True))
    else:
        pairs = [(target, node)]
    names = [(each, value) for each, value in pairs if isinstance(each, ast.Name)]
    found = [(each, each.id, value) for each, value in names if declares_dimension(aliases, value)]
    return [*found] if len(found) == len(pairs) else []


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
                # The objects that the text of a placeholder has names for; a dimension is called as the
                # surroundings call it.
                placeholder = value
                names = {id(value): name for name, value in tree.visible.items() if isinstance(value, Placeholder)}
                found |= {
                    name: plain(names.get(id(value), "dim"), value) for name, value in values_of(placeholder).items()
                }
    return {name: fixed_value(value, tree.vscale) for name, value in found.items()}


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
        # A dimension that Python code declared has the name that it was given there.
        text = str(value)
        return symbol_of(name) if declares_dimension(Aliases(), parse_expression(text)) else Deferred(text)
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
