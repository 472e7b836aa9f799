"""The patterns themselves: immutable, compared by identity, so that one object stands for one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override
from xdsl.ir import SSAValue

from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns.attributes import has_dtype, has_rank, has_shape
from relax_dialect.patterns.match import Bindings, Match

if TYPE_CHECKING:
    from tir_dialect.dims import DimLike

Check = Callable[[SSAValue], bool]
"""Whether a value is as it has to be."""


class Pattern(ABC):
    """What a value may look like."""

    is_inner: bool = False
    """Whether the op that makes the value belongs to what is matched; else the value is an input of it."""

    used_outside: bool = False
    """Whether ops that are not matched may use the value too, where it is not the last one."""

    @property
    def op_names(self) -> frozenset[str] | None:
        """The names of ops that may make a value that fits; `None` if any may, or none."""
        return None

    @abstractmethod
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        """All ways in which `value` and what it is made of fit, given what is bound already."""

    def match(self, value: SSAValue) -> Match | None:
        """The first way in which the pattern fits `value`, with all inner values of one block and used by nothing else.

        A pattern says by `may_be_used_outside` that the second condition does not hold for it.
        """
        for bound in self.bind(value, Bindings()):
            if (found := Match.of(value, bound)) is not None:
                return found
        return None

    # Combinations

    def __or__(self, other: Pattern) -> Pattern:
        """Fits where the first fits, else where the second does."""
        return _Either(self, other)

    def __and__(self, other: Pattern) -> Pattern:
        """Fits where both fit."""
        return _Both(self, other)

    def __invert__(self) -> Pattern:
        """Fits where this one does not; the value is an input."""
        return _Not(self)

    def optional(self, around: Callable[[Pattern], Pattern]) -> Pattern:
        """The pattern with something `around` it, if that fits, else alone."""
        return around(self) | self

    # Conditions

    def where(self, check: Check) -> Pattern:
        """Fits a value only if `check(value)` holds."""
        return _Where(self, check)

    def has_dtype(self, dtype: str) -> Pattern:
        """Fits tensors with a known dtype of that name, `"f32"`."""
        return self.where(lambda value: has_dtype(value, dtype))

    def has_rank(self, rank: int) -> Pattern:
        """Fits tensors with that many dimensions."""
        return self.where(lambda value: has_rank(value, rank))

    def has_shape(self, shape: Sequence[DimLike | None]) -> Pattern:
        """Fits tensors with provably these dimensions; `None` stands for any."""
        return self.where(lambda value: has_shape(value, shape))

    def may_be_used_outside(self) -> Pattern:
        """Ops that are not matched may use the value."""
        return _Shared(self)

    # Operators, as in programs

    def __add__(self, other: Pattern) -> Pattern:
        return _operation("relax.add", self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return _operation("relax.subtract", self, other)

    def __mul__(self, other: Pattern) -> Pattern:
        return _operation("relax.multiply", self, other)

    def __truediv__(self, other: Pattern) -> Pattern:
        return _operation("relax.divide", self, other)

    def __matmul__(self, other: Pattern) -> Pattern:
        return _operation("relax.matmul", self, other)


class _Wildcard(Pattern):
    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            yield extended


class _Constant(_Wildcard):
    def __init__(self, elements: object | None):
        self._elements = elements

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        op = value.owner
        if (
            isinstance(op, ConstantOp)
            and self._has_elements(op)
            and (extended := bound.extend(self, value)) is not None
        ):
            yield extended

    def _has_elements(self, op: ConstantOp) -> bool:
        if self._elements is None:
            return True
        import numpy as np

        array = op.array
        wanted: Any = np.asarray(self._elements)
        return array is not None and array.shape == wanted.shape and bool(np.array_equal(array, wanted))


class _Either(Pattern):
    def __init__(self, first: Pattern, second: Pattern):
        self._alternatives = (first, second)

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        first, second = (pattern.op_names for pattern in self._alternatives)
        return None if first is None or second is None else first | second

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            for pattern in self._alternatives:
                yield from pattern.bind(value, extended)


class _Both(Pattern):
    def __init__(self, first: Pattern, second: Pattern):
        self._first = first
        self._second = second

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._first.op_names if self._second.op_names is None else self._second.op_names

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            for each in self._first.bind(value, extended):
                yield from self._second.bind(value, each)


class _Not(Pattern):
    def __init__(self, refused: Pattern):
        self._refused = refused

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if next(self._refused.bind(value, bound), None) is None and (extended := bound.extend(self, value)) is not None:
            yield extended


class _Where(Pattern):
    def __init__(self, inner: Pattern, check: Check):
        self._inner = inner
        self._check = check

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._inner.op_names

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if self._check(value) and (extended := bound.extend(self, value)) is not None:
            yield from self._inner.bind(value, extended)


class _Shared(Pattern):
    used_outside = True

    def __init__(self, inner: Pattern):
        self._inner = inner

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._inner.op_names

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            yield from self._inner.bind(value, extended)


def wildcard() -> Pattern:
    """Any value, the same one wherever the pattern occurs; an input of the match."""
    return _Wildcard()


def is_const(elements: object | None = None) -> Pattern:
    """A constant tensor, with these elements if they are given; an input of the match."""
    return _Constant(elements)


def _operation(name: str, *operands: Pattern) -> Pattern:
    from relax_dialect.patterns.operations import is_op

    return is_op(name)(*operands)
