"""The shape of a buffer whose indices are mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tir_dialect.analysis.extremes import extremes
from tir_dialect.analysis.index_space import Variable
from tir_dialect.dims import Dim, DimLike, FloorDivAtom, Prover, ceildiv, constant, symbol
from tir_dialect.schedule.accesses import Axis
from tir_dialect.schedule.conflicts import determine
from tir_dialect.schedule.index_map import IndexMap
from tir_dialect.schedule.state import ScheduleState


def mapped_shape(self: ScheduleState, index_map: IndexMap, shape: Sequence[Dim]) -> list[Dim]:
    """The extents that the new indices need; refuses maps of another rank, and those that send two elements to one."""
    if len(index_map.inputs) != len(shape):
        raise self.error(f"expected an index map of {len(shape)} indices, got {index_map}")
    unknown = frozenset[str]().union(*(output.symbols for output in index_map.outputs))
    unknown = unknown.difference(index_map.inputs, self.func.symbol_names)
    if unknown:
        raise self.error(f'index map {index_map} uses "{min(unknown)}", which is no symbol of the function')
    ranges = _Domain.of(self, shape)
    outputs = index_map.apply([variable.dim for variable in ranges.variables.values()])
    rows = [(Axis(output),) for output in outputs]
    for variable in ranges.variables.values():
        if not determine(ranges, rows, variable.dim, ranges.variables.keys()):
            raise self.error(f"index map {index_map} may send two elements to one")
    return [_extent(self, index_map, output, ranges) for output in outputs]


def _extent(self: ScheduleState, index_map: IndexMap, output: Dim, ranges: _Domain) -> Dim:
    found = extremes(output, list(ranges.variables.values()), ranges.prover)
    if found is None or ranges.prover.less_equal(0, found.low) is not True:
        raise self.error(f"index map {index_map} gives an index that is not known to be at least 0 and bounded")
    atom = output.as_atom
    if isinstance(atom, FloorDivAtom) and ranges.variables.keys().isdisjoint(atom.denominator.symbols):
        numerator = extremes(atom.numerator, list(ranges.variables.values()), ranges.prover)
        if numerator is not None:
            return ranges.prover.simplify(ceildiv(numerator.high + 1, atom.denominator))
    return ranges.prover.simplify(found.high + 1)


@dataclass(frozen=True)
class _Domain:
    """The indices of a buffer as variables."""

    variables: dict[str, Variable]
    prover: Prover

    @staticmethod
    def of(state: ScheduleState, shape: Sequence[Dim]) -> _Domain:
        """The domain of a buffer of this shape."""
        values = Block(arg_types=[IndexType()] * len(shape)).args
        variables = [
            Variable(value, symbol(f"x${number}"), constant(0), extent)
            for number, (value, extent) in enumerate(zip(values, shape, strict=True))
        ]
        bounds = {str(v.dim): (v.lower, v.lower if v.is_empty or v.upper is None else v.upper - 1) for v in variables}
        return _Domain({str(v.dim): v for v in variables}, Prover(state.func.bounds.with_entries(bounds)))

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all indices or for none."""
        return self.prover.less_equal(lhs, rhs)
