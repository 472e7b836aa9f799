"""The intervals in which dimensions lie, by interval arithmetic over their atoms."""

from __future__ import annotations

from tir_dialect.dims import intervals
from tir_dialect.dims.atoms import Atom, BroadcastAtom, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.bounds import Bounds, End
from tir_dialect.dims.expr import Dim
from tir_dialect.dims.intervals import INF, Interval


class Ranges:
    """Intervals for symbols within `bounds`; every atom is looked at once.

    Fast and coarse: terms count as independent, so `n - n // 2` with `n >= 0` is unbounded below.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._atoms: dict[Atom, Interval] = {}
        self._rising: dict[Atom, bool] = {}

    def of(self, dim: Dim) -> Interval:
        """An interval that contains all values of `dim`."""
        result: Interval = (0, 0)
        for coefficient, monomial in dim.terms:
            part: Interval = (1, 1)
            for atom, power in monomial:
                part = intervals.multiply(part, intervals.power(self.of_atom(atom), power))
            result = intervals.add(result, intervals.scale(part, coefficient))
        return result

    def of_atom(self, atom: Atom) -> Interval:
        """An interval that contains all values of `atom`."""
        found = self._atoms.get(atom)
        if found is None:
            found = self._of_symbol(atom.name) if isinstance(atom, SymbolAtom) else self._of_function(atom)
            self._atoms[atom] = found
        return found

    def _of_symbol(self, name: str) -> Interval:
        low, high = self.bounds[name]
        return -INF if low is None else self._of_end(low)[0], INF if high is None else self._of_end(high)[1]

    def _of_end(self, end: End) -> Interval:
        if isinstance(end, Dim):
            return self.of(end)
        return (-INF, INF) if end is None else (end, end)

    def _of_function(self, atom: Atom) -> Interval:
        operands = [self.of(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                return intervals.floordiv(operands[0], operands[1])
            case ModAtom():
                return intervals.mod(operands[0], operands[1])
            case MinAtom():
                return intervals.minimum(operands)
            case MaxAtom():
                return intervals.maximum(operands)
            case BroadcastAtom():
                return intervals.broadcast(operands)
            case _:
                raise TypeError(f"unknown atom class {type(atom).__name__}")

    def is_exact(self, dim: Dim) -> bool:
        """Whether the ends of the interval are attained because `dim` rises, or falls, with every symbol."""
        return self._rises(dim, 1) or self._rises(dim, -1)

    def _rises(self, dim: Dim, sign: int) -> bool:
        return all(
            coefficient * sign > 0 and all(self._atom_rises(atom) for atom, _ in monomial)
            for coefficient, monomial in dim.terms
            if monomial
        )

    def _atom_rises(self, atom: Atom) -> bool:
        """Whether `atom` is never negative and rises with every symbol; symbols have to be independent."""
        found = self._rising.get(atom)
        if found is None:
            found = self.of_atom(atom)[0] >= 0 and self._operands_rise(atom)
            self._rising[atom] = found
        return found

    def _operands_rise(self, atom: Atom) -> bool:
        match atom:
            case SymbolAtom():
                return not any(isinstance(end, Dim) for end in self.bounds[atom.name])
            case FloorDivAtom():
                return atom.denominator.is_constant and self._rises(atom.numerator, 1)
            case MinAtom() | MaxAtom():
                return all(self._rises(operand, 1) for operand in atom.operands)
            case _:
                return False


class UnboundedRanges(Ranges):
    """The same for symbols that may be any integers, also negative ones."""

    def __init__(self) -> None:
        super().__init__(Bounds())

    def _of_symbol(self, name: str) -> Interval:
        return intervals.EVERYTHING
