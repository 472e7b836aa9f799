"""Legality of reordering and parallelising loops.

A block says by the kinds of its iterators which instances are independent. Where indices are loaded from memory, as in
a scatter, nobody else could know. Where they are linear in the iterators, what the block says can be checked:
how far apart two instances are of which one writes what the other reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from math import gcd

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis, Dependence, determine, is_loop_variable
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, touched_buffers
from tir_dialect.analysis.structure import ancestors, child_blocks, is_defined_inside
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.schedule.legality.accesses import Access, accesses_in, conflicting_buffers, described, loop_names
from tir_dialect.schedule.legality.instances import Instances, check_in_order
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conditions_of
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Equation:
    """The sum of `factors[number] * step(number)` is `gap`; no factor is 0."""

    factors: Mapping[int, int]
    gap: int


def solution(equations: Iterable[Equation]) -> Mapping[int, int] | None:
    """Steps that solve the equations, not all of them 0 if such are found; `None` where none are found."""
    known: dict[int, int] = {}
    pending = list(equations)
    while pending:
        rest = [_without(equation, known) for equation in pending]
        chosen = min(rest, key=lambda equation: len(equation.factors))
        pending = [equation for equation in rest if equation is not chosen]
        steps = _steps(chosen, nearest=any(known.values()))
        if steps is None:
            return None
        known |= steps
    return known


def _without(equation: Equation, known: Mapping[int, int]) -> Equation:
    gap = equation.gap - sum(factor * known.get(number, 0) for number, factor in equation.factors.items())
    return Equation({number: factor for number, factor in equation.factors.items() if number not in known}, gap)


def _steps(equation: Equation, nearest: bool) -> Mapping[int, int] | None:
    """Steps that solve one equation: the nearest, or some that are not all 0."""
    match list(equation.factors.items()):
        case []:
            return None if equation.gap else {}
        case [(number, factor)]:
            return None if equation.gap % factor else {number: equation.gap // factor}
        case [(one, a), (other, b), *rest] if not equation.gap:
            zeros = {number: 0 for number, _ in rest}
            return zeros | ({one: 0, other: 0} if nearest else {one: b // gcd(a, b), other: -a // gcd(a, b)})
        case _:
            return None


Steps = Mapping[int, Dim]
"""By how much iterators, by number, differ; those that do not are left out."""


@dataclass(frozen=True)
class Distance:
    """Instances that are some steps apart meet in elements of `buffer`.

    `always` is so of all instances, in one direction; else it is so of some, and others may have other distances.
    """

    buffer: SSAValue
    steps: Steps
    always: bool


def distances(instances: Instances) -> list[Distance]:
    """Those of accesses that each instance makes, by indices that are linear in the iterators.

    Of each two accesses one is found, or some; instances that are so far apart everywhere need not exist.
    """
    space = IndexSpace(instances.block)
    if any(not isinstance(condition, Less) for condition in conditions_of(space, instances.block)):
        return []
    accesses = [access for access in accesses_in(space, instances.block) if _is_always(access, instances.block)]
    found: list[Distance] = []
    for store, other in product([access for access in accesses if access.is_store], accesses):
        if store.buffer is other.buffer and _are_elements(store, other):
            for distance in _between(instances, space, store, other):
                if distance not in found:
                    found.append(distance)
    return found


def _is_always(access: Access, block: BlockOp) -> bool:
    """Whether an access is one of memory from outside, under no condition in the block, and not in its init."""
    if is_defined_inside(access.buffer, block):
        return False
    for op in ancestors(access.op):
        if op is block:
            return True
        if isinstance(op, IfOp | WhileOp | InitOp) or (isinstance(op, BlockOp) and op.condition is not None):
            return False
    return True


def _are_elements(*accesses: Access) -> bool:
    axes = [axis for access in accesses for axis in access.axes]
    return all(axis.low is not None and axis.width.constant_value == 1 for axis in axes)


def _between(instances: Instances, space: IndexSpace, store: Access, other: Access) -> Iterator[Distance]:
    names = [space.variable(each.value).dim.as_symbol or "" for each in instances.block.iterators]
    here, there = ([axis.low for axis in access.axes if axis.low is not None] for access in (store, other))
    factors = [_factors(index, names) for index in here]
    known = [each for each in factors if each is not None]
    if len(known) < len(factors):
        return
    gaps = [(to - index).constant_value for index, to in zip(here, there, strict=True)]
    if None not in gaps:
        steps = solution(Equation(each, gap) for each, gap in zip(known, gaps, strict=True) if gap is not None)
        found = [] if steps is None else [{number: constant(step) for number, step in steps.items() if step}]
    else:
        found = list(_at_corners(instances, names, list(zip(here, there, known, strict=True))))
    yield from (Distance(store.buffer, steps, None not in gaps) for steps in found if steps)


def _factors(index: Dim, names: Sequence[str]) -> Mapping[int, int] | None:
    """What an index grows by with each of the iterators in it; `None` if that is not the same everywhere."""
    factors: dict[int, int] = {}
    for number, name in enumerate(names):
        if name in index.symbols:
            factor = (index.substitute({name: symbol(name) + 1}) - index).constant_value
            if factor is None:
                return None
            factors[number] = factor
    return factors


def _at_corners(
    instances: Instances, names: Sequence[str], axes: Sequence[tuple[Dim, Dim, Mapping[int, int]]]
) -> Iterator[Steps]:
    """The steps from instances with the least or greatest values to those that write what these access.

    `axes` are an index of the element that is written, of the one that is accessed, and the factors of the first.
    """
    numbers = range(len(names))
    if not instances.take_all(numbers) or any(len(factors) > 1 for _, _, factors in axes):
        return
    box, prover = instances.box(numbers), instances.state.space.prover
    for corner in product(*((axis.lower, axis.lower + axis.extent - 1) for axis in box)):
        values = dict(zip(names, corner, strict=True))
        met = dict(enumerate(corner))
        for here, there, factors in axes:
            gap = there.substitute(values) - here.substitute(values)
            steps = {number: gap * factor for number, factor in factors.items() if abs(factor) == 1}
            if not steps and prover.equal(gap, 0) is not True:
                break
            met |= {number: corner[number] + step for number, step in steps.items()}
        else:
            if all(_is_in(instances, met[number], box[number]) for number in numbers):
                steps = {number: met[number] - corner[number] for number in numbers}
                yield {number: step for number, step in steps.items() if prover.equal(step, 0) is not True}


def _is_in(instances: Instances, value: Dim, axis: AxisRange) -> bool:
    less_equal = instances.state.space.less_equal
    return less_equal(axis.lower, value) is True and less_equal(value + 1, axis.lower + axis.extent) is True


def check_apart(self: ScheduleState, loop: ForOp, block: BlockOp) -> None:
    """ScheduleError if instances of the block in different iterations of the loop share elements."""
    outer = loop.parent_op()
    instances = Instances(self, block, outer if isinstance(outer, ForOp) else None)
    for found in distances(Instances(self, block)):
        if loop not in instances.idle(found.steps) and _exist(instances, found):
            name = loop.induction_var.name_hint
            raise self.error(f'the iterations of loop "{name}" are not independent: {_text(block, found)}')


def check_order(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp], order: Sequence[ForOp]) -> None:
    """ScheduleError if of two instances that share elements another may come first in the order of loops.

    Without an order, instances come in any.
    """
    instances = Instances(self, block)
    for found in distances(instances):
        if _exist(instances, found) and not (order and _keeps(instances, found, loops, order)):
            raise self.error(f"the order of loops matters: {_text(block, found)}")


def _exist(instances: Instances, found: Distance) -> bool:
    """Whether there may be instances that are so far apart."""
    less_equal = instances.state.space.less_equal
    for number, step in found.steps.items():
        reach = instances.box([number])[0].extent
        if any(less_equal(reach, least) is True for least in ((step, -step) if found.always else (1,))):
            return False
    return True


def _keeps(instances: Instances, found: Distance, loops: Sequence[ForOp], order: Sequence[ForOp]) -> bool:
    """Whether an order of loops keeps that of the instances.

    It does if the loops that move the iterators (which ones, is known about steps that are always the same) stay in
    their order, and if the iterators are loop variables that grow together.
    """
    signs = {step.constant_value is not None and step.constant_value > 0 for step in found.steps.values()}
    if found.always and len(signs) == 1 and all(_is_plain(instances, number) for number in found.steps):
        return True
    idle = instances.idle(found.steps if found.always else range(len(instances.block.iterators)))
    before, after = ([loop for loop in some if loop not in idle] for some in (loops, order))
    return before == after


def _is_plain(instances: Instances, number: int) -> bool:
    binding = instances.binding(number)
    return binding is not None and binding.as_symbol is not None


def _text(block: BlockOp, found: Distance) -> str:
    names = {number: block.body.block.args[number].name_hint for number in found.steps}
    steps = (f'{_length(step)} in "{names[number]}"' for number, step in found.steps.items())
    return (
        f'instances of block "{block.block_name.data}" that are {" and ".join(steps)} apart share elements of '
        f"{described(found.buffer)}"
    )


def _length(step: Dim) -> str:
    return str(step if step.constant_value is None else abs(step.constant_value))


def check_parallel(self: ScheduleState, loop: ForOp, buffers: AbstractSet[SSAValue] | None = None) -> None:
    """ScheduleError if the iterations of a loop may not run in parallel: for all buffers, or for some."""
    name = loop.induction_var.name_hint
    for buffer in conflicting_buffers(self.space, loop):
        if buffers is not None and buffer not in buffers:
            continue
        if any(buffer in touched_buffers(op) for op in bare_statements(loop)):
            users = []
        else:
            users = [block for block in child_blocks(loop) if buffer in touched_buffers(block)]
        if len(users) != 1 or not _declared_independent(self, loop, users[0]):
            raise self.error(
                f'the iterations of loop "{name}" are not independent: they share elements of {described(buffer)}'
            )
        check_apart(self, loop, users[0])


def check_reorderable(self: ScheduleState, loops: Sequence[ForOp], order: Sequence[ForOp] = ()) -> None:
    """ScheduleError if the iterations of a perfect nest, outermost loop first, may not be reordered.

    They get into any order then, unless `order` gives the loops in one.
    """
    inner = loops[-1]
    bare = bare_statements(inner)
    if bare:
        raise self.error(f"the loops hold '{bare[0].name}' outside of a block, expected blocks only")
    blocks = child_blocks(inner)
    for block in blocks:
        _check_iterators(self, block, loops)
        # Refuses to change the order of instances that go to one element where that matters.
        if block.init is not None:
            instances = Instances(self, block)
            apart = {op for op in loops if op not in instances.idle(instances.spatial)}
            before, after = ([op for op in some if op not in apart] for some in (loops, order))
            if before != after:
                check_in_order(self, instances, loops)
        check_order(self, block, loops, order)
    if len(blocks) == 1:
        return
    for loop in loops:
        for buffer in conflicting_buffers(self.space, loop):
            users = [block for block in blocks if buffer in touched_buffers(block)]
            if len(users) > 1:
                names = " and ".join(f'"{block.block_name.data}"' for block in users)
                raise self.error(
                    f"blocks {names} share elements of {described(buffer)} across iterations of loop "
                    f'"{loop.induction_var.name_hint}"'
                )


def bare_statements(loop: Operation) -> list[Operation]:
    """The statements in a loop, and in loops inside it, that are in no block."""
    found: list[Operation] = []
    for op in loop.regions[0].block.ops:
        if isinstance(op, ForOp):
            found += bare_statements(op)
        elif not isinstance(op, BlockOp) and not is_index_op(op):
            found.append(op)
    return found


def _check_iterators(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp]) -> None:
    dependence = Dependence(is_loop_variable)
    variables = {loop.induction_var for loop in loops}
    kinds: dict[SSAValue, set[IteratorKind]] = {}
    for iterator in block.iterators:
        for variable in dependence.of(iterator.binding) & variables:
            kinds.setdefault(variable, set()).add(iterator.kind)
    for variable, found in kinds.items():
        ordered = found - {IteratorKind.SPATIAL, IteratorKind.REDUCE}
        if ordered:
            raise self.error(
                f'loop "{variable.name_hint}" drives an iterator of kind {min(ordered).value} of block '
                f'"{block.block_name.data}", expected spatial and reduce ones only'
            )
        if len(found) > 1 and block.init is not None:
            raise self.error(
                f'loop "{variable.name_hint}" drives both spatial and reduce iterators of block '
                f'"{block.block_name.data}", so its init could come too late'
            )


def _declared_independent(self: ScheduleState, loop: ForOp, block: BlockOp) -> bool:
    """Whether instances of a block in different iterations differ in a spatial iterator: they are independent then."""
    bindings = [self.space.dim_of(it.binding) for it in block.iterators if it.kind is IteratorKind.SPATIAL]
    names = loop_names(self.space, loop)
    return determine(self.space, [(Axis(binding),) for binding in bindings], self.symbol(loop), names)
