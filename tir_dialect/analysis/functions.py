"""Verification of functions as a whole: their symbols, accesses and parallel loops, the blocks in them, and the regions
that blocks declare.

A data race is a store of several iterations of a parallel loop to the same element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from xdsl.dialects.builtin import (
    IndexType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.accesses import Reach, index_of, leaves, name_of, unconditional, widths, wrong_access
from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import ancestors, is_defined_inside, root_buffer, view_offsets
from tir_dialect.dims import Dim, Prover
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockIterator, BlockOp, InitOp, MatchBufferOp, ReadsOp, RegionOp, WritesOp
from tir_dialect.ops.calls import ROUTINE, CallOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from tir_dialect.ops.effects import VERIFIERS
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
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
        yield f"parameter #{index}", (param.type.symbols if isinstance(param.type, BufferType) else frozenset())
    for op in func.body.walk():
        if isinstance(op, DimOp):
            yield _describe(op), op.dim.symbols
        for type in op.result_types:
            if isinstance(type, BufferType):
                yield _describe(op), type.symbols


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
        lower, upper = self._variable.lower, self._variable.upper
        if lower is not None and upper is not None and self._space.less_equal(upper, lower + 1) is True:
            return None
        for store, always in self._stores(self._loop, True):
            if not is_defined_inside(root_buffer(store.buffer), self._loop):
                indices = [*store.indices, *view_offsets(store.buffer)]
                if (always and self._is_shared(indices)) or self._combines(store, indices):
                    return store
        return None

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


def undeclared_access(block: BlockOp) -> str | None:
    """An access of `block` that its declarations do not allow: which one, and why; `None` if none can be shown.

    A buffer that is not declared counts everywhere; what the block writes it may read, too, and what computes indices
    need not be declared. An index counts only where the access is unconditional, and where its buffer is declared once.
    """
    for kind, access in ((ReadsOp, LoadOp), (WritesOp, StoreOp)):
        declared = [op for op in block.body.block.ops if isinstance(op, kind)]
        if declared:
            found = _undeclared_buffer(block, declared, access) or _undeclared_index(block, declared, access)
            if found is not None:
                return found
    return None


def _undeclared_buffer(block: BlockOp, declared: Sequence[RegionOp], kind: type[LoadOp | StoreOp]) -> str | None:
    accesses = [op for op in ops_in(block.body) if isinstance(op, LoadOp | StoreOp)]
    known = {root_buffer(op.buffer) for op in declared}
    if kind is LoadOp:
        known |= {root_buffer(op.buffer) for op in accesses if isinstance(op, StoreOp)}
    # The ops that compute indices of accesses, and ends of regions.
    pending = [index.owner for op in ops_in(block.body) for index in _indices(op)]
    computing: set[Operation] = set()
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in computing:
            computing.add(op)
            pending += [operand.owner for operand in op.operands]
    for op in accesses:
        root = root_buffer(op.buffer)
        if isinstance(op, kind) and op not in computing and root not in known and not is_defined_inside(root, block):
            return f"a '{op.name}' of {name_of(root)}, which it does not declare{index_of(op)}"
    return None


def _indices(op: Operation) -> Sequence[SSAValue]:
    match op:
        case LoadOp() | StoreOp():
            return op.indices
        case RegionOp():
            return (*op.lower, *op.upper)
        case _:
            return ()


def _undeclared_index(block: BlockOp, declared: Sequence[RegionOp], kind: type[LoadOp | StoreOp]) -> str | None:
    buffers = [op.buffer for op in declared]
    regions = {op.buffer: op for op in declared if buffers.count(op.buffer) == 1}
    if not regions:
        return None
    space = IndexSpace(block)
    for op, loops in _unconditional_in(space, block):
        if isinstance(op, kind) and op.mask is None and op.buffer in regions:
            for axis, reach in enumerate(_reaches(space, op, regions[op.buffer])):
                found = None if reach is None else leaves(space, reach, loops)
                if found is not None:
                    return f"a '{op.name}' whose index {axis} of {name_of(op.buffer)} {found}{index_of(op)}"
    return None


def _unconditional_in(space: IndexSpace, block: BlockOp) -> Iterator[tuple[Operation, tuple[ForOp, ...]]]:
    for op in block.body.block.ops:
        yield op, ()
        yield from unconditional(space, op, ())


def _reaches(space: IndexSpace, op: LoadOp | StoreOp, region: RegionOp) -> Iterator[Reach | None]:
    """What an access touches of what it may, by dimension."""
    for index, width, axis in zip(op.indices, widths(op), region.axes, strict=False):
        first = space.dim_of(axis.lower)
        end = first if axis.upper is None else space.dim_of(axis.upper)
        if first is None or end is None:
            yield None
        else:
            yield Reach(index, width, end + 1 if axis.upper is None else end, first)


@VERIFIERS.attach("tir.match_buffer")
def verify_lengths(view: MatchBufferOp) -> None:
    """Raises `VerifyException` if the length of a range provably differs from the extent of the view."""
    space = IndexSpace(view)
    for dimension, axis, extent in ranges(view):
        first, end = space.dim_of(axis.lower), space.dim_of(axis.upper)
        if first is not None and end is not None and space.prover.equal(end - first, extent) is False:
            raise VerifyException(
                f"'tir.match_buffer' op expected {end - first} elements in dimension {dimension} of "
                f"{name_of(view.buffer)}, got {extent}"
            )  # C4


class Range(NamedTuple):
    """The ends of a range, as values."""

    lower: SSAValue
    upper: SSAValue


def ranges(view: MatchBufferOp) -> Iterator[tuple[int, Range, Dim]]:
    """The ranges of a view: the dimension of the buffer, the ends, and how long the view says that it is."""
    extents = iter(view.view_type.shape)
    for dimension, axis in enumerate(view.axes):
        if axis.upper is not None:
            yield dimension, Range(axis.lower, axis.upper), next(extents)


def is_as_long(space: IndexSpace, part: Range, extent: Dim) -> bool:
    """Whether the length of a range is provably `extent`."""
    first, end = space.dim_of(part.lower), space.dim_of(part.upper)
    return first is not None and end is not None and space.prover.equal(end - first, extent) is True


@VERIFIERS.attach("tir.block")
def verify_block(block: BlockOp) -> None:
    """Raises `VerifyException` if the body of `block` disagrees with its iterators."""
    dependence = Dependence(is_loop_variable, through_bindings=False)
    for value in _values_from_outside(block):
        variables = dependence.of(value)
        if variables:
            name = min(map(_name, variables))
            raise VerifyException(
                f"{_describe_block(block)} uses the loop variable {name}, expected an iterator for it"
            )  # C3
    for _, message in _misuses(block):
        raise VerifyException(message)  # C4
    if (wrong := undeclared_access(block)) is not None:
        raise VerifyException(f"{_describe_block(block)} has {wrong}")  # C5


def _values_from_outside(block: BlockOp) -> Iterator[SSAValue]:
    """The values that the body of `block` uses but does not define."""
    seen: set[SSAValue] = set()
    for op in block.body.walk():
        for operand in op.operands:
            if operand not in seen:
                seen.add(operand)
                if not is_defined_inside(operand, block):
                    yield operand


def misused_iterators(block: BlockOp) -> set[SSAValue]:
    """The spatial iterators missing in the indices of a store, and the reduce iterators that occur in one.

    Conditions around a store are not trusted to choose one value of a missing iterator.
    """
    return {value for value, _ in _misuses(block, conditions=False)}


def _misuses(block: BlockOp, *, conditions: bool = True) -> Iterator[tuple[SSAValue, str]]:
    """The iterators that stores do not use as their kinds say, each with what is wrong.

    With `conditions`, an iterator in a condition around a store counts as one in its indices.
    """
    iterators = [iterator for iterator in block.iterators if not _is_unit(iterator)]
    spatial = [iterator.value for iterator in iterators if iterator.kind is IteratorKind.SPATIAL]
    reduce = [iterator.value for iterator in iterators if iterator.kind is IteratorKind.REDUCE]
    if not spatial and not reduce:
        return
    stores = [op for op in block.body.walk() if isinstance(op, StoreOp)]
    written = {root_buffer(store.buffer) for store in stores}
    every = [iterator.value for iterator in iterators]

    def loaded_from(load: LoadOp) -> Iterable[SSAValue]:
        return every if root_buffer(load.buffer) in written else load.operands

    any_use = Dependence(lambda argument: argument in every, loads=loaded_from)
    direct_use = Dependence(lambda argument: argument in every, loads=lambda load: ())
    for store in stores:
        if is_defined_inside(root_buffer(store.buffer), block):
            continue
        indices = [*store.indices, *view_offsets(store.buffer)]
        deciding = any_use.of_all([*indices, *(_conditions(store, block) if conditions else ())])
        for value in spatial:
            if value not in deciding:
                yield value, f"{_stores(block, store)} without its spatial iterator {_name(value)}"
        for value in reduce:
            if value in direct_use.of_all(indices):
                yield value, f"{_stores(block, store)} with its reduce iterator {_name(value)}"


def _conditions(store: StoreOp, block: BlockOp) -> Iterator[SSAValue]:
    """The conditions in a block that a store is under, which may hold for one instance alone."""
    for op in ancestors(store):
        if op is block:
            return
        condition = op.condition if isinstance(op, IfOp | BlockOp) else None
        if condition is not None:
            yield condition


def _is_unit(iterator: BlockIterator) -> bool:
    """Whether an iterator has at most one value."""
    extent = dim_of(iterator.extent)
    return extent is not None and extent.constant_value in (0, 1)


def _stores(block: BlockOp, store: StoreOp) -> str:
    return f"{_describe_block(block)} stores to {_name(store.buffer)} at indices"


def _describe_block(block: BlockOp) -> str:
    return f"'tir.block' op \"{block.block_name.data}\""


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "without a name"


@VERIFIERS.attach("tir.call")
def verify_call(op: CallOp) -> None:
    """Raises `VerifyException` for a call whose arguments the callee does not take."""
    callee = SymbolTable.lookup_symbol(op, op.callee)
    if not isinstance(callee, PrimFuncOp):
        raise VerifyException(f"'tir.call' op {op.callee} is not a 'tir.prim_func'")  # C1
    if op.unchecked is not None and not callee.sym_name.data.startswith(ROUTINE):
        raise VerifyException(
            f"'tir.call' op unchecked calls are for routines, whose names begin with {ROUTINE}, got {op.callee}"
        )  # C4
    symbols, params = callee.symbols, callee.params
    if len(op.sizes) != len(symbols) or len(op.arguments) != len(params):
        raise VerifyException(
            f"'tir.call' op {op.callee} expected {len(symbols)} sizes and {len(params)} arguments, got "
            f"{len(op.sizes)} and {len(op.arguments)}"
        )  # C2
    dims = ((name, dim_of(size)) for name, size in zip(callee.symbol_names, op.sizes, strict=True))
    sizes = {name: dim for name, dim in dims if dim is not None}
    for index, (argument, param) in enumerate(zip(op.arguments, params, strict=True)):
        if not _accepts(param.type, argument.type, sizes):
            raise VerifyException(
                f"'tir.call' op {op.callee} argument #{index} expected type {param.type}, got {argument.type}"
            )  # C3


def _accepts(expected: Attribute, got: Attribute, sizes: dict[str, Dim]) -> bool:
    """Whether the types can be equal once all sizes are known."""
    if not isinstance(expected, BufferType) or not isinstance(got, BufferType):
        return expected == got
    if (expected.rank, expected.dtype, expected.scope) != (got.rank, got.dtype, got.scope):
        return False
    pairs = [*zip(expected.shape, got.shape, strict=True), *zip(expected.strides, got.strides, strict=True)]
    known = [(want, have) for want, have in [*pairs, (expected.offset, got.offset)] if want.symbols <= sizes.keys()]
    return got.align >= expected.align and all(
        Prover().equal(want.substitute(sizes), have) is not False for want, have in known
    )
