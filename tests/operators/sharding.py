"""Functions of one operator, each tensor of which several workers share along each of its dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.distributed.program import Distribution, shard
from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect.interpreter.workers import run_workers
from relax_dialect.ops.distributed import AnnotateShardingOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import REPLICATE, Placement, Shard, ShardingAttr
from relax_dialect.struct_info.types import TensorType
from tests.support.programs import Tolerance, as_arguments, as_plain, assert_same

MESHES: Sequence[Mapping[str, int]] = ({"x": 2}, {"x": 3}, {"x": 2, "y": 2})


@cache
def sharded_programs(text: str) -> list[tuple[str, ModuleOp, Distribution]]:
    """The programs of a worker for a function, with what each one shares."""
    return list(_sharded(text))


def _sharded(text: str) -> Iterator[tuple[str, ModuleOp, Distribution]]:
    params = _main(parse_module(text)).params
    tensors = [(at, param.type) for at, param in enumerate(params) if isinstance(param.type, TensorType)]
    dims = [(at, dim) for at, info in tensors for dim, size in enumerate(info.dims or ()) if size is not None]
    for turn, (at, dim) in enumerate(dims):
        mesh = MESHES[turn % len(MESHES)]
        other_at, other_dim = dims[(turn + 1) % len(dims)]
        placements: dict[int, list[Placement]] = {at: [Shard(dim), *[REPLICATE] * (len(mesh) - 1)]}
        if len(mesh) == 2 and (other_at, other_dim) != (at, dim):
            placements.setdefault(other_at, [REPLICATE, REPLICATE])[1] = Shard(other_dim)
        module = parse_module(text)
        func = _main(module)
        for param, each in placements.items():
            _annotate(func, param, ShardingAttr.of(mesh, each))
        local = shard(module)
        verify_module(local)
        yield f"{mesh} {placements}", local, Distribution.of(local, func.sym_name.data)


def _main(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def _annotate(func: FuncOp, param: int, sharding: ShardingAttr) -> None:
    value = func.params[param]
    note = AnnotateShardingOp.of(value, sharding)
    value.replace_all_uses_with(note.result)
    note.operands[0] = value
    Rewriter.insert_op(note, InsertPoint.at_start(func.body.block))


def check_sharded(text: str, args: Sequence[Any], expected: object, tolerance: Tolerance) -> None:
    """Whichever dimension of an argument workers share, all together give what is expected."""
    close = Tolerance(max(10 * tolerance.relative, 1e-6), max(10 * tolerance.absolute, 1e-6))
    for what, module, distribution in sharded_programs(text):
        given = [distribution.arguments(as_arguments(args), rank) for rank in range(distribution.workers)]
        results = run_workers(module, distribution.name, distribution.mesh, given)
        assert_same(as_plain(distribution.whole(results)), expected, close, what)
