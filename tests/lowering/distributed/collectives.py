"""One function for each collective, and arguments of each rank: for the interpreter and for MPI."""

from collections.abc import Mapping
from math import prod

import numpy as np
import tvm_ffi

from relax_dialect.struct_info.sharding import coordinates, tile_bounds
from tests.operators.support import DTYPES as ALL
from tests.operators.support import random

DTYPES = ("f32", "f16", "bf16", "i64", "i1")

ROWS = 5

COLLECTIVES: Mapping[str, str] = {
    "total": "relax.ccl.allreduce %x",
    "greatest": 'relax.ccl.allreduce %x op_type = "max" group = "x"',
    "least": 'relax.ccl.allreduce %x op_type = "min" group = "x"',
    "gathered": 'relax.ccl.allgather %x num_workers = COUNT group = "x"',
    "gathered_columns": 'relax.ccl.allgather %x num_workers = COUNT axis = 1 group = "x"',
    "gathered_tiles": f'relax.ccl.allgather %x num_workers = COUNT size = {ROWS} group = "x"',
    "scattered_sum": 'relax.ccl.reduce_scatter %x num_workers = COUNT tile = t group = "x"',
    "scattered_greatest": (
        'relax.ccl.reduce_scatter %x op_type = "max" num_workers = COUNT axis = 1 tile = t group = "x"'
    ),
    "moved": 'relax.ccl.all_to_all %x num_workers = COUNT concat_axis = 1 tile = t group = "x"',
    "moved_back": (
        f'relax.ccl.all_to_all %x concat_axis = 0 size = {ROWS} num_workers = COUNT axis = 1 tile = t group = "x"'
    ),
    "of_the_first": 'relax.ccl.broadcast_from_worker0 %x group = "x"',
    "scattered": 'relax.ccl.scatter_from_worker0 %x num_workers = COUNT axis = 1 tile = t group = "x"',
    "begun_total": '%b = relax.ccl.start %x collective = "allreduce"; relax.ccl.allreduce %x, %b',
    "begun_greatest": (
        '%b = relax.ccl.start %x collective = "allreduce" op_type = "max" group = "x"; '
        'relax.ccl.allreduce %x, %b op_type = "max" group = "x"'
    ),
    "begun_columns": (
        '%b = relax.ccl.start %x collective = "allgather" num_workers = COUNT axis = 1 group = "x"; '
        'relax.ccl.allgather %x, %b num_workers = COUNT axis = 1 group = "x"'
    ),
    "begun_tiles": (
        f'%b = relax.ccl.start %x collective = "allgather" num_workers = COUNT size = {ROWS} group = "x"; '
        f'relax.ccl.allgather %x, %b num_workers = COUNT size = {ROWS} group = "x"'
    ),
    "begun_scattered_sum": (
        '%b = relax.ccl.start %x collective = "reduce_scatter" num_workers = COUNT group = "x"; '
        'relax.ccl.reduce_scatter %x, %b num_workers = COUNT tile = t group = "x"'
    ),
    "own_tile": 'relax.dist.redistribute_replica_to_shard %x num_workers = COUNT tile = t group = "x"',
}
"""Along the axis `x`, whose size is `COUNT`; `t` is the size of a tile."""

_TILED_ROWS = ("gathered_tiles", "begun_tiles", "moved_back")
_COLUMNS = ("scattered_greatest", "moved_back", "scattered")
WIDTH = 3


def program(name: str, dtype: str, mesh: Mapping[str, int]) -> str:
    """The text of one function."""
    *before, last = COLLECTIVES[name].replace("COUNT", str(mesh["x"])).split("; ")
    body = "\n  ".join([*before, f"%0 = {last}"])
    params = f"%x: !relax.tensor<[n, m], {dtype}>, %s: !relax.shape<[t]>"
    return f"relax.func @{name}[%n, %m, %t]({params}) -> !relax.object {{\n  {body}\n  relax.return %0\n}}"


def arguments(name: str, dtype: str, mesh: Mapping[str, int], rank: int) -> list[object]:
    """What one rank brings."""
    assert prod(mesh.values()) > rank
    assert dtype in ALL
    begin, end = tile_bounds(ROWS, mesh["x"], coordinates(mesh, rank)["x"])
    rows = end - begin if name in _TILED_ROWS else ROWS
    first, last = tile_bounds(WIDTH if name in _COLUMNS else ROWS, mesh["x"], coordinates(mesh, rank)["x"])
    x = random(dtype, rows, WIDTH, seed=rank + 1)
    return [np.ascontiguousarray(x), tvm_ffi.Shape([last - first])]
