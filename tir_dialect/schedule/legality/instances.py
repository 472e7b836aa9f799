"""Which instances of a block the loops around it make: for which values of its iterators, how often, in which order;
and whether accesses stay inside of their buffers in instances that a block did not have before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tir_dialect.analysis.dependence import Axis, Dependence, determine, is_loop_variable
from tir_dialect.analysis.digits import as_sum
from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.analysis.init import init_placement, where_not_empty
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors, enclosing_loops
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import Access, box_in, clipped, is_dense_once, loop_names, loops_between
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conditions_of, iterator_extent


@dataclass(frozen=True)
class Instances:
    """The instances that a block has in one iteration of the loop `around` it, without one in the whole function."""

    state: ScheduleState
    block: BlockOp
    around: ForOp | None = None

    @property
    def loops(self) -> list[ForOp]:
        """The loops that make them, outermost first."""
        loops = enclosing_loops(self.block)
        return list(loops if self.around is None else loops[loops.index(self.around) + 1 :])

    @property
    def reduced(self) -> list[int]:
        """The numbers of the iterators that are reduced over."""
        return [number for number, iterator in enumerate(self.block.iterators) if iterator.kind.is_reduced]

    @property
    def spatial(self) -> list[int]:
        """The numbers of the others."""
        return [number for number, iterator in enumerate(self.block.iterators) if not iterator.kind.is_reduced]

    def binding(self, number: int) -> Dim | None:
        """An iterator in terms of loop variables; `None` if it is no such expression."""
        return self.state.space.dim_of(self.block.iterators[number].binding)

    def extents(self, numbers: Iterable[int]) -> list[Dim]:
        """The extents of some iterators."""
        return [iterator_extent(self.state, self.block, number) for number in numbers]

    def idle(self, numbers: Iterable[int]) -> list[ForOp]:
        """The loops that drive none of these iterators."""
        driving = Dependence(is_loop_variable).of_all(self.block.iterators[number].binding for number in numbers)
        return [loop for loop in self.loops if loop.induction_var not in driving]

    def ranges(self, numbers: Sequence[int]) -> list[AxisRange]:
        """The least ranges of some iterators that hold all instances."""
        return clipped(self.state.space.prover, self.box(numbers), self.extents(numbers)) if numbers else []

    def take_all(self, numbers: Sequence[int]) -> bool:
        """Whether these iterators together take all values of their ranges, if the other loops have iterations."""
        if not numbers:
            return True
        box = self.box(numbers)
        return is_dense_once(self.state, [self.as_access(numbers)], self.around, box) and self._is_whole(numbers)

    def reach_all(self, numbers: Sequence[int]) -> bool:
        """Whether these iterators together take all values of their domains, if the other loops have iterations."""
        everything = [AxisRange(constant(0), extent) for extent in self.extents(numbers)]
        return self.take_all(numbers) and (not numbers or self.box(numbers) == everything)

    def have_others(self, numbers: Sequence[int]) -> bool:
        """Whether for any values of these iterators that are taken the loops of the others have an instance."""
        idle, less_equal = self.idle(numbers), self.state.space.less_equal
        first = {self.state.symbol(loop).as_symbol or "": self.state.lower(loop) for loop in idle}
        conditions = (each for each in self._conditions() if not isinstance(each, Less) or first.keys() & _names(each))
        return not self._is_in_branch() and (
            all(less_equal(1, self.state.extent(loop)) is True for loop in idle)
            and all(isinstance(each, Less) and self._holds(each, first) for each in conditions)
        )

    def are_distinct(self, loops: Sequence[ForOp] | None = None) -> bool:
        """Whether the loops, or some of them, make no instance twice."""
        axes = [(Axis(self.binding(number)),) for number in range(len(self.block.iterators))]
        space, less_equal = self.state.space, self.state.space.less_equal
        return all(
            less_equal(self.state.extent(loop), 1) is True
            or determine(space, axes, self.state.symbol(loop), loop_names(space, loop))
            for loop in (self.loops if loops is None else loops)
        )

    def ascend(self, loops: Sequence[ForOp] | None = None) -> bool:
        """Whether no iterator that is reduced over becomes less while the others keep their values.

        Then the instance that runs the init, if there is one, comes first, where the others leave a choice.
        """
        bindings = [self.binding(number) for number in self.reduced]
        names = {self.state.symbol(loop).as_symbol or "" for loop in self.loops}
        return all(
            binding is not None and ascends(self.state, binding, self.state.symbol(loop), names)
            for loop in (self.loops if loops is None else loops)
            for binding in bindings
        )

    def start(self) -> bool:
        """Whether the init of the block has an instance, or runs because the domain of the reduction is empty."""
        domain, less_equal = self.extents(self.reduced), self.state.space.less_equal
        if init_placement(self.block) is None:
            return self.reach_all(self.reduced) and all(less_equal(1, extent) is True for extent in domain)
        idle = self.idle(self.reduced)
        lengths = [self.state.extent(loop) for loop in self.loops if loop not in idle]
        filled = where_not_empty(self.state.func.bounds, domain)
        return self.reach_all(self.reduced) or all(
            less_equal(1, length.substitute(filled)) is True or any(less_equal(each, length) is True for each in domain)
            for length in lengths
        )

    def run_once(self, loop: ForOp) -> bool:
        """Whether a loop has exactly one iteration in which the conditions on it can hold."""
        length, counter, prover = self.state.extent(loop), self.state.symbol(loop), self.state.space.prover
        if prover.equal(length, 1) is True:
            return True
        first, second = ({counter.as_symbol or "": self.state.lower(loop) + step} for step in (0, 1))
        found = [each for each in self._conditions() if isinstance(each, Less) and first.keys() & _names(each)]
        left_out = (
            prover.less_equal(each.rhs.substitute(second), each.lhs.substitute(second)) is True for each in found
        )
        holds = all(self._holds(each, first) for each in found)
        return prover.less_equal(1, length) is True and holds and any(left_out)

    def as_access(self, numbers: Sequence[int]) -> Access:
        """As if some of the iterators, at least one, were the indices of a buffer."""
        axes = tuple(Axis(self.binding(number)) for number in numbers)
        return Access(self.block, self.block.bindings[0], True, axes)

    def box(self, numbers: Sequence[int]) -> list[AxisRange]:
        """The ranges of some iterators, as the loops give them without the conditions."""
        return box_in(self.state, [self.as_access(numbers)], self.around, self.extents(numbers))

    def _conditions(self) -> list[object]:
        return [*conditions_of(self.state.space, self.block)]

    def _is_in_branch(self) -> bool:
        outer = self.block.parent_op()
        while isinstance(outer, ForOp | IfOp) and outer is not self.around:
            if isinstance(outer, IfOp):
                return True
            outer = outer.parent_op()
        return False

    def _is_whole(self, numbers: Sequence[int]) -> bool:
        """Whether no condition says more of these iterators than that each is in its domain."""
        driving = {self.state.symbol(op).as_symbol for op in self.loops if op not in self.idle(numbers)}
        ends = [
            end
            for number, extent in zip(numbers, self.extents(numbers), strict=True)
            if (binding := self.binding(number)) is not None
            for end in (Less(binding, extent), Less(constant(-1), binding))
        ]
        return all(
            isinstance(each, Less) and (each in ends or driving.isdisjoint(_names(each))) for each in self._conditions()
        )

    def _holds(self, condition: Less, first: dict[str, Dim]) -> bool:
        lhs, rhs = condition.lhs.substitute(first), condition.rhs.substitute(first)
        return self.state.space.prover.less(lhs, rhs) is True


def _names(condition: Less) -> frozenset[str]:
    return condition.lhs.symbols | condition.rhs.symbols


def ascends(self: ScheduleState, binding: Dim, counter: Dim, names: set[str]) -> bool:
    """Whether a value does not become less in the next iteration of a loop, or is made of digits that grow there."""
    name = counter.as_symbol or ""
    if name not in binding.symbols:
        return True
    if self.space.less_equal(binding, binding.substitute({name: counter + 1})) is True:
        return True
    found = as_sum(self.space, binding, names)
    sources = [] if found is None else [term.digit.source for term in found.terms if not term.mirrored]
    return (
        found is not None
        and len(sources) == len(found.terms)
        and all(self.space.less_equal(each, each.substitute({name: counter + 1})) is True for each in sources)
    )


def check_in_order(self: ScheduleState, instances: Instances, loops: Sequence[ForOp] | None = None) -> None:
    """Refuses a reduction whose result depends on the order of some of its loops, or on how often they run.

    That is so where an instance may come before the one that runs the init, or twice.
    """
    name = instances.block.block_name.data
    if not instances.reduced:
        return
    for loop in instances.loops if loops is None else loops:
        hint = loop.induction_var.name_hint
        if not (instances.are_distinct([loop]) or instances.run_once(loop)):
            raise self.error(f'several iterations of loop "{hint}" may run the same instance of block "{name}"')
        if instances.block.init is not None and not instances.ascend([loop]):
            raise self.error(f'loop "{hint}" may count a reduce iterator of block "{name}" down, to its init')


def is_dense(self: ScheduleState, accesses: Sequence[Access], loop: ForOp | None, box: Sequence[AxisRange]) -> bool:
    """Whether the accesses touch, in an iteration of `loop`, all elements of their common box."""
    return any(
        is_dense_once(self, [access], loop, box)
        and all(_runs(self, access, each, loop, box) for each in _idle(self, access, loop))
        and all(_is_allowed(self, access, loop, block) for block in _blocks_between(self, access, loop))
        for access in accesses
    )


def _idle(self: ScheduleState, access: Access, loop: ForOp | None) -> list[ForOp]:
    """The loops inside of `loop` that do not move an access."""
    used = _symbols(access)
    inner = (op for op in loops_between(access, loop) if is_inside(op, self.space.root))
    return [op for op in inner if self.symbol(op).as_symbol not in used]


def _symbols(access: Access) -> frozenset[str]:
    return frozenset[str]().union(*(axis.low.symbols for axis in access.axes if axis.low is not None))


def _blocks_between(self: ScheduleState, access: Access, loop: ForOp | None) -> Iterator[BlockOp]:
    """The blocks around an access in a loop, or where the primitive works."""
    for op in ancestors(access.op):
        if op is loop or op is self.space.root:
            return
        if isinstance(op, BlockOp):
            yield op


def _is_allowed(self: ScheduleState, access: Access, loop: ForOp | None, block: BlockOp) -> bool:
    """Whether what the conditions of a block say of other things than the indices holds in some iteration.

    The first iteration of idle loops is tried. Conditions on a reduction do not concern an init that runs before it.
    """
    first = {self.symbol(op).as_symbol or "": self.lower(op) for op in _idle(self, access, loop)}
    known, less = _symbols(access) | set(self.func.symbol_names), self.space.prover.less
    if block.init is not None and is_inside(access.op, block.init) and init_placement(block) is not None:
        instances = Instances(self, block)
        reduced = (instances.binding(number) for number in instances.reduced)
        known = known.union(*(binding.symbols for binding in reduced if binding is not None))
    conditions = (each for each in conditions_of(self.space, block) if isinstance(each, Less))
    return all(
        _names(each) <= known or less(each.lhs.substitute(first), each.rhs.substitute(first)) is True
        for each in conditions
    )


def _runs(self: ScheduleState, access: Access, idle: ForOp, loop: ForOp | None, box: Sequence[AxisRange]) -> bool:
    """Whether an idle loop has an iteration if the box has elements, or an init runs without."""
    extent, less_equal = self.extent(idle), self.space.less_equal
    if less_equal(1, extent) is True or any(less_equal(axis.extent, extent) is True for axis in box):
        return True
    init = next((op for op in ancestors(access.op) if isinstance(op, InitOp)), None)
    block = None if init is None else init.parent_op()
    if not isinstance(block, BlockOp) or idle not in enclosing_loops(block) or init_placement(block) is None:
        return False
    around = loop if loop in enclosing_loops(block) else None
    instances = Instances(self, block, around)
    return idle not in instances.idle(instances.reduced) and instances.start()


def leaves_some(self: ScheduleState, block: BlockOp, access: Access, condition: Less | SSAValue) -> bool:
    """Whether a condition of a block leaves an instance for each element that is accessed."""
    used = _symbols(access)
    if not isinstance(condition, Less) or not used.isdisjoint(_names(condition) & self.space.variables.keys()):
        return False
    first = {self.symbol(op).as_symbol or "": self.lower(op) for op in enclosing_loops(block)}
    lhs, rhs = condition.lhs.substitute(first), condition.rhs.substitute(first)
    return self.space.prover.less(lhs, rhs) is True or init_placement(block) is not None


def common_loop(first: BlockOp, second: ForOp) -> ForOp | None:
    """The innermost loop around both."""
    loops = [loop for loop in enclosing_loops(first) if is_inside(second, loop)]
    return loops[-1] if loops else None


def check_new_instances(
    self: ScheduleState,
    instances: Instances,
    extents: Sequence[Dim],
    numbers: Sequence[int],
    accesses: Sequence[LoadOp | StoreOp],
) -> None:
    """Refuses to run accesses of a block wherever its iterators are below `extents` if they might leave a buffer there.

    They do not if there is an instance now for all of these values of the iterators `numbers`, which they depend on.
    """
    block, equal = instances.block, self.space.prover.equal
    domain = zip(instances.extents(numbers), numbers, strict=True)
    is_same = all(equal(own, extents[number]) is True for own, number in domain)
    if is_same and instances.take_all(numbers) and instances.have_others(numbers):
        return
    # An access that is not known to be in its buffer while the iterators of the block are below the
    # extents.
    space = IndexSpace(block)
    variables = [
        Variable(argument, space.variable(argument).dim, constant(0), extent)
        for argument, extent in zip(block.body.block.args, extents, strict=True)
    ]
    access = next((op for op in accesses if not _is_inside(space, op, variables)), None)
    if access is not None:
        raise self.error(
            f'block "{block.block_name.data}" would run for elements for which it may not run now, and may access '
            f'buffer "{access.buffer.name_hint}" outside of its shape there'
        )


def accesses_of(block: BlockOp) -> list[LoadOp | StoreOp]:
    """The loads and stores of a block."""
    return [op for op in block.body.walk() if isinstance(op, LoadOp | StoreOp)]


def _is_inside(space: IndexSpace, op: LoadOp | StoreOp, variables: Sequence[Variable]) -> bool:
    for index, extent in zip(op.indices, op.buffer_type.shape, strict=True):
        dim = space.dim_of(index)
        found = None if dim is None else extremes(dim, variables, space.prover)
        if found is None or op.lanes is not None:
            return False
        if space.less_equal(0, found.low) is not True or space.prover.less(found.high, extent) is not True:
            return False
    return True
