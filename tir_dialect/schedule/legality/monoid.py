"""Associativity, commutativity and neutral element of reductions: tested on samples, since reducers are any ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.dims import constant
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.schedule.legality.motion import touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Combination:
    """`store[k] = combine(accumulator[0], ..., source[0], ...)` for each `k`."""

    accumulators: tuple[LoadOp, ...]
    repeated: Mapping[SSAValue, SSAValue]
    """Loads of what was loaded before, and the first load of each."""
    sources: tuple[SSAValue, ...]
    combine: tuple[Operation, ...]
    """The ops that depend on accumulators, in order."""
    stores: tuple[StoreOp, ...]


def combination(self: ScheduleState, block: BlockOp) -> Combination:
    """How a reduction block updates its result.

    Refuses a block that does not load each accumulator where it stores it, and before, compute from them and as many
    other values by pure ops, and store each result once; each accumulator must meet the value that comes in for it.
    """
    name = block.block_name.data
    body = [op for op in block.body.block.ops if op is not block.init]
    stores = {op.buffer: op for op in body if isinstance(op, StoreOp)}
    loads = [op for op in body if isinstance(op, LoadOp) and op.buffer in stores]
    first = {load.buffer: load for load in reversed(loads)}
    if not stores or first.keys() != stores.keys() or len(stores) != sum(isinstance(op, StoreOp) for op in body):
        raise self.error(f'block "{name}" does not load and store each of its results once')
    if any(body.index(load) > body.index(stores[load.buffer]) for load in loads):
        raise self.error(f'block "{name}" loads a result that it has stored')
    memory = {root_buffer(buffer) for buffer in stores}
    others = [op for op in body if touches(op, memory, writes_only=False) and op not in (*loads, *stores.values())]
    if others or len(memory) < len(stores):
        raise self.error(f'block "{name}" uses the memory of its results in several ways')
    _check_indices(self, block, stores, loads)
    repeated = _repeated(block)
    values = {load.result for load in loads}
    found: list[Operation] = []
    for op in body:
        if isinstance(op, StoreOp) or not any(operand in values for inner in op.walk() for operand in inner.operands):
            continue
        if not is_index_op(op):
            raise self.error(f"block \"{name}\" combines its values by '{op.name}', expected pure ops")
        found.append(op)
        values.update(op.results)
    combine = tuple(found)
    accumulators = tuple(first[buffer] for buffer in stores)
    sources = _sources(self, name, combine, accumulators, repeated)
    if any(store.value not in {result for op in combine for result in op.results} for store in stores.values()):
        raise self.error(f'block "{name}" stores a value that does not depend on the accumulator')
    return Combination(accumulators, repeated, sources, combine, tuple(stores.values()))


def _repeated(block: BlockOp) -> dict[SSAValue, SSAValue]:
    """Which loads give what another one before has given, if nothing is stored in between."""
    space = IndexSpace(block)
    first: dict[tuple[object, ...], SSAValue] = {}
    found: dict[SSAValue, SSAValue] = {}
    for op in block.body.block.ops:
        if isinstance(op, LoadOp):
            key = (op.buffer, op.lanes, *(space.dim_of(index) or index for index in op.indices))
            if first.setdefault(key, op.result) is not op.result:
                found[op.result] = first[key]
    return found


def _check_indices(
    self: ScheduleState, block: BlockOp, stores: Mapping[SSAValue, StoreOp], loads: Sequence[LoadOp]
) -> None:
    """Refuses a block that starts, loads and stores a result at different indices."""
    name, space = block.block_name.data, IndexSpace(block)
    init = () if block.init is None else block.init.body.block.ops
    for access in (*loads, *(op for op in init if isinstance(op, StoreOp) and op.buffer in stores)):
        store = stores[access.buffer]
        positions = [[space.dim_of(index) or index for index in op.indices] for op in (access, store)]
        if positions[0] != positions[1]:
            verb = "starts" if isinstance(access, StoreOp) else "loads"
            raise self.error(f'block "{name}" {verb} and stores its results at different indices')


def _sources(
    self: ScheduleState,
    name: str,
    combine: Sequence[Operation],
    accumulators: Sequence[LoadOp],
    repeated: Mapping[SSAValue, SSAValue],
) -> tuple[SSAValue, ...]:
    """The value that comes in for each accumulator: the one that it meets in an op."""
    meets: dict[SSAValue, set[SSAValue]] = {load.result: set() for load in accumulators}
    inside = {result for op in combine for result in op.results} | meets.keys()
    everything: set[SSAValue] = set()
    for op in combine:
        operands = [repeated.get(operand, operand) for operand in op.operands]
        other = {operand for operand in operands if operand not in inside}
        everything |= other
        for accumulator in meets.keys() & set(operands):
            meets[accumulator] |= other
    sources = [meets[load.result] for load in accumulators]
    if any(len(source) != 1 for source in sources) or set[SSAValue]().union(*sources) != everything:
        raise self.error(f'block "{name}" does not combine each accumulator with one value')
    found = tuple(next(iter(source)) for source in sources)
    if len(set(found)) != len(found) or any(s.type != a.result.type for s, a in zip(found, accumulators, strict=True)):
        raise self.error(f'block "{name}" does not combine each accumulator with one value of its type')
    return found


Values = Sequence[npt.NDArray[np.generic]]
"""Samples of each result of a reduction."""

SAMPLES = 64


def check_monoid(self: ScheduleState, name: str, parts: Combination, *, commutes: bool) -> None:
    """Refuses a reduction whose combination is not associative, or does not commute.

    Small integers, equal ones among them, are combined by the interpreter; floating-point numbers may differ by
    rounding.
    """
    func = _combining(parts)
    rng = np.random.default_rng(0)
    x, y, z = (_samples(parts, rng) for _ in range(3))
    if not _same(_run(func, _run(func, x, y), z), _run(func, x, _run(func, y, z))):
        raise self.error(f'the combination of block "{name}" is not associative')
    if commutes and not _same(_run(func, x, y), _run(func, y, x)):
        raise self.error(
            f'the result of block "{name}" depends on the order in which values are combined, so only the outermost '
            "loop of the reduction can be taken out"
        )


def check_neutral(self: ScheduleState, name: str, init: InitOp, parts: Combination) -> None:
    """Refuses a reduction whose init is not neutral for its combination."""
    if not is_neutral(_start(self, name, init, parts), parts):
        raise self.error(f'the init of block "{name}" is not neutral for its combination')


def is_neutral(start: Values, parts: Combination) -> bool:
    """Whether combining a start value of each result, an array of one element, with samples changes none of them."""
    x = _samples(parts, np.random.default_rng(0))
    return _same(_run(_combining(parts), [np.repeat(value, SAMPLES) for value in start], x), x)


def _samples(parts: Combination, rng: np.random.Generator) -> Values:
    dtypes = [numpy_dtype(store.buffer_type.dtype) for store in parts.stores]
    low = [0 if dtype.kind in "bu" else -3 for dtype in dtypes]
    return [rng.integers(least, least + 7, SAMPLES).astype(dtype) for least, dtype in zip(low, dtypes, strict=True)]


def _run(func: PrimFuncOp, lhs: Values, rhs: Values) -> Values:
    out = [np.empty_like(value) for value in lhs]
    run_prim_func(func, [*lhs, *rhs, *out])
    return out


def _same(got: Values, expected: Values) -> bool:
    def close(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
        if a.dtype.kind in "biu":
            return bool(np.array_equal(a, b))
        tolerance = 1e-5 if a.dtype.itemsize > 2 else 2e-2
        return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), tolerance, tolerance, equal_nan=True))

    return all(close(a, b) for a, b in zip(got, expected, strict=True))


def _combining(parts: Combination) -> PrimFuncOp:
    """A function that combines the elements of arrays."""
    kinds = [BufferType([constant(SAMPLES)], store.buffer_type.dtype) for store in parts.stores]
    count = len(kinds)
    func = PrimFuncOp("combine", [], [(f"b{number}", kind) for number, kind in enumerate(3 * kinds)])
    extent = arith.ConstantOp.from_int_and_width(SAMPLES, IndexType())
    loop = ForOp(extent.result)
    body = loop.body.block
    loads = [LoadOp(buffer, [loop.induction_var]) for buffer in func.params[: 2 * count]]
    body.add_ops(loads)
    results: list[SSAValue] = [load.result for load in loads]
    mapping: dict[SSAValue, SSAValue] = {}
    mapping |= dict(zip((load.result for load in parts.accumulators), results, strict=False))
    mapping |= dict(zip(parts.sources, results[count:], strict=True))
    mapping |= {again: mapping[value] for again, value in parts.repeated.items() if value in mapping}
    body.add_ops([op.clone(mapping) for op in parts.combine])
    outs = zip(parts.stores, func.params[2 * count :], strict=True)
    body.add_ops([StoreOp(mapping[store.value], buffer, [loop.induction_var]) for store, buffer in outs])
    func.body.block.add_ops([extent, loop])
    return func


def _start(self: ScheduleState, name: str, init: InitOp, parts: Combination) -> Values:
    """What the init stores, arrays of one element."""
    values = {op.buffer: op.value for op in init.body.block.ops if isinstance(op, StoreOp)}
    if values.keys() != {store.buffer for store in parts.stores}:
        raise self.error(f'the init of block "{name}" does not store each of its results')
    kinds = [BufferType([constant(1)], store.buffer_type.dtype) for store in parts.stores]
    func = PrimFuncOp("start", [], [(f"b{number}", kind) for number, kind in enumerate(kinds)])
    body, zero = func.body.block, arith.ConstantOp.from_int_and_width(0, IndexType())
    body.add_op(zero)
    mapping: dict[SSAValue, SSAValue] = {}
    for store, buffer in zip(parts.stores, func.params, strict=True):
        value = values[store.buffer]
        if not _clone(value, mapping, body):
            raise self.error(f'the init of block "{name}" stores a value that is not constant')
        body.add_op(StoreOp(mapping[value], buffer, [zero.result]))
    out = [np.empty(1, numpy_dtype(store.buffer_type.dtype)) for store in parts.stores]
    run_prim_func(func, out)
    return out


def _clone(value: SSAValue, mapping: dict[SSAValue, SSAValue], target: IRBlock) -> bool:
    """Copies what computes a constant; whether it is one."""
    if value in mapping:
        return True
    owner = value.owner
    if not isinstance(owner, Operation) or not is_index_op(owner):
        return False
    if not all(_clone(operand, mapping, target) for operand in owner.operands):
        return False
    target.add_op(owner.clone(mapping))
    return True
