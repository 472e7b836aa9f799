"""Where the `tir.init` of a block can run so that it comes before the whole reduction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.accesses import facts
from tir_dialect.analysis.dependence import Axis, Dependence, determine, has_constant_factors, is_variable
from tir_dialect.analysis.dims import DimEvaluator, dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import (
    enclosing_func,
    enclosing_loops,
    has_no_effects,
    is_defined_inside,
    loop_of,
    root_buffer,
)
from tir_dialect.dims import Bounds, Dim, DimLike, FloorDivAtom, Prover, SymbolAtom, constant, symbol
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class InitPlacement:
    """The init of a block, as a nest of its own right before the reduction starts.

    ```mlir
    // before `loop`:
    tir.for (loops) { ops; if conditions { init } }
    tir.for %r ... { ... the block ... }
    ```
    """

    loop: ForOp
    """The outermost loop that the reduction runs over."""

    loops: tuple[ForOp, ...]
    """The loops inside of `loop` that the init runs over, outermost first; their bounds do not depend on the others."""

    ops: tuple[Operation, ...]
    """The ops inside of `loop` that compute what the init needs, in order; they have no effects."""

    conditions: tuple[SSAValue, ...]
    """The parts of the condition after `where` that the init is under."""


def init_placement(block: BlockOp) -> InitPlacement | None:
    """Where the init of `block` can go; `None` if it has none, or has to stay after a test for the first instance.

    It has to stay where other blocks in the loops use its elements or may write what it reads; where one loop drives
    both a spatial iterator and one of another kind, or a condition or a loop bound depends on both; where loops inside
    of the reduction may begin an element again; where what the init needs comes from memory inside of the reduction;
    and where the loops may not begin with the first instance, such as those from `p` to `n` and those that count down,
    or have no iteration at all, or a condition on the reduction may leave it out.
    """
    loops = enclosing_loops(block)
    # The loops whose variables the bindings of iterators that are reduced over depend on.
    variables = {loop.induction_var: loop for loop in loops}
    dependence = Dependence(lambda argument: argument in variables, through_bindings=False)
    used = dependence.of_all(it.binding for it in block.iterators if it.kind.is_reduced)
    reduction = frozenset(variables[variable] for variable in used)
    if block.init is None or not reduction:
        return None
    outer = next(loop for loop in loops if loop in reduction)
    if not _is_loop_nest(outer, block) or _meets_others(block.init, block, outer):
        return None
    finder = _Finder(block, block.init, outer, loops, reduction)
    return finder.find()


def _is_loop_nest(outer: ForOp, block: BlockOp) -> bool:
    """Whether there are only loops between `outer` and `block`."""
    parent = block.parent_op()
    while isinstance(parent, ForOp):
        if parent is outer:
            return True
        parent = parent.parent_op()
    return False


def _meets_others(init: InitOp, block: BlockOp, outer: ForOp) -> bool:
    """Whether others in the loop use what the init writes, or may write what it reads: it has to stay between them.

    Blocks that have an init for the same buffer start other elements: unrolling and partitioning of loops leave them.
    """
    read, written = _buffers(init, LoadOp), _buffers(init, StoreOp)
    starting = [op for op in outer.walk() if isinstance(op, BlockOp) and op.init is not None]
    own = {op for each in starting if written <= _buffers(each.init or init, StoreOp) for op in each.walk()}
    mine = set(block.walk())
    for op in outer.walk():
        if isinstance(op, BufferViewOp) or op in mine:
            continue
        used = {root_buffer(operand) for operand in op.operands if isinstance(operand.type, BufferType)}
        if op not in own and not written.isdisjoint(used):
            return True
        if not isinstance(op, LoadOp) and not read.isdisjoint(used):
            return True
    return False


def _buffers(init: InitOp, kind: type[LoadOp | StoreOp]) -> set[SSAValue]:
    return {root_buffer(op.buffer) for op in init.walk() if isinstance(op, kind)}


class _Finder:
    def __init__(self, block: BlockOp, init: InitOp, outer: ForOp, loops: Sequence[ForOp], reduction: frozenset[ForOp]):
        self._block = block
        self._init = init
        self._outer = outer
        self._inner = loops[loops.index(outer) :]
        self._reduction = {loop.induction_var for loop in reduction}
        self._dependence = Dependence(is_variable, through_bindings=False)

    def find(self) -> InitPlacement | None:
        parts = [(part, self._is_of_reduction_only(part)) for part in _conjuncts(self._block.condition)]
        conditions = [part for part, is_of_reduction in parts if not is_of_reduction]
        start = _Start(self._block, self._reduction)
        if not (start.is_first() and all(start.holds(part) for part, is_of_reduction in parts if is_of_reduction)):
            return None
        bindings = [it.binding for it in self._block.iterators if not it.kind.is_reduced]
        if self._is_ordered_inside() or self._is_repeated_inside(bindings, conditions, start):
            return None
        roots = [*bindings, *conditions, *self._block.extents, *_captured(self._init)]
        # The inner loops that the values depend on; `None` if the reduction is among them.
        used = self._dependence.of_all(roots)
        found = tuple(loop for loop in self._inner if loop.induction_var in used)
        loops = None if any(loop.induction_var in self._reduction for loop in found) else found
        if loops is None:
            return None
        if not all(start.has_iterations(loop) for loop in self._inner if loop not in loops):
            return None
        roots += [bound for loop in loops for bound in loop.operands]
        if not self._reduction.isdisjoint(self._dependence.of_all(roots)):
            return None
        ops = self._ops_for(roots)
        return None if ops is None else InitPlacement(self._outer, loops, ops, tuple(conditions))

    def _is_ordered_inside(self) -> bool:
        """Whether loops inside drive an opaque iterator, whose instances may begin an element more than once."""
        opaque = [it.binding for it in self._block.iterators if it.kind is IteratorKind.OPAQUE]
        return not self._dependence.of_all(opaque).isdisjoint(loop.induction_var for loop in self._inner)

    def _is_repeated_inside(self, bindings: Sequence[SSAValue], conditions: Sequence[SSAValue], start: _Start) -> bool:
        """Whether loops inside may begin an element again: they have iterations with the same values of iterators."""
        driving = self._dependence.of_all(bindings) | self._reduction
        several = [loop for loop in self._inner if not start.runs_once(loop, conditions)]
        if any(loop.induction_var not in driving for loop in several):
            return True
        # a condition may leave out what repeats
        chosen = self._dependence.of_all(conditions) | self._reduction
        spatial = [loop for loop in several if loop.induction_var not in chosen]
        return bool(spatial) and not _tell_apart(self._block, bindings, self._inner, spatial)

    def _is_of_reduction_only(self, condition: SSAValue) -> bool:
        used = self._dependence.of(condition)
        return bool(used) and used <= self._reduction

    def _ops_for(self, roots: Iterable[SSAValue]) -> tuple[Operation, ...] | None:
        """The ops inside of the outermost loop that the values need, in order; `None` if one has effects."""
        needed: set[Operation] = set()
        pending = [value for value in roots if is_defined_inside(value, self._outer)]
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or owner in needed:
                continue
            if owner.regions or not has_no_effects(owner):
                return None
            needed.add(owner)
            pending += [operand for operand in owner.operands if is_defined_inside(operand, self._outer)]
        return tuple(op for op in self._outer.walk() if op in needed)


class _Start:
    """What is known where a reduction starts; a value that is no dimension there may be any number."""

    def __init__(self, block: BlockOp, reduction: Collection[SSAValue]):
        func = enclosing_func(block)
        self._bounds = Bounds() if func is None else func.bounds
        loops = [loop for loop in enclosing_loops(block) if loop.induction_var in reduction or _is_single(loop)]
        self._lower: dict[SSAValue, SSAValue | None] = {loop.induction_var: loop.lower for loop in loops}
        self._unknown: dict[SSAValue, str] = {}
        self._evaluator = DimEvaluator(self._leaf, self)
        self._block = block

    def is_first(self) -> bool:
        """Whether all iterators that are reduced over are shown to be 0."""
        bindings = [self.number(it.binding) for it in self._block.iterators if it.kind.is_reduced]
        return all(self.less_equal(binding, 0) and self.less_equal(0, binding) for binding in bindings)

    def holds(self, condition: SSAValue) -> bool:
        """Whether the condition is shown to hold, unless there is nothing to reduce over."""
        found = list(facts(self, condition))
        return bool(found) and all(self._is_negative(fact - 1) for fact in found)

    def _is_negative(self, number: Dim) -> bool:
        """Whether a number is below 0, unless there is nothing to reduce over."""
        extents = [self.number(it.extent) for it in self._block.iterators if it.kind.is_reduced]
        if self.less_equal(number, -1) or any(self.less_equal(extent, 0) for extent in extents):
            return True
        scaled = [number * factor for factor in {1, *_coefficients(extents), *_divisors(number)}]
        if any(self.less_equal(multiple, -extent) for extent in extents for multiple in scaled):
            return True
        return self.less_equal(number.substitute(where_not_empty(self._bounds, extents)), -1) is True

    def runs_once(self, loop: ForOp, conditions: Sequence[SSAValue]) -> bool:
        """Whether a loop has at most one iteration, or one in which the conditions can hold: the first one."""
        lower = constant(0) if loop.lower is None else self.number(loop.lower)
        if self.less_equal(self.number(loop.upper) - lower, 1) is True:
            return True
        counter = self.number(loop.induction_var)
        second, following = ({counter.as_symbol or "": value} for value in (lower + 1, counter + 1))
        found = [fact for condition in conditions for fact in facts(self, condition)]
        return any(
            self.less_equal(1, fact.substitute(second)) and self.less_equal(fact, fact.substitute(following))
            for fact in found
        )

    def has_iterations(self, loop: ForOp) -> bool:
        """Whether a loop is shown to have iterations, unless there is nothing to reduce over."""
        lower = constant(0) if loop.lower is None else self.number(loop.lower)
        return self._is_negative(lower - self.number(loop.upper))

    def number(self, value: SSAValue) -> Dim:
        """The value in terms of symbols, those of the function and others."""
        return self._evaluator.dim_of(value) or self._fresh(value)

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all values or for none."""
        unbounded = {name: (self._least(value), None) for value, name in self._unknown.items()}
        return Prover(self._bounds.with_entries(unbounded)).less_equal(lhs, rhs)

    @staticmethod
    def _least(value: SSAValue) -> int | None:
        """A lower bound of a value: a loop variable counts up from 0, unless the loop says otherwise."""
        loop = loop_of(value)
        return 0 if loop is not None and loop.lower is None else None

    def _leaf(self, value: SSAValue) -> Dim:
        lower = self._lower.get(value, value)
        if lower is None:
            return constant(0)
        return self._fresh(value) if lower is value else self.number(lower)

    def _fresh(self, value: SSAValue) -> Dim:
        return symbol(self._unknown.setdefault(value, f"start${len(self._unknown)}"))


