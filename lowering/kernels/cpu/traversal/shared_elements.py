"""Loads whose neighbours along an axis share elements, as `x[i // 3]`, or alternate between lines, as `x[i mod 2, i //
2]`.

Where an axis occurs in an address in quotients and remainders by constants, there is a group size such that, of
consecutive groups, each member reads consecutive elements: a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.guards import unneeded
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.accesses import linear_parts
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, constant, symbol
from tir_dialect.ops.memory import LoadOp

Line: TypeAlias = tuple[Dim, tuple[tuple[SSAValue, Dim], ...]]
"""Where the elements of one begin: an expression over the axes, and values of another kind with their strides."""

MOST_LINES, MOST_MEMBERS = 8, 256


@dataclass(frozen=True)
class SharedElements:
    """A load along an axis whose every group of members reads one element of each line."""

    load: LoadOp
    order: tuple[int, ...]
    """The line of each member."""

    @property
    def members(self) -> int:
        """How many neighbours are a group."""
        return len(self.order)

    @property
    def lines(self) -> tuple[int, ...]:
        """The first member of each line."""
        return tuple(self.order.index(line) for line in range(max(self.order) + 1))


def find_shared_elements(kernel: Kernel, stage: Stage, axis: int) -> tuple[SharedElements, ...]:
    """Such loads of a map with lanes along an axis, of those that are made in any case."""
    if axis not in stage.pinned:
        return ()
    finder = _Finder(kernel, stage, axis)
    found = [finder.find(op) for op in stage.body if isinstance(op, LoadOp)]
    return tuple(each for each in found if each is not None)


def same_in_all(stage: Stage, axis: int) -> frozenset[Operation]:
    """The ops of a stage whose results do not depend on an axis."""
    lane = stage.axes[axis].value
    varies = Dependence(lambda argument: argument is lane)
    return frozenset(op for op in stage.body if op.results and not varies.of(op.results[0]))


def index_ops(load: LoadOp) -> frozenset[Operation]:
    """The ops that a load's indices are computed by."""
    found: set[Operation] = set()
    pending = list(load.indices)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += op.operands
    return frozenset(found)


def only_for_indices(stage: Stage, reads: Sequence[SharedElements]) -> frozenset[Operation]:
    """The ops that only compute indices of such loads."""
    return unneeded(stage, frozenset(read.load for read in reads))


class _Finder:
    """Analyses the loads of one stage."""

    def __init__(self, kernel: Kernel, stage: Stage, axis: int):
        self.kernel, self.stage, self.axis = kernel, stage, axis
        self.space = IndexSpace(stage.block)
        self.names = [self.space.variable(each.value).dim.as_symbol or "" for each in stage.axes]
        lane, self.written = stage.axes[axis].value, {store.buffer for store in stage.stores}
        self.varies = Dependence(
            lambda argument: argument is lane,
            loads=lambda load: (lane,) if load.buffer in self.written else load.operands,
        )

    def find(self, load: LoadOp) -> SharedElements | None:
        """The lines of a load; `None` if it has none."""
        if load in self.stage.wholes or load.buffer in self.written:
            return None
        dims = [self.space.dim_of(index) for index in load.indices]
        members = lcm(*(number for dim in dims if dim is not None for number in _divisors(dim, self.names[self.axis])))
        if not 1 < members <= MOST_MEMBERS:
            return None
        lines = [self._line(load, dims, members, member) for member in range(members)]
        different = list(dict.fromkeys(lines))
        if None in lines or len(different) > MOST_LINES:
            return None
        return SharedElements(load, tuple(different.index(line) for line in lines))

    def _line(self, load: LoadOp, dims: Sequence[Dim | None], members: int, member: int) -> Line | None:
        """Where a member of the first group reads; `None` if those of the next ones do not read the next elements."""
        first, stride, name = constant(0), constant(0), self.names[self.axis]
        computed: list[tuple[SSAValue, Dim]] = []
        for index, dim, step in zip(load.indices, dims, self.kernel.steps(load), strict=True):
            if dim is None:
                computed.append((index, step))
                continue
            parts = linear_parts(dim.substitute({name: members * symbol(name) + member}), [name])
            if parts is None:
                return None
            first, stride = first + parts[0] * step, stride + parts[1][0] * step
        if any(self.varies.of(index) for index, _ in computed):
            return None
        stride = self.kernel.settled.get(stride, stride)
        return (first, tuple(computed)) if stride.constant_value == 1 else None


def _divisors(dim: Dim, name: str) -> Iterator[int]:
    """The constants by which anything with a symbol is divided."""
    for atom in (atom for _, monomial in dim.terms for atom, _ in monomial if name in atom.symbols):
        if isinstance(atom, FloorDivAtom | ModAtom) and atom.denominator.constant_value is not None:
            yield atom.denominator.constant_value
            yield from _divisors(atom.numerator, name)
