"""Verification of functions as a whole: their symbols, accesses and parallel loops.

A data race is a store of several iterations of a parallel loop to the same element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.accesses import index_of, name_of, wrong_access
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import ancestors, is_inside, ops_in, root_buffer, view_offsets
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.ops.verifiers import VERIFIERS
from tir_dialect.types import BufferType, IteratorKind, LoopKind


def unbound_symbol(func: PrimFuncOp) -> tuple[str, str] | None:
    """A symbol that `func` uses but does not bind, and its user; `None` if there is none. Linear in the body."""
    bound = frozenset(func.symbol_names)
    for user, symbols in _uses(func):
        if not symbols <= bound:
            return min(symbols - bound), user
    return None


def _uses(func: PrimFuncOp) -> Iterator[tuple[str, frozenset[str]]]:
    for index, param in enumerate(func.params):
        yield f"parameter #{index}", _symbols(param.type)
    for op in func.body.walk():
        if isinstance(op, DimOp):
            yield _describe(op), op.dim.symbols
        for type in op.result_types:
            if isinstance(type, BufferType):
                yield _describe(op), type.symbols


def _symbols(type: Attribute) -> frozenset[str]:
    return type.symbols if isinstance(type, BufferType) else frozenset()


def _describe(op: Operation) -> str:
    return f"'{op.name}'"


_ORDERED = (IteratorKind.REDUCE, IteratorKind.SCAN)


def race_of_parallel_loop(func: PrimFuncOp) -> str | None:
    """A description of a parallel loop with two iterations that provably store to the same element.

    Memory that is allocated in the loop is each iteration's own. Counted are stores that run in every iteration, at
    indices that are expressions of loop variables, and those of a block that combines what iterations give: a reduce
    or scan iterator depends on the loop, and no index does. The ops need not have been verified.
    """
    space: IndexSpace | None = None
    for loop in ops_in(func.body):
        if isinstance(loop, ForOp) and loop.kind.data is LoopKind.PARALLEL:
            space = space or IndexSpace(func)
            store = _Iterations(space, loop).racing_store()
            if store is not None:
                return (
                    f"a parallel loop whose iterations store to the same element of {name_of(store.buffer)}"
                    f"{index_of(store)}"
                )
    return None


class _Iterations:
    """Those of a parallel loop. What is loaded counts as another value in each of them."""

    def __init__(self, space: IndexSpace, loop: ForOp):
        self._space = space
        self._loop = loop
        self._variable = space.variable(loop.induction_var)
        self._dependence = Dependence(
            lambda argument: argument is loop.induction_var, loads=lambda load: (loop.induction_var,)
        )

    def racing_store(self) -> StoreOp | None:
        """A store to one element in several iterations."""
        if self._at_most_one():
            return None
        for store, always in self._stores(self._loop, True):
            if not is_inside(root_buffer(store.buffer), self._loop):
                indices = [*store.indices, *view_offsets(store.buffer)]
                if (always and self._is_shared(indices)) or self._combines(store, indices):
                    return store
        return None

    def _at_most_one(self) -> bool:
        lower, upper = self._variable.lower, self._variable.upper
        return lower is not None and upper is not None and self._space.less_equal(upper, lower + 1) is True

    def _stores(self, op: Operation, always: bool) -> Iterator[tuple[StoreOp, bool]]:
        """The stores in `op`, and whether each runs in all iterations if loops around it are not empty."""
        for region in op.regions:
            for inner in region.block.ops:
                if isinstance(inner, StoreOp):
                    yield inner, always and inner.mask is None
                elif inner.regions:
                    yield from self._stores(inner, always and self._runs_alike(inner))

    def _runs_alike(self, op: Operation) -> bool:
        match op:
            case ForOp():
                return not self._dependence.of_all(op.operands)
            case BlockOp():
                return op.condition is None
            case _:
                return not isinstance(op, IfOp | WhileOp | InitOp)

    def _is_shared(self, indices: Sequence[SSAValue]) -> bool:
        """Whether the first two iterations access the same element."""
        first, name = self._variable.lower, self._variable.dim.as_symbol
        if first is None or name is None:
            return False
        for dim in map(self._dim, indices):
            if dim is None or dim.substitute({name: first}) is not dim.substitute({name: first + 1}):
                return False
        return True

    def _combines(self, store: StoreOp, indices: Sequence[SSAValue]) -> bool:
        """Whether iterations differ in what a block around the store reduces over, but not in the element."""
        if self._dependence.of_all(indices):
            return False
        inside = takewhile(lambda op: op is not self._loop, ancestors(store))
        iterators = [each for op in inside if isinstance(op, BlockOp) for each in op.iterators]
        dims = [self._dim(each.binding) for each in iterators if each.kind in _ORDERED]
        return any(dim is not None and self._variable.dim.as_symbol in dim.symbols for dim in dims)

    def _dim(self, value: SSAValue) -> Dim | None:
        return self._space.dim_of(value) if isinstance(value.type, IndexType) else None


@VERIFIERS.attach("tir.prim_func")
def verify_prim_func(func: PrimFuncOp) -> None:
    """Raises `VerifyException` if the body disagrees with the signature, accesses or parallel loops are wrong."""
    if (unbound := unbound_symbol(func)) is not None:
        name, user = unbound
        raise VerifyException(f"'tir.prim_func' op does not bind symbol {name}, used by {user}")  # C4
    if (wrong := wrong_access(func)) is not None:
        raise VerifyException(f"'tir.prim_func' op has {wrong}")  # C6
    if (race := race_of_parallel_loop(func)) is not None:
        raise VerifyException(f"'tir.prim_func' op has {race}")  # C7