def _tell_apart(block: BlockOp, bindings: Sequence[SSAValue], nest: Sequence[ForOp], loops: Sequence[ForOp]) -> bool:
    """Whether bindings have other values in each iteration of some loops of a nest.

    Those from memory, and sums with other factors than numbers, are believed to.
    """
    space = IndexSpace(enclosing_func(block) or block)
    dims = [space.dim_of(binding) for binding in bindings]
    names = {space.variable(loop.induction_var).dim.as_symbol or "" for loop in nest}
    known = [dim for dim in dims if dim is not None and has_constant_factors(dim, names)]
    if len(known) < len(dims):
        return True
    rows = [(Axis(dim),) for dim in known]
    return all(determine(space, rows, space.variable(loop.induction_var).dim, names) for loop in loops)


def _is_single(loop: ForOp) -> bool:
    """Whether a loop has one iteration."""
    return loop.lower is None and dim_of(loop.upper) is constant(1)


def where_not_empty(bounds: Bounds, extents: Iterable[Dim]) -> dict[str, Dim]:
    """What symbols stand for where none of the extents is 0: those of which an extent is a multiple are at least 1."""
    monomials = [extent.terms[0][1] for extent in extents if len(extent.terms) == 1]
    names = [atom.name for monomial in monomials for atom, _ in monomial if isinstance(atom, SymbolAtom)]
    return {name: symbol(name) + 1 for name in names if bounds[name][0] == 0}


def _coefficients(dims: Iterable[Dim]) -> set[int]:
    return {coefficient for dim in dims for coefficient, _ in dim.terms if coefficient > 0}


def _divisors(dim: Dim) -> set[int]:
    """The constants that parts of a dimension are divided by."""
    atoms = [atom for _, monomial in dim.terms for atom, _ in monomial if isinstance(atom, FloorDivAtom)]
    return {int(divisor) for atom in atoms if (divisor := atom.operands[1]).is_constant}


def _conjuncts(condition: SSAValue | None) -> Iterator[SSAValue]:
    if condition is None:
        return
    if isinstance(condition.owner, arith.AndIOp):
        for operand in condition.owner.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _captured(init: InitOp) -> Iterator[SSAValue]:
    """The values from outside of the block that the init uses."""
    block = init.parent_op()
    for op in init.walk():
        for operand in op.operands:
            if block is not None and not is_defined_inside(operand, block):
                yield operand
