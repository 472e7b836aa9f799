"""How long a call takes on so many workers: the alpha-beta model of messages, and operations of the slowest worker.

Each worker has a processor of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowering.distributed.cost import work
from lowering.distributed.factors import factors_of
from lowering.distributed.report import communication
from lowering.distributed.shard import shard
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.collective import CollectiveOp
from relax_dialect.ops.operator import Operator
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, product


@dataclass(frozen=True)
class Machine:
    """What a machine does, as measured."""

    latency: float
    """Seconds that a message takes to start (alpha)."""
    bandwidth: float
    """Bytes that a worker sends in a second (1 / beta)."""
    rate: float
    """Operations of `lowering.distributed.cost.work` that a worker does in a second."""


@dataclass(frozen=True)
class Prediction:
    """The seconds of one call."""

    workers: int
    computing: float
    sending: float

    @property
    def seconds(self) -> float:
        """All of it: nothing is sent while workers compute."""
        return self.computing + self.sending


def operations(module: ModuleOp, entry: str) -> Dim:
    """The operations of a call on the first worker, in the symbols of the program; loops and branches count once."""
    total = constant(0)
    for op in module.walk():
        if isinstance(op, Operator | CallTIROp) and not isinstance(op, CollectiveOp) and _function(op) == entry:
            total = total + _work(op)
    return total


def _work(op: Operator | CallTIROp) -> Dim:
    factors = factors_of(op)
    if factors is not None:
        return work(op, factors)
    infos = [result.type for result in op.results if isinstance(result.type, TensorType)]
    return product(dim for info in infos[:1] for dim in info.dims or () if dim is not None)


def _function(op: Operation) -> str | None:
    """The function that an op is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ModuleOp):
        op, parent = parent, parent.parent_op()
    return symbol_name(op)


def predict(
    module: ModuleOp, axis: str, workers: Iterable[int], sizes: Mapping[str, int], machine: Machine, entry: str = "main"
) -> list[Prediction]:
    """What a program with annotations takes on so many workers along an axis, for sizes of its symbols."""
    found: list[Prediction] = []
    for count in workers:
        local = shard(module, {axis: count})
        exchanges = next(each for each in communication(local) if each.name == entry)
        computing = _evaluated(operations(local, entry), sizes) / machine.rate
        sent = exchanges.total
        sending = machine.latency * _evaluated(sent.messages, sizes) + _evaluated(sent.bytes, sizes) / machine.bandwidth
        found.append(Prediction(count, computing, sending))
    return found


def _evaluated(dim: Dim, sizes: Mapping[str, int]) -> float:
    """A number for an expression, on the first worker: its index is 0, and its tiles are the largest."""
    return float(dim.evaluate({name: sizes.get(name, 0) for name in dim.symbols}))
