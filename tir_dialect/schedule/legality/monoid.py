"""Associativity, commutativity and neutral element of reductions: tested on samples, since reducers are any ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tir_dialect.dims import constant
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.blocks import InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.legality.combiner import Combination
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.statements import is_index_op
from tir_dialect.types import BufferType

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
