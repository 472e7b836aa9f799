"""A vector of several rows: all that is stored is computed before.

What rows have in common is loaded once, and no load waits for a store to another row at a like address: rows of a
multiple of 4 KiB would make many wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.streams import streamed_from
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.traversal.accumulators import accumulator
from lowering.kernels.cpu.traversal.step import Step
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import StoreOp


def emit_rows(kernel: Kernel, step: Step, start: SSAValue, lanes: int, left: SSAValue | None) -> None:
    """Maps of several rows from an element on, for all lanes or the first `left` of them."""
    code = kernel.code
    stores = [(body, store) for body in step.bodies for store in body.stage.stores if store.buffer in kernel.results]
    kept = [accumulator(kernel, store.buffer_type, lanes) for _, store in stores]

    def compute(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
        return step.values_of(index, stores)

    def write(fills_lines: bool) -> None:
        for (body, store), memory in zip(stores, kept, strict=True):
            _write(kernel, body, store, memory, (start, lanes, left), fills_lines)

    vector_iteration(kernel, start, lanes, left, kept, compute)
    # One branch for all stores: what is only needed behind one would be computed there, and its loads wait.
    least = streamed_from(kernel, stores[0][0].stage, stores[0][1]) if left is None else None
    if least is None:
        write(fills_lines=False)
        return
    kind = stores[0][1].buffer_type
    size = code.dim(product(kind.shape) * byte_size(kind.dtype))
    with code.when(code.compare("sge", size, least)) as branch:
        write(fills_lines=True)
    with code.otherwise(branch):
        write(fills_lines=False)


def _write(
    kernel: Kernel,
    body: Body,
    store: StoreOp,
    memory: SSAValue,
    vector: tuple[SSAValue, int, SSAValue | None],
    fills_lines: bool,
) -> None:
    """Writes what is kept for a row."""

    def write(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        here = body.at_index(index)
        here.fills_lines = fills_lines
        here.values[store.value] = old[0]
        here.run([store])
        return old

    start, lanes, left = vector
    vector_iteration(kernel, start, lanes, left, [memory], write)
