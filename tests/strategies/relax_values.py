"""What a generator of relax programs knows of the values that it has made: their size when the program runs.

A program is generated together with the sizes of its symbols. Every value is known by its shape at run time, whatever
its type says, so that what is put together also fits where the types leave it open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import Expr, op

T = TypeVar("T")

DTYPES = ("f32", "i64", "i1")


@dataclass(eq=False)
class Tensor:
    """A tensor value, its dtype, its shape at run time, and its elements if those are known too."""

    expr: Expr
    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray | None = None


@dataclass(eq=False)
class Tuple:
    """A tuple value and its fields, which are known but for their expressions."""

    expr: Expr
    fields: tuple[Item, ...]


Item: TypeAlias = Tensor | Tuple


@dataclass(frozen=True)
class Spec:
    """What is known about a value before it is made."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(eq=False)
class Function:
    """Something that can be called: dtypes and shapes of its parameters, and of its result."""

    call: Callable[[Sequence[Expr]], Expr]
    params: tuple[Spec, ...]
    result: Item


def with_expr(item: Item, expr: Expr) -> Item:
    """Another value of which the same is known, but for its elements."""
    if isinstance(item, Tensor):
        return Tensor(expr, item.dtype, item.shape)
    return Tuple(expr, item.fields)


class Source:
    """Choices, with the simplest first: what they shrink to."""

    def __init__(self, draw: st.DrawFn):
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return self._draw(st.integers(low, high))

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def flag(self) -> bool:
        """`False`, or `True`."""
        return self._draw(st.booleans())

    def repeats(self, most: int) -> Iterator[int]:
        """`0`, `1`, ... below a limit, at least `0`; each time whether to go on is decided anew, so that any can go."""
        for index in range(most):
            if index and self.integer(0, 3) == 0:
                return
            yield index

    def size(self) -> int:
        """A dimension."""
        return self.choice((2, 3, 1, 0, 4))

    def array(self, spec: Spec) -> np.ndarray:
        """Elements: floats in [-1, 1], small integers, truth values."""
        rng = np.random.default_rng(self.integer(0, 255))
        if spec.dtype == "f32":
            return rng.uniform(-1, 1, spec.shape).astype(np.float32)
        if spec.dtype == "i64":
            return rng.integers(-4, 5, spec.shape)
        return rng.integers(0, 2, spec.shape).astype(np.bool_)


class Values:
    """The values and symbols that a program has at the point where the builder stands."""

    def __init__(self, source: Source, bb: BlockBuilder):
        self.source = source
        self.bb = bb
        self.sizes: dict[str, int] = {}
        """The values of symbols of the function that is open."""
        self._scopes: list[list[Item]] = []

    # Scopes

    def push(self) -> None:
        """A region begins."""
        self._scopes.append([])

    def pop(self) -> list[Item]:
        """A region ends; what was made in it is no longer visible."""
        return self._scopes.pop()

    def swap(self, scopes: list[list[Item]], sizes: dict[str, int]) -> tuple[list[list[Item]], dict[str, int]]:
        """Another function begins, or goes on: its values and symbols; gives those of the one before."""
        old = self._scopes, self.sizes
        self._scopes, self.sizes = scopes, sizes
        return old

    def add(self, item: Item) -> Item:
        """Makes a value visible; the fields of a tuple are reached through it."""
        self._scopes[-1].append(item)
        return item

    def made(self) -> list[Item]:
        """What the innermost region has made, the latest first."""
        return self._scopes[-1][::-1]

    # Tensors

    def tensors(self, dtype: str | None = None) -> list[Tensor]:
        """The visible tensors, the latest first."""
        items = (item for scope in reversed(self._scopes) for item in reversed(scope))
        return [item for item in items if isinstance(item, Tensor) and dtype in (None, item.dtype)]

    def tuples(self) -> list[Tuple]:
        """The visible tuples, the latest first."""
        return [item for scope in reversed(self._scopes) for item in reversed(scope) if isinstance(item, Tuple)]

    def tensor(self, dtype: str | None = None) -> Tensor:
        """A visible tensor; a constant if there is none."""
        found = self.tensors(dtype)
        return self.source.choice(found) if found else self.constant(Spec(dtype or "f32", ()))

    def partner(self, tensor: Tensor) -> Tensor:
        """A tensor of the same dtype to which or from which the shape broadcasts; perhaps the same tensor."""
        fitting = [other for other in self.tensors(tensor.dtype) if _broadcast(tensor, other)]
        return self.source.choice(fitting or [tensor])

    def of(self, spec: Spec) -> Tensor:
        """A tensor of given dtype and shape; a new one if there is none."""
        found = [tensor for tensor in self.tensors(spec.dtype) if tensor.shape == spec.shape]
        return self.source.choice(found) if found else self.filled(spec)

    def filled(self, spec: Spec) -> Tensor:
        """A new tensor with equal elements."""
        value = {"f32": 0.5, "i64": 2, "i1": True}[spec.dtype]
        shape = [self.dim(size) for size in spec.shape]
        return Tensor(op.full(shape, self.bb.const(value), spec.dtype), spec.dtype, spec.shape)

    def constant(self, spec: Spec) -> Tensor:
        """A new constant."""
        data = self.source.array(spec)
        return Tensor(self.bb.const(data, spec.dtype), spec.dtype, spec.shape, data)

    # Dimensions

    def dim(self, size: int) -> int | str:
        """A dimension of that size: a number, or an expression over symbols that has this value here."""
        options: list[int | str] = [size]
        for name in self.bb.symbols:
            known = self.sizes.get(name)
            if known == size:
                options.append(name)
            elif known is not None and known + 1 == size:
                options.append(f"{name} + 1")
            elif known is not None and 2 * known == size:
                options.append(f"2 * {name}")
        return self.source.choice(options)

    def new_symbol(self, size: int) -> str:
        """A symbol that the function does not have yet."""
        name = self.bb.fresh_symbol(f"k{len(self.sizes)}")
        self.sizes[name] = size
        return name


def _broadcast(left: Tensor, right: Tensor) -> bool:
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        return False
    return True
