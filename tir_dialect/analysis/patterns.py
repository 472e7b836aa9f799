"""Operator patterns of functions for fusion: how written elements depend on read ones; and the logistic function in
kernels.

The kinds are those of Apache TVM (`include/tvm/relax/op_attr_types.h`), and so is the order: what is fused from two
functions is at least as hard as the harder one.

Interpreter and generated code compute the quotient as one function of `u`. The sum itself overflows where the quotient
is a denormal number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, VectorType, f32, f64
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block, enclosing_loops
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.blocks import BufferViewOp, InitOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


class OpPattern(IntEnum):
    """The kinds of operators, from the easiest to the hardest to fuse."""

    ELEMENTWISE = 0
    """Element `[i, j]` is computed from elements `[i, j]` of inputs of the same shape, and from broadcast ones."""
    BROADCAST = 1
    """Element `[i, j]` is computed from elements `[i]`, `[j]` or `[i, j]` of inputs."""
    INJECTIVE = 2
    """An element is computed from a fixed number of elements, wherever they are."""
    REDUCTION = 3
    """An element is a reduction of elements."""
    OUT_ELEMENTWISE_FUSABLE = 4
    """A more complex function, such as a matrix product, whose output elementwise functions can follow in place."""
    OPAQUE = 8
    """Nothing is known."""


def op_pattern(func: PrimFuncOp) -> OpPattern:
    """The pattern of a function before it is scheduled.

    Every store counts as one computation over the iterators of its block, or the loops around it, and the function is
    as hard as its hardest computation; what follows a reduction makes it out-elementwise-fusable. Calls with effects,
    loops without a known end, views, iterators that are neither spatial nor reductions, stores that are not at
    distinct spatial iterators, and buffers that are read at other elements than are written make a function opaque.
    """
    return combined(computation_patterns(func))


def combined(patterns: Iterable[OpPattern]) -> OpPattern:
    """The pattern of a function from those of its computations."""
    pattern = OpPattern.ELEMENTWISE
    for each in patterns:
        if pattern is OpPattern.REDUCTION and each < OpPattern.REDUCTION:
            pattern = OpPattern.OUT_ELEMENTWISE_FUSABLE
        else:
            pattern = max(pattern, each)
    return pattern


def computation_patterns(func: PrimFuncOp) -> tuple[OpPattern, ...]:
    """The patterns of the computations of a function one by one, at least one, as `op_pattern` combines them.

    A softmax has none but reductions and elementwise ones, though as a whole it is as hard as a matrix product.
    """
    ops = ops_in(func.body)
    if func.may_alias is not None or any(map(_is_opaque, ops)):
        return (OpPattern.OPAQUE,)
    space = IndexSpace(func)
    stores = [op for op in ops if isinstance(op, StoreOp) and not isinstance(op.parent_op(), InitOp)]
    return tuple(_Computation(store, space).pattern() for store in stores) or (OpPattern.OPAQUE,)


def _is_opaque(op: Operation) -> bool:
    if isinstance(op, ForeignCallOp):
        return op.pure is None
    return isinstance(op, _OPAQUE)


_OPAQUE = (CallOp, WhileOp, AssertOp, BufferViewOp)


@dataclass(frozen=True)
class _Iterators:
    spatial: tuple[BlockArgument, ...]
    reduce: tuple[BlockArgument, ...]


class _Computation:
    """One store, and what its value is computed from."""

    def __init__(self, store: StoreOp, space: IndexSpace):
        self._store = store
        self._space = space
        self._indices = [space.dim_of(index) for index in store.indices]

    def pattern(self) -> OpPattern:
        iterators = self._iterators()
        if iterators is None or not self._writes_identity(iterators):
            return OpPattern.OPAQUE
        loads = list(loads_of(self._store.value))
        updates = [load for load in loads if load.buffer is self._store.buffer]
        if any([*map(self._space.dim_of, load.indices)] != self._indices for load in updates):
            return OpPattern.OPAQUE
        others = [load for load in loads if load.buffer is not self._store.buffer]
        if iterators.reduce:
            if not updates:
                return OpPattern.OPAQUE
            sources = [
                {(load.buffer, tuple(map(self._space.dim_of, load.indices))) for load in loads_of(factor)}
                for factor in _factors(self._store.value)
            ]
            if len(sources) == 2 and all(sources) and sources[0] != sources[1]:
                return OpPattern.OUT_ELEMENTWISE_FUSABLE
            return OpPattern.REDUCTION
        patterns = [self._access(load) for load in others]
        hardest = max(patterns, default=OpPattern.ELEMENTWISE)
        if hardest is OpPattern.BROADCAST and OpPattern.ELEMENTWISE in patterns:
            return OpPattern.ELEMENTWISE
        return hardest

    def _iterators(self) -> _Iterators | None:
        """The spatial and reduce iterators; loops count as spatial if the store depends on them."""
        block = enclosing_block(self._store)
        if block is None:
            variables = [loop.induction_var for loop in enclosing_loops(self._store)]
            used = Dependence(lambda argument: argument in variables).of_all(self._store.indices)
            spatial = tuple(variable for variable in variables if variable in used)
            return _Iterators(spatial, tuple(variable for variable in variables if variable not in used))
        if enclosing_block(block) is not None:
            return None
        by_kind: dict[IteratorKind, list[BlockArgument]] = {kind: [] for kind in IteratorKind}
        for iterator in block.iterators:
            by_kind[iterator.kind].append(iterator.value)
        if by_kind[IteratorKind.SCAN] or by_kind[IteratorKind.OPAQUE]:
            return None
        inner = [loop.induction_var for loop in enclosing_loops(self._store)]
        return _Iterators(tuple(by_kind[IteratorKind.SPATIAL]), (*by_kind[IteratorKind.REDUCE], *inner))

    def _writes_identity(self, iterators: _Iterators) -> bool:
        """Whether the indices are distinct spatial iterators, or 0."""
        used: list[SSAValue] = []
        for index, dim in zip(self._store.indices, self._indices, strict=True):
            if dim is None or dim.terms:
                used.append(index)
        return len(set(used)) == len(used) and all(index in iterators.spatial for index in used)

    def _access(self, load: LoadOp) -> OpPattern:
        """How the indices of a load follow from those of the store."""
        indices = [self._space.dim_of(index) for index in load.indices]
        if indices == self._indices and load.buffer_type.shape == self._store.buffer_type.shape:
            return OpPattern.ELEMENTWISE
        wide = [dim for dim in indices if dim is None or dim.terms]
        rest = iter(self._indices)
        return OpPattern.BROADCAST if all(dim is not None and dim in rest for dim in wide) else OpPattern.INJECTIVE


def loads_of(value: SSAValue) -> Iterator[LoadOp]:
    """The loads that a value is computed from, also those that only choose where or whether to load."""
    seen: set[Operation] = set()
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner in seen or isinstance(owner, ForOp):
            continue
        seen.add(owner)
        if isinstance(owner, LoadOp):
            yield owner
        inside = owner.walk() if owner.regions else (owner,)
        pending += [operand for op in inside for operand in op.operands]


_CASTS = (arith.ExtFOp, arith.TruncFOp, arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp, arith.TruncIOp)


def _factors(value: SSAValue) -> Sequence[SSAValue]:
    """The two factors of a value that is, but for casts, a sum with a product; nothing for other values."""
    owner = _through_casts(value)
    if isinstance(owner, math.FmaOp):
        return (owner.a, owner.b)
    if isinstance(owner, arith.AddfOp | arith.AddiOp):
        for term in (owner.lhs, owner.rhs):
            product = _through_casts(term)
            if isinstance(product, arith.MulfOp | arith.MuliOp):
                return (product.lhs, product.rhs)
    return ()


def _through_casts(value: SSAValue) -> object:
    owner = value.owner
    while isinstance(owner, _CASTS):
        owner = owner.input.owner
    return owner


def exponent_of_sigmoid(op: Operation) -> SSAValue | None:
    """The `u` of an op that computes `1 / (1 + e**u)` of f32 or f64; `None` for any other op."""
    # The class itself, which has no subclasses: this is asked for every op.
    if type(op) is not arith.DivfOp or not _is_one(op.lhs):
        return None
    kind = op.result.type.element_type if isinstance(op.result.type, VectorType) else op.result.type
    power = power_in_sum(op.rhs) if kind in (f32, f64) else None
    return None if power is None else power.operand


def power_in_sum(value: SSAValue) -> math.ExpOp | None:
    """The power of a sum `1 + e**u`; `None` for any other value."""
    if not isinstance(value.owner, arith.AddfOp):
        return None
    lhs, rhs = value.owner.operands
    power = rhs if _is_one(lhs) else lhs
    return power.owner if isinstance(power.owner, math.ExpOp) and (_is_one(lhs) or _is_one(rhs)) else None


def _is_one(value: SSAValue) -> bool:
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0
