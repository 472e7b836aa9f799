"""The neutral value of a reduction that does not say what it starts with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Operation, SSAValue

from tir_dialect.dtypes import ElementType, lookup, numpy_dtype
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.schedule.legality.monoid import Combination, is_neutral
from tir_dialect.schedule.rewriting.clones import Cloner
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.te.coerce import integer_range, is_bool, is_float
from tir_dialect.te.emit.scalar import emit_constant


def neutral_value(self: ScheduleState, block: BlockOp, parts: Combination) -> float:
    """The neutral value of a combination of one result, tried on samples; refuses one where none is found."""
    if len(parts.stores) == 1:
        dtype = lookup(parts.stores[0].buffer_type.dtype).type
        for value in _candidates(dtype):
            if is_neutral([np.array([value]).astype(numpy_dtype(dtype))], parts):
                return value
    raise self.error(f'block "{block.block_name.data}" has no init, and no neutral value of its combination is known')


def _candidates(dtype: ElementType) -> Iterator[float]:
    """Neutral values of sums, products, extremes, and of operators on bits."""
    yield from (0, 1)
    if is_float(dtype):
        yield from (float("-inf"), float("inf"))
    elif not is_bool(dtype):
        yield from integer_range(dtype)
        yield -1


def init_with(store: StoreOp, value: float) -> InitOp:
    """An init, in no block yet, that stores a number where `store` does."""
    init = InitOp()
    body = init.body.block

    def insert(op: Operation) -> SSAValue:
        body.add_op(op)
        return op.results[0]

    start = emit_constant(insert, value, lookup(store.buffer_type.dtype).type)
    body.add_op(StoreOp(start, store.buffer, Cloner(body, {}).values(store.indices)))
    return init
