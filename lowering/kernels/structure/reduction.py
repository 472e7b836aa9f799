"""Reductions: how a stage combines elements, and whether partial results of lanes and threads can be combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from lowering.kernels.structure.stages import Stage
from tir_dialect.ops.arithmetic import GreaterOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind

_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def evaluated(ops: Sequence[Operation], known: MutableMapping[SSAValue, object]) -> bool:
    """Adds the results of ops to the known values; returns whether all ops are comparisons, selections and
    constants.
    """
    for op in ops:
        value = _evaluate(op, [known[operand] for operand in op.operands if operand in known])
        if value is None:
            return False
        known[op.results[0]] = value
    return True


def _evaluate(op: Operation, operands: Sequence[object]) -> object | None:
    match op, operands:
        case arith.ConstantOp(), []:
            value = op.value
            return value.value.data if isinstance(value, IntegerAttr | FloatAttr) else None
        case arith.SelectOp(), [condition, first, second]:
            return first if condition else second
        case ((arith.AndIOp() | arith.OrIOp() | arith.XOrIOp()), [bool() | int() as a, bool() | int() as b]):
            pair = bool(a), bool(b)
            return (
                all(pair)
                if isinstance(op, arith.AndIOp)
                else any(pair) and not (isinstance(op, arith.XOrIOp) and all(pair))
            )
        case arith.CmpfOp(), [float() as a, float() as b]:
            return _compared(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], a, b)
        case arith.CmpiOp(), [int() as a, int() as b]:
            predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
            unknown = predicate[0] == "u" and min(a, b) < 0
            return None if unknown else _ORDERED[predicate[-2:]](a, b)
        case _:
            return None


def _compared(predicate: str, a: float, b: float) -> bool | None:
    unordered = a != a or b != b
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    test = _ORDERED.get(predicate[1:])
    return None if test is None else test(a, b) and not unordered if predicate[0] == "o" else unordered or test(a, b)


@dataclass(frozen=True, eq=False)
class Reduction:
    """How a stage updates its results: `store[k] = combine(accumulator[0], ..., source[0], ...)`."""

    accumulators: tuple[LoadOp, ...]
    stores: tuple[StoreOp, ...]
    first: tuple[SSAValue, ...]
    """The initial value of each accumulator, computed by the init of the block."""
    sources: tuple[SSAValue, ...]
    combine: tuple[Operation, ...]
    """The ops from accumulators and sources to what is stored; empty if partial results cannot be combined."""


def rounds(reduction: Reduction) -> bool:
    """Whether partial results can be combined, with rounding: then accumulation is blocked
    (`emit/blocked_accumulation.py`).
    """
    return any(isinstance(op, arith.AddfOp | arith.MulfOp) for op in reduction.combine)


def find_reduction(stage: Stage) -> Reduction | None:
    """How a stage reduces; `None` if it does not load each result once, or not where it stores it, or has no init."""
    found = _updates(stage)
    if found is None or not all(_stays(stage, *pair) for pair in zip(found.accumulators, found.stores, strict=True)):
        return None
    sources = _sources(stage, found.accumulators)
    combine = None if sources is None else _combine(stage, found.accumulators, sources, found.stores)
    if sources is None or combine is None or not _is_identity(combine, found.first):
        return found
    combinable = replace(found, sources=sources, combine=combine)
    return combinable if len(found.first) == 1 or _commutes(combinable) else found


def _updates(stage: Stage) -> Reduction | None:
    """The loads, stores and initial values of the results, each of which has one of each."""
    stores = {store.buffer: store for store in stage.stores}
    loads = [load for load in stage.loads if load.buffer in stores]
    accumulators = {load.buffer: load for load in loads if load in stage.body}
    starts = {op.buffer: op.value for op in stage.init if isinstance(op, StoreOp)}
    if not stores.keys() == accumulators.keys() == starts.keys():
        return None
    if len(stores) != len(stage.stores) or len(accumulators) != len(loads):
        return None
    first = tuple(starts[buffer] for buffer in stores)
    return Reduction(tuple(accumulators[buffer] for buffer in stores), tuple(stores.values()), first, (), ())


def _stays(stage: Stage, accumulator: LoadOp, store: StoreOp) -> bool:
    """Whether a result is stored where it is loaded, at the same indices in all iterations of the reduction."""
    indices, reduced = stage.accesses[store], stage.of_kind(IteratorKind.REDUCE)
    if indices != stage.accesses[accumulator] or any(index.value is not None for index in indices):
        return False
    return not any(index.strides[axis].terms for index in indices for axis in reduced)


def reduction_of(stage: Stage) -> Reduction | None:
    """How a stage reduces, if it does."""
    return find_reduction(stage) if stage.of_kind(IteratorKind.REDUCE) else None


def _commutes(reduction: Reduction) -> bool:
    """Whether a selection is commutative, tried on numbers, equal ones among them.

    An argmax that keeps the first of equal elements in loop order is not: lanes and threads have other orders.
    """
    kinds = [(0.0, 1.0, -1.0) if isinstance(source.type, AnyFloat) else (0, 3, 5) for source in reduction.sources]
    for left, right in combinations(product(*kinds), 2):
        results: list[list[object]] = []
        for one, other in ((left, right), (right, left)):
            known: dict[SSAValue, object] = dict(zip(reduction.sources, other, strict=True))
            known |= {load.result: value for load, value in zip(reduction.accumulators, one, strict=True)}
            if not evaluated(reduction.combine, known):
                return False
            results.append([known[store.value] for store in reduction.stores])
        if results[0] != results[1]:
            return False
    return True


def _sources(stage: Stage, accumulators: Sequence[LoadOp]) -> tuple[SSAValue, ...] | None:
    """The source of each accumulator: the one other operand that does not depend on accumulators."""
    values: set[SSAValue] = {load.result for load in accumulators}
    dependent: list[Operation] = []
    for op in stage.body:
        if not isinstance(op, StoreOp) and any(operand in values for inner in op.walk() for operand in inner.operands):
            dependent.append(op)
            values.update(op.results)
    inside = {result for op in dependent for result in op.results} | {load.result for load in accumulators}
    meets: dict[SSAValue, set[SSAValue]] = {load.result: set() for load in accumulators}
    for op in dependent:
        own = [operand for operand in op.operands if operand in meets]
        for accumulator in own:
            meets[accumulator].update(operand for operand in op.operands if operand not in inside)
    if any(len(found) != 1 for found in meets.values()):
        return None
    sources = tuple(next(iter(meets[load.result])) for load in accumulators)
    same = all(source.type == load.result.type for source, load in zip(sources, accumulators, strict=True))
    return sources if same and len(set(sources)) == len(sources) else None


def _combine(
    stage: Stage, accumulators: Sequence[LoadOp], sources: Sequence[SSAValue], stores: Sequence[StoreOp]
) -> tuple[Operation, ...] | None:
    """The ops between accumulators and sources, and the stored values; `None` if they use anything else."""
    known = {load.result for load in accumulators} | set(sources)
    wanted: set[Operation] = set()
    pending = [store.value for store in stores]
    while pending:
        value = pending.pop()
        op = value.owner
        if value in known or op in wanted:
            continue
        if not isinstance(op, Operation) or op.regions or len(op.results) != 1 or isinstance(op, LoadOp):
            return None
        if not op.operands and not isinstance(op, arith.ConstantOp):
            return None
        wanted.add(op)
        pending += op.operands
    inside = set(stage.block.body.walk())
    ordered = [op for op in stage.block.body.walk() if op in wanted]
    return tuple(ordered) if wanted <= inside else None


_FLOATS = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -math.inf,
    GreaterOp: -math.inf,
    arith.MaxnumfOp: -math.inf,
    arith.MinimumfOp: math.inf,
    arith.MinnumfOp: math.inf,
}
"""What changes no float, by the op that combines."""

_INTEGERS: Mapping[type[Operation], Callable[[int], tuple[int, ...]]] = {
    arith.AddiOp: lambda bits: (0,),
    arith.OrIOp: lambda bits: (0,),
    arith.XOrIOp: lambda bits: (0,),
    arith.MaxUIOp: lambda bits: (0,),
    arith.MuliOp: lambda bits: (1,),
    arith.AndIOp: lambda bits: (-1, (1 << bits) - 1),
    arith.MinUIOp: lambda bits: (-1, (1 << bits) - 1),
    arith.MaxSIOp: lambda bits: (-1 << (bits - 1), 1 << (bits - 1)),
    arith.MinSIOp: lambda bits: ((1 << (bits - 1)) - 1,),
}
"""What changes no integer of so many bits, as it may be written: with or without sign."""

_SELECTION = (arith.CmpfOp, arith.CmpiOp, arith.SelectOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ConstantOp)


def _is_identity(combine: Sequence[Operation], first: Sequence[SSAValue]) -> bool:
    """Whether the initial values are neutral, however often they are combined.

    For a selection by comparisons, such as argmax, this is so for any initial values: they lose, or are the result
    anyway.
    """
    constants = [value.owner for value in first]
    if len(combine) == 1 and len(first) == 1 and isinstance(constants[0], arith.ConstantOp):
        kind = type(combine[0])
        value = constants[0].value
        if isinstance(value, FloatAttr):
            return kind in _FLOATS and value.value.data == _FLOATS[kind]
        if not isinstance(value, IntegerAttr):
            return False
        return kind in _INTEGERS and value.value.data in _INTEGERS[kind](_width(value))
    return len(first) > 1 and all(isinstance(op, _SELECTION) for op in combine)


def _width(value: IntegerAttr) -> int:
    return value.type.width.data if isinstance(value.type, IntegerType) else 64
