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
    Monomial,
    SymbolAtom,
    constant,
    from_atom,
    symbol,
)
from tir_dialect.dims.expr import intern_dim
from vm_dialect.ops.values import ConstOp, IntOp

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
        """`emit` inserts an op at the insertion point."""
        self._emit = emit
        self._values: ScopedDict[Dim, SSAValue] = ScopedDict()
        self._capacities: ScopedDict[Dim, SSAValue] = ScopedDict()

    def enter(self) -> None:
        """Opens a scope: what is computed from now on is forgotten by the matching `leave`."""
        self._values, self._capacities = ScopedDict(self._values), ScopedDict(self._capacities)

    def leave(self) -> None:
        """Closes the innermost scope."""
        if self._values.parent is None or self._capacities.parent is None:
            raise ValueError("there is no scope to leave")
        self._values, self._capacities = self._values.parent, self._capacities.parent

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
            found = self._values[dim] = self._compute(dim, self.value)
        return found

    def capacity(self, dim: Dim) -> SSAValue:
        """The value of `dim`, or the nearest that 64 bits hold: as a size of memory, both are refused."""
        found = self._values.get(dim) or self._capacities.get(dim)
        if found is None:
            found = self._capacities[dim] = self._compute(dim, self.capacity, "_sat")
        return found

    def values(self, dims: Sequence[Dim]) -> list[SSAValue]:
        """The values of several dimensions."""
        return [self.value(dim) for dim in dims]

    def apply(self, kind: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`vm.int kind`."""
        return self._emit(IntOp(kind, lhs, rhs)).results[0]

    def _compute(self, dim: Dim, of: Callable[[Dim], SSAValue], overflow: str = "") -> SSAValue:
        """The ops for `dim`, whose parts `of` knows or computes; `overflow` ends the kinds of sums and products."""
        value = dim.constant_value
        if value is not None:
            return self._emit(ConstOp(value)).results[0]
        atom = dim.as_atom
        if isinstance(atom, SymbolAtom):
            raise UnboundSymbolError(f"the symbol {atom.name} is not bound here")
        if atom is not None:
            return self._reduce(_KINDS[type(atom)], [of(operand) for operand in atom.operands])
        if len(dim.terms) == 1:
            return self._reduce(f"mul{overflow}", [of(factor) for factor in _factors(*dim.terms[0])])
        # Each term is a dimension too, so that products which occur in several sums are computed once.
        positive = [of(intern_dim(((c, monomial),))) for c, monomial in dim.terms if c > 0]
        negative = [of(intern_dim(((-c, monomial),))) for c, monomial in dim.terms if c < 0]
        total = self._reduce(f"add{overflow}", positive) if positive else of(constant(0))
        return self._reduce("sub", [total, *negative])

    def _reduce(self, kind: str, values: Sequence[SSAValue]) -> SSAValue:
        return reduce(lambda a, b: self.apply(kind, a, b), values)


def _factors(coefficient: int, monomial: Monomial) -> list[Dim]:
    if coefficient != 1:
        return [intern_dim(((1, monomial),)), constant(coefficient)]
    return [from_atom(atom) for atom, power in monomial for _ in range(power)]


def emitter(builder: Builder, source: Callable[[], Operation | None]) -> Callable[[Operation], Operation]:
    """Inserts ops through `builder`, with the location of the op that `source` says is being lowered."""

    def emit(op: Operation) -> Operation:
        origin = source()
        if origin is not None:
            op.location = origin.location
        return builder.insert(op)

    return emit
