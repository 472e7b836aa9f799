"""What names of `I`, `R` and `T` are while Python defines a decorated class: nothing is computed with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast


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
    """A function under `T.inline`, `T.macro` or `R.macro`: programs read its body in the place of a call."""

    def __init__(self, function: Callable[..., object], *, hygienic: bool, of_relax: bool):
        self.function = function
        self.hygienic = hygienic
        self.of_relax = of_relax
        self.frame = names_at_caller(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.function.__name__} is text of a program and is not executed; decorate what uses it")


def macro_decorator(*, of_relax: bool) -> Callable[..., Any]:
    """The decorator, which may have parentheses behind it."""

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
