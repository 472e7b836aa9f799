"""Which integers are data: they come from memory, scalar arguments or calls, and may be any number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.structure import block_of, has_no_effects, loop_of
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp


class DataSources:
    """Classifies integers; sizes, loop variables and what is computed from them are no data. Memoised."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on anything but sizes and loop variables."""
        pending = [value]
        while pending:
            sources = _sources(pending[-1])
            missing = [source for source in sources or () if source not in self._known]
            if missing:
                pending += missing
                continue
            current = pending.pop()
            self._known[current] = sources is None or any(self._known[source] for source in sources)
        return self._known[value]


def _sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """What a value is computed from; `None` for data."""
    owner = value.owner
    if isinstance(owner, Operation):
        return None if isinstance(owner, LoadOp) or owner.regions or not has_no_effects(owner) else owner.operands
    assert isinstance(value, BlockArgument)
    loop, block, func = loop_of(value), block_of(value), owner.parent_op()
    if block is not None:
        return (block.bindings[value.index],)
    if loop is not None:
        return (loop.upper,) if loop.lower is None else (loop.lower, loop.upper)
    return () if isinstance(func, PrimFuncOp) and value.index < len(func.symbols) else None
