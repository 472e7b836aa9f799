"""Dimensions as `i64` values: each is computed once in the scope that needs it, from the witnesses of its symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.builder import Builder
from xdsl.ir import Operation, SSAValue
from xdsl.utils.scoped_dict import ScopedDict

from tir_dialect.dims import (
    Atom,
    BroadcastAtom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
    constant,
    symbol,
)
from tir_dialect.dims.expr import Monomial, from_atom, intern_dim
from vm_dialect.ops.constants import ConstOp
from vm_dialect.ops.integers import IntOp

_KINDS: dict[type[Atom], str] = {
    FloorDivAtom: "floordiv",
    ModAtom: "mod",
    MinAtom: "min",
    MaxAtom: "max",
    BroadcastAtom: "broadcast",
}


class UnboundSymbolError(ValueError):
    """A dimension uses a symbol that no value in scope witnesses."""


class Sizes:
    """The dimensions whose values are known in the current scope."""

    def __init__(self, emit: Callable[[Operation], Operation]):
        """`emit` inserts an op at the current place."""
        self._emit = emit
        self._values: ScopedDict[Dim, SSAValue] = ScopedDict()

    def enter(self) -> None:
        """Opens a scope: what is computed from now on is forgotten by the matching `leave`."""
        self._values = ScopedDict(self._values)

    def leave(self) -> None:
        """Closes the innermost scope."""
        if self._values.parent is None:
            raise ValueError("there is no scope to leave")
        self._values = self._values.parent

    def bind(self, dim: Dim, value: SSAValue) -> None:
        """`value` is the value of `dim` from here on."""
        if self._values.get(dim) is None:
            self._values[dim] = value

    def knows(self, dim: Dim) -> bool:
        """Whether all symbols of `dim` are bound here."""
        return all(self._values.get(symbol(name)) is not None for name in dim.symbols)

    def value(self, dim: Dim) -> SSAValue:
        """The `i64` value of `dim`; ops are emitted for what has not been computed yet."""
        found = self._values.get(dim)
        if found is None:
            found = self._compute(dim)
            self._values[dim] = found
        return found

    def values(self, dims: Sequence[Dim]) -> list[SSAValue]:
        """The values of several dimensions."""
        return [self.value(dim) for dim in dims]

    def apply(self, kind: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`vm.int kind`."""
        return self._emit(IntOp(kind, lhs, rhs)).results[0]

    def _compute(self, dim: Dim) -> SSAValue:
        value = dim.constant_value
        if value is not None:
            return self._emit(ConstOp(value)).results[0]
        if dim.as_atom is not None:
            return self._atom(dim.as_atom)
        if len(dim.terms) == 1:
            return self._term(*dim.terms[0])
        # Each term is a dimension too, so that products which occur in several sums are computed once.
        positive = [self.value(intern_dim(((c, monomial),))) for c, monomial in dim.terms if c > 0]
        negative = [self.value(intern_dim(((-c, monomial),))) for c, monomial in dim.terms if c < 0]
        total = reduce(lambda a, b: self.apply("add", a, b), positive) if positive else self.value(constant(0))
        return reduce(lambda a, b: self.apply("sub", a, b), negative, total)

    def _term(self, coefficient: int, monomial: Monomial) -> SSAValue:
        if coefficient != 1:
            product = self.value(intern_dim(((1, monomial),)))
            return self.apply("mul", product, self.value(constant(coefficient)))
        factors = [self.value(from_atom(atom)) for atom, power in monomial for _ in range(power)]
        return reduce(lambda a, b: self.apply("mul", a, b), factors)

    def _atom(self, atom: Atom) -> SSAValue:
        if isinstance(atom, SymbolAtom):
            raise UnboundSymbolError(f"the symbol {atom.name} is not bound here")
        operands = self.values(atom.operands)
        return reduce(lambda a, b: self.apply(_KINDS[type(atom)], a, b), operands)


def emitter(builder: Builder, source: Callable[[], Operation | None]) -> Callable[[Operation], Operation]:
    """Inserts ops through `builder`, with the location of the op that `source` says is being lowered."""

    def emit(op: Operation) -> Operation:
        origin = source()
        if origin is not None:
            op.location = origin.location
        return builder.insert(op)

    return emit
