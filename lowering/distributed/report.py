"""What the workers of a lowered program send to each other, as expressions in the symbols of the program.

And how long a call takes then: the alpha-beta model of messages, and operations of the slowest worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowering.distributed.cost import (
    NOTHING,
    Traffic,
    all_gather,
    all_reduce,
    all_to_all,
    bytes_of,
    reduce_scatter,
    work,
)
from lowering.distributed.factors import dims, divides, factors_of
from lowering.distributed.lower_distributed import MESH
from lowering.distributed.program import shard
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastFromWorker0Op,
    CollectiveOp,
    ReduceScatterOp,
    ScatterFromWorker0Op,
    SendOp,
    StartOp,
)
from relax_dialect.ops.distributed import RedistributeReplicaToShardOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.sharding import ShardingAttr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, product


@dataclass(frozen=True)
class Exchange:
    """One collective of a function."""

    op: CollectiveOp
    workers: int
    sent: Traffic
    """What one worker sends in one call of the function; of rank 0, where the ranks differ."""

    def as_text(self) -> str:
        """`relax.ccl.allreduce of 2 workers along x: 256 * n bytes in 2 messages`.

        Of an all-gather before a dimension becomes heads, how many there are, if workers do not divide that.
        """
        along = f" along {self.op.group_name}" if self.op.group_name else ""
        what = f"{self.op.name} of {self.workers} workers{along}"
        text = f"{what}: {self.sent.bytes} bytes in {self.sent.messages} messages"
        shape = _undivided(self.op, self.workers)
        return text if shape is None else f"{text}, since {self.workers} workers do not divide {shape}"


@dataclass(frozen=True)
class FunctionCommunication:
    """The collectives of one function, in program order; those of loops and branches count once."""

    name: str
    exchanges: tuple[Exchange, ...]

    @property
    def total(self) -> Traffic:
        """What one worker sends in one call."""
        return sum((each.sent for each in self.exchanges), NOTHING)

    def seconds(self, sizes: dict[str, int], latency: float, bandwidth: float) -> float:
        """How long the exchanges of a call take by the alpha-beta model: seconds of a message, bytes in a second."""
        total = self.total
        return latency * total.messages.evaluate(sizes) + total.bytes.evaluate(sizes) / bandwidth

    def as_text(self) -> str:
        """A line for each exchange, and the total."""
        if not self.exchanges:
            return f"@{self.name}\n  nothing is sent"
        lines = [f"@{self.name}", *(f"  {each.as_text()}" for each in self.exchanges)]
        return "\n".join([*lines, f"  in all: {self.total.bytes} bytes in {self.total.messages} messages per worker"])


def communication(module: ModuleOp) -> list[FunctionCommunication]:
    """What the functions of a module send, that `lower-distributed` has made."""
    return [
        FunctionCommunication(func.sym_name.data, tuple(_exchanges(func)))
        for func in module.ops
        if isinstance(func, FuncOp)
    ]


def communication_text(module: ModuleOp) -> str:
    """The report, function by function."""
    return "\n".join(each.as_text() for each in communication(module))


def _exchanges(func: FuncOp) -> Iterator[Exchange]:
    mesh = func.attributes.get(MESH)
    sizes = {axis.name: axis.size.constant_value or 1 for axis in mesh.mesh} if isinstance(mesh, ShardingAttr) else {}
    world = mesh.workers or 1 if isinstance(mesh, ShardingAttr) else 1
    for op in func.walk():
        # What begins an exchange sends what the op that ends it is counted for.
        if isinstance(op, CollectiveOp) and not isinstance(op, RedistributeReplicaToShardOp | StartOp):
            workers = sizes.get(op.group_name, world)
            yield Exchange(op, workers, _sent(op, workers))


def _undivided(op: Operation, workers: int) -> str | None:
    """What a gathered dimension becomes whose tiles would end inside of a row of it: `6 of [1, n, 6, 4]`."""
    if not isinstance(op, AllGatherOp):
        return None
    for user in (use.operation for use in op.results[0].uses):
        if isinstance(user, ReshapeOp) and user.x == op.results[0]:
            axis, old, new = op.axis.value.data, dims(user.x), dims(user.result)
            first = new[axis] if axis < len(new) and old[:axis] == new[:axis] and old[axis] != new[axis] else None
            if first is not None and not divides(workers, first):
                return f"{first} of [{', '.join(map(str, new))}]"
    return None


def _sent(op: Operation, workers: int) -> Traffic:
    operand, result = (
        bytes_of(value.type) if isinstance(value.type, TensorType) else constant(0)
        for value in (op.operands[0], op.results[0])
    )
    match op:
        case AllGatherOp():
            return all_gather(result, workers)
        case AllReduceOp():
            return all_reduce(result, workers)
        case ReduceScatterOp():
            return reduce_scatter(operand, workers)
        case AllToAllOp():
            return all_to_all(operand * workers, workers)
        case BroadcastFromWorker0Op():
            return Traffic(result, constant(min(1, workers - 1)))
        case ScatterFromWorker0Op():
            return reduce_scatter(operand, workers)
        case SendOp():
            return Traffic(operand, constant(1))
        case _:
            return NOTHING


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
