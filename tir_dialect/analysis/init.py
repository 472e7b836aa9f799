"""Where the `tir.init` of a block can run so that it comes before the whole reduction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Dependence, is_variable
from tir_dialect.analysis.structure import enclosing_loops, has_no_effects, is_inside
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.types import IteratorKind


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
    """Where the init of `block` can go; `None` if it has none, or has to stay behind a test for the first instance.

    It has to stay where one loop drives both a spatial iterator and one of another kind, or a condition or a loop bound
    depends on both; and where what the init needs comes from memory inside of the reduction.
    """
    loops = enclosing_loops(block)
    reduction = _reduction_loops(block, loops)
    if block.init is None or not reduction:
        return None
    outer = next(loop for loop in loops if loop in reduction)
    if not _is_loop_nest(outer, block):
        return None
    finder = _Finder(block, block.init, outer, loops, reduction)
    return finder.find()


def _reduction_loops(block: BlockOp, loops: Sequence[ForOp]) -> frozenset[ForOp]:
    """The loops whose variables the bindings of iterators that are reduced over depend on."""
    variables = {loop.induction_var: loop for loop in loops}
    dependence = Dependence(lambda argument: argument in variables, through_bindings=False)
    used = dependence.of_all(it.binding for it in block.iterators if it.kind.is_reduced)
    return frozenset(variables[variable] for variable in used)


def _is_loop_nest(outer: ForOp, block: BlockOp) -> bool:
    """Whether there are only loops between `outer` and `block`."""
    parent = block.parent_op()
    while isinstance(parent, ForOp):
        if parent is outer:
            return True
        parent = parent.parent_op()
    return False


class _Finder:
    def __init__(self, block: BlockOp, init: InitOp, outer: ForOp, loops: Sequence[ForOp], reduction: frozenset[ForOp]):
        self._block = block
        self._init = init
        self._outer = outer
        self._inner = loops[loops.index(outer) :]
        self._reduction = {loop.induction_var for loop in reduction}
        self._dependence = Dependence(is_variable, through_bindings=False)

    def find(self) -> InitPlacement | None:
        conditions = [part for part in _conjuncts(self._block.condition) if not self._is_of_reduction_only(part)]
        bindings = [it.binding for it in self._block.iterators if not it.kind.is_reduced]
        if self._is_ordered_inside():
            return None
        roots = [*bindings, *conditions, *self._block.extents, *_captured(self._init)]
        loops = self._loops_of(roots)
        if loops is None:
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

    def _is_of_reduction_only(self, condition: SSAValue) -> bool:
        used = self._dependence.of(condition)
        return bool(used) and used <= self._reduction

    def _loops_of(self, roots: Iterable[SSAValue]) -> tuple[ForOp, ...] | None:
        """The inner loops that the values depend on; `None` if the reduction is among them."""
        used = self._dependence.of_all(roots)
        found = tuple(loop for loop in self._inner if loop.induction_var in used)
        return None if any(loop.induction_var in self._reduction for loop in found) else found

    def _ops_for(self, roots: Iterable[SSAValue]) -> tuple[Operation, ...] | None:
        """The ops inside of the outermost loop that the values need, in order; `None` if one has effects."""
        needed: set[Operation] = set()
        pending = [value for value in roots if is_inside(value, self._outer)]
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or owner in needed:
                continue
            if owner.regions or not has_no_effects(owner):
                return None
            needed.add(owner)
            pending += [operand for operand in owner.operands if is_inside(operand, self._outer)]
        return tuple(op for op in self._outer.walk() if op in needed)


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
            if block is not None and not is_inside(operand, block):
                yield operand
