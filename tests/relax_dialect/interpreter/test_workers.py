"""All ranks of a program in one process: what collectives give each of them, and how ranks that do not fit are told."""

import ml_dtypes
import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.interpreter.workers import WorkerError, run_workers
from relax_dialect.struct_info.sharding import coordinates, group_of, tile_bounds

MESHES = [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 2, "y": 2}, {"x": 2, "y": 3}]


def program(body: str) -> str:
    return f"""relax.func @main[%n, %m, %t](%x: !relax.tensor<[n, m], f32>, %s: !relax.shape<[t]>) -> !relax.object {{
  %0 = {body}
  relax.return %0
}}"""


def tiles(x: np.ndarray, count: int, axis: int) -> list[np.ndarray]:
    bounds = [tile_bounds(x.shape[axis], count, index) for index in range(count)]
    return [x[(slice(None),) * axis + (slice(*each),)] for each in bounds]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("rows", [1, 4, 7])
def test_collectives(mesh: dict[str, int], rows: int):
    """Each along the first axis of the mesh; tiles are divided upwards, so that the last ones may be small or empty."""
    count, workers = mesh["x"], int(np.prod(list(mesh.values())))
    values = [np.random.default_rng(rank).integers(-9, 9, (rows, 5)).astype(np.float32) for rank in range(workers)]
    groups = [group_of(mesh, rank, "x") for rank in range(workers)]
    index = [coordinates(mesh, rank)["x"] for rank in range(workers)]

    def check(body: str, expected: list[np.ndarray], given: list[np.ndarray] = values, tile: int = 0) -> None:
        arguments = [(array, [tile or len(want)]) for array, want in zip(given, expected, strict=True)]
        shaped = [(array, _shape(size)) for array, size in arguments]
        got = run_workers(parse_module(program(body)), "main", mesh, shaped)
        for rank in range(workers):
            np.testing.assert_array_equal(got[rank], expected[rank], err_msg=f"{body} rank {rank}")

    totals = [sum(values[other] for other in groups[rank]) for rank in range(workers)]
    check('relax.ccl.allreduce %x group = "x"', totals)
    check('relax.ccl.allreduce %x op_type = "max"', [np.max(values, axis=0)] * workers)
    cut = [tiles(total, count, 0)[index[rank]] for rank, total in enumerate(totals)]
    check(f'relax.ccl.reduce_scatter %x num_workers = {count} tile = t group = "x"', cut)
    joined = [np.concatenate([values[other] for other in groups[rank]]) for rank in range(workers)]
    check(f'relax.ccl.allgather %x num_workers = {count} group = "x"', joined)
    sources = [np.concatenate([tiles(values[o], count, 0)[index[r]] for o in groups[r]], 1) for r in range(workers)]
    size = f"size = {5 * count}"
    check(f'relax.ccl.all_to_all %x num_workers = {count} concat_axis = 1 tile = t {size} group = "x"', sources)
    check('relax.ccl.broadcast_from_worker0 %x group = "x"', [values[groups[rank][0]] for rank in range(workers)])
    first = [tiles(values[groups[rank][0]], count, 0)[index[rank]] for rank in range(workers)]
    check(f'relax.ccl.scatter_from_worker0 %x num_workers = {count} tile = t group = "x"', first)
    # Tiles of a whole, which differ in size, make the whole again.
    whole = np.arange(rows * 5, dtype=np.float32).reshape(rows, 5)
    mine = [tiles(whole, count, 0)[index[rank]] for rank in range(workers)]
    check(f'relax.ccl.allgather %x num_workers = {count} size = t group = "x"', [whole] * workers, mine, rows)


def _shape(dims: list[int]) -> object:
    import tvm_ffi

    return tvm_ffi.Shape(dims)


def test_narrow_floats_are_summed_in_f32():
    """1 + 2^-8 + 2^-8 is 1 after each sum of two numbers in bf16."""
    module = parse_module("""relax.func @main(%x: !relax.tensor<[1], bf16>) -> !relax.object {
      %0 = relax.ccl.allreduce %x
      relax.return %0
    }""")
    terms = [np.array([value], ml_dtypes.bfloat16) for value in (1, 2**-8, 2**-8)]
    (got, *_) = run_workers(module, "main", {"x": 3}, [[term] for term in terms])
    assert float(got[0]) == 1 + 2**-7


BRANCHES = """relax.func @main[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %0 = relax.if %c {
    %1 = FIRST
    relax.yield %1
  } else {
    %2 = SECOND
    relax.yield %2
  } : !relax.object
  relax.return %0
}"""


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            "relax.ccl.allreduce %x",
            'relax.ccl.allreduce %x op_type = "max"',
            "workers disagree: rank 0 is at 'relax.ccl.allreduce'.*rank 1 at 'relax.ccl.allreduce'.*max",
        ),
        (
            "relax.ccl.allreduce %x",
            "relax.ccl.broadcast_from_worker0 %x",
            "workers disagree: rank 0 is at 'relax.ccl.allreduce'.*rank 1 at 'relax.ccl.broadcast_from_worker0'",
        ),
        (
            "relax.ccl.allreduce %x",
            "relax.exp %x",
            "workers wait for each other: rank 0 waits at 'relax.ccl.allreduce'.*; 1 have ended",
        ),
    ],
)
def test_disagreement(first: str, second: str, message: str):
    module = parse_module(BRANCHES.replace("FIRST", first).replace("SECOND", second))
    x = np.ones(3, np.float32)
    with pytest.raises(WorkerError, match=message):
        run_workers(module, "main", {"x": 2}, [(x, True), (x, False)])


def test_ranks_that_wait_in_different_groups():
    """Rank 0 waits for rank 1, which waits for rank 3, ..."""
    module = parse_module(
        BRANCHES.replace("FIRST", 'relax.ccl.allreduce %x group = "x"').replace(
            "SECOND", 'relax.ccl.allreduce %x group = "y"'
        )
    )
    x = np.ones(3, np.float32)
    with pytest.raises(WorkerError, match=r"workers wait for each other: rank 0 waits at .*; rank 3 waits at"):
        run_workers(module, "main", {"x": 2, "y": 2}, [(x, rank in (0, 3)) for rank in range(4)])


def test_shapes_that_differ():
    module = parse_module(program("relax.ccl.allreduce %x"))
    arguments = [(np.ones((2, 1 + rank), np.float32), _shape([1])) for rank in range(2)]
    with pytest.raises(WorkerError, match=r"rank 0 is at .*float32\[2, 1\].*rank 1 at .*float32\[2, 2\]"):
        run_workers(module, "main", {"x": 2}, arguments)


def test_an_error_of_one_rank_ends_all():
    module = parse_module("""relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.object {
      %0 = relax.ccl.allreduce %x
      relax.return %0
    }""")
    with pytest.raises(WorkerError, match=r"rank 1: ValueError: main: .*expected 2, got 3"):
        run_workers(module, "main", {"x": 2}, [[np.ones(2 + rank, np.float32)] for rank in range(2)])


def test_groups():
    mesh = {"x": 2, "y": 3}
    assert [coordinates(mesh, rank) for rank in (0, 1, 5)] == [{"x": 0, "y": 0}, {"x": 0, "y": 1}, {"x": 1, "y": 2}]
    assert (group_of(mesh, 4, "x"), group_of(mesh, 4, "y"), group_of(mesh, 4, "")) == ([1, 4], [3, 4, 5], [*range(6)])
    with pytest.raises(ValueError, match='no axis "z" in a mesh of x, y'):
        group_of(mesh, 0, "z")
