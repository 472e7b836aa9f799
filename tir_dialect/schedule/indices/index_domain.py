"""The index domain of a buffer: its indices as variables, and properties of maps on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tir_dialect.analysis.determination import Axis, determine
from tir_dialect.analysis.extremes import extremes
from tir_dialect.analysis.index_space import Variable
from tir_dialect.dims import Bounds, Dim, DimLike, FloorDivAtom, Prover, ceildiv, constant, symbol
from tir_dialect.schedule.indices.mirrors import Mirrors


@dataclass(frozen=True)
class IndexDomain:
    """A variable for each index of a shape."""

    variables: dict[str, Variable]
    prover: Prover

    @staticmethod
    def of(shape: Sequence[Dim], bounds: Bounds) -> IndexDomain:
        """The domain of a buffer of this shape; `bounds` are those of the symbols in it."""
        values = Block(arg_types=[IndexType()] * len(shape)).args
        variables = [
            Variable(value, symbol(f"x${number}"), constant(0), extent)
            for number, (value, extent) in enumerate(zip(values, shape, strict=True))
        ]
        entries = {str(v.dim): (v.lower, v.lower if v.is_empty or v.upper is None else v.upper - 1) for v in variables}
        return IndexDomain({str(v.dim): v for v in variables}, Prover(bounds.with_entries(entries)))

    @property
    def indices(self) -> list[Dim]:
        """The variables, as expressions."""
        return [variable.dim for variable in self.variables.values()]

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all indices or for none."""
        return self.prover.less_equal(lhs, rhs)

    def tells_apart(self, outputs: Sequence[Dim]) -> bool:
        """Whether two indices for which all of these expressions agree are certainly the same."""
        mirrors = Mirrors.of(self, outputs, self.variables.keys())
        ways = [outputs] if mirrors is None else [outputs, mirrors.indices]
        return any(self._determine_all([(Axis(output),) for output in way]) for way in ways)

    def _determine_all(self, rows: Sequence[tuple[Axis]]) -> bool:
        return all(determine(self, rows, variable, self.variables.keys()) for variable in self.indices)

    def extent(self, output: Dim) -> Dim | None:
        """One more than the greatest value of an expression, of a quotient rounded up; `None` if it is not known to be
        at least 0 and bounded.
        """
        variables = list(self.variables.values())
        found = extremes(output, variables, self.prover)
        if found is None or self.prover.less_equal(0, found.low) is not True:
            return None
        atom = output.as_atom
        if isinstance(atom, FloorDivAtom) and self.variables.keys().isdisjoint(atom.denominator.symbols):
            numerator = extremes(atom.numerator, variables, self.prover)
            if numerator is not None:
                return self.prover.simplify(ceildiv(numerator.high + 1, atom.denominator))
        return self.prover.simplify(found.high + 1)
