"""Loads and stores."""

from xdsl.dialects import test
from xdsl.dialects.builtin import IndexType, f32, i1
from xdsl.irdl import BaseAttrAccessor

from tir_dialect.dims import symbol
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType


def test_operands_of_accesses():
    buffer, i, mask = test.TestOp(result_types=[BufferType([symbol("n")], f32), IndexType(), i1]).results
    load = LoadOp(buffer, [i])
    store = StoreOp(load.result, buffer, [i])
    assert (load.buffer, *load.indices, load.mask) == (buffer, i, None)
    assert (store.value, store.buffer, *store.indices, store.mask) == (load.result, buffer, i, None)
    masked = LoadOp(buffer, [i], mask=mask)
    assert (masked.buffer, *masked.indices, masked.mask) == (buffer, i, mask)


def test_what_passes_ask_for_most_often_is_read_without_the_sizes_of_segments():
    direct = {(LoadOp, "buffer"), (StoreOp, "value"), (StoreOp, "buffer")}
    assert not any(isinstance(vars(op)[name], BaseAttrAccessor) for op, name in direct)
