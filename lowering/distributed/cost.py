"""What a redistribution moves and what an operator computes, per worker, as expressions in the symbols of the program.

Collectives are counted as rings: an all-gather receives the tiles of the other workers one after the other, an
all-reduce is a reduce-scatter and an all-gather. So a worker receives as many bytes as it sends.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from lowering.distributed.factors import Factors, dims_of
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.struct_info.sharding import MeshAxis, Partial, Placement, Replicate, Shard
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv, product
from tir_dialect.dtypes import byte_size

ASSUMED_SIZE = 64
"""What decisions take a symbol for: they are made once, for all sizes."""

FLOPS_PER_BYTE = 16
"""How many operations a worker does in the time in which it sends a byte: 160 GFLOP/s and 10 GB/s."""


@dataclass(frozen=True)
class Traffic:
    """What one worker sends."""

    bytes: Dim
    messages: Dim

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.bytes + other.bytes, self.messages + other.messages)


NOTHING = Traffic(constant(0), constant(0))


def bytes_of(info: TensorType) -> Dim:
    """The bytes of a tensor whose dimensions and dtype are known; unknown ones count as 1, and as 4 bytes."""
    count = product(dim for dim in info.dims or () if dim is not None)
    return count * (4 if info.dtype is None else byte_size(info.dtype))


def all_gather(whole: Dim, workers: int) -> Traffic:
    """Of a tensor of so many bytes, which each worker then has."""
    return Traffic(whole - floordiv(whole, workers), constant(workers - 1))


def all_reduce(whole: Dim, workers: int) -> Traffic:
    """Of a tensor of so many bytes, of which each worker has a term."""
    return all_gather(whole, workers) + reduce_scatter(whole, workers)


def reduce_scatter(whole: Dim, workers: int) -> Traffic:
    """Of a tensor of so many bytes, of which each worker has a term and gets a tile."""
    return Traffic(whole - floordiv(whole, workers), constant(workers - 1))


def all_to_all(whole: Dim, workers: int) -> Traffic:
    """Of a tensor of so many bytes, of which each worker has one tile and gets another."""
    tile = floordiv(whole, workers)
    return Traffic(tile - floordiv(tile, workers), constant(workers - 1))


def redistribution(info: TensorType, axis: MeshAxis, old: Placement, new: Placement) -> Traffic:
    """What a change of placement along one axis costs; tiles along other axes make it cheaper, which is not counted."""
    workers, whole = axis.size.constant_value or 1, bytes_of(info)
    if old == new or workers == 1:
        return NOTHING
    match old, new:
        case Shard(), Replicate():
            return all_gather(whole, workers)
        case Shard(dim), Shard(other) if dim == other:  # tiles of other units
            return all_gather(whole, workers)
        case Partial(), Replicate():
            return all_reduce(whole, workers)
        case Partial(), Shard():
            return reduce_scatter(whole, workers)
        case Shard(), Shard():
            return all_to_all(whole, workers)
        case _:
            return NOTHING


def work(op: Operation, factors: Factors) -> Dim:
    """How many operations an op takes: one for each combination of the values of its factors, and of what has none.

    A check of a type takes none.
    """
    if isinstance(op, MatchCastOp):
        return constant(0)
    sizes: list[Dim] = []
    for factor in factors.names:
        size = next((size for _, size in dims_of(op, factors, factor)), None)
        if size is not None:
            sizes.append(size)
    rest = [_without_factors(value, labels) for value, labels in zip(op.results, factors.results, strict=True)]
    return product([*sizes, *rest[:1]])


def _without_factors(value: SSAValue, labels: tuple[str | None, ...]) -> Dim:
    dims = (value.type.dims or ()) if isinstance(value.type, TensorType) else ()
    return product(dim for dim, label in zip(dims, labels, strict=True) if label is None and dim is not None)


def estimate(dim: Dim) -> float:
    """A number for an expression: symbols are `ASSUMED_SIZE`."""
    return float(dim.evaluate(dict.fromkeys(dim.symbols, ASSUMED_SIZE)))
