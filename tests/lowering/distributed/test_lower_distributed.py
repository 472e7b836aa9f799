"""The program of a worker: all workers together compute what the whole does, also where tiles differ in size."""

import numpy as np
import pytest

from lowering.diagnostics import InvalidModule
from lowering.distributed.program import Distribution
from lowering.distributed.report import communication_text
from lowering.parsing import parse_module
from relax_dialect.interpreter.workers import WorkerError
from tests.lowering.distributed.support import check_sharded, run_sharded
from tests.support.programs import run_pipeline

PLACEMENTS = ("R", "S[0]", "S[1]")


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 4, shape).astype(np.float32)


def redistribution(mesh: str, first: str, last: str) -> str:
    def info(placement: str) -> str:
        axes = ", ".join(f"{axis}: {p}" for axis, p in zip(mesh.split(", "), placement.split(", "), strict=True))
        return f"!relax.tensor<[n, m], f32, sharding<{axes}>>"

    names = ", ".join(axis.split(" ")[0] for axis in mesh.split(", "))
    sizes = ", ".join(axis.split(" ")[2] for axis in mesh.split(", "))
    return f"""relax.func @main[%n, %m](%x: {info(first)}) -> {info(last)} {{
      %0 = relax.dist.redistribute %x mesh = [{sizes}] placement = "{last}" axes = "{names}"
      relax.return %0
    }}"""


SIZES = [(1, 1), (2, 3), (5, 4), (6, 6), (0, 2)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", PLACEMENTS)
@pytest.mark.parametrize("last", PLACEMENTS)
def test_redistribution_along_one_axis(first: str, last: str):
    for workers in (1, 2, 3, 4):
        check_sharded(redistribution(f"x = {workers}", first, last), [[array(*size)] for size in SIZES])


TWO_AXES = ("R, R", "S[0], R", "R, S[0]", "S[0], S[1]", "S[1], S[0]")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", TWO_AXES)
@pytest.mark.parametrize("last", TWO_AXES)
def test_redistribution_along_two_axes(first: str, last: str):
    """Also where both axes change what they have, each waiting for the other."""
    check_sharded(redistribution("x = 2, y = 3", first, last), [[array(*size)] for size in SIZES])


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6])
def test_tensor_parallel_layer(workers: int):
    """Columns of the first weight, rows of the second: one all-reduce."""
    mesh = f"x = {workers}"
    text = f"""relax.func @main[%n](%x: !relax.tensor<[n, 6], f32>,
        %v: !relax.tensor<[6, 7], f32, sharding<{mesh}: S[1]>>,
        %w: !relax.tensor<[7, 6], f32, sharding<{mesh}: S[0]>>) -> !relax.tensor<[n, 6], f32> {{
      %0 = relax.matmul %x, %v : !relax.tensor<[n, 7], f32, sharding<{mesh}: S[1]>>
      %1 = relax.nn.gelu %0 : !relax.tensor<[n, 7], f32, sharding<{mesh}: S[1]>>
      %2 = relax.matmul %1, %w : !relax.tensor<[n, 6], f32, sharding<{mesh}: P>>
      %3 = relax.dist.redistribute %2 mesh = [{workers}] placement = "R" axes = "x"
      %4 = relax.add %3, %x
      relax.return %4
    }}"""
    module = check_sharded(text, [[array(n, 6), array(6, 7), array(7, 6)] for n in (1, 3)])
    assert str(module).count("relax.ccl.") == 1


def test_shapes_of_shared_tensors():
    """What takes a shape gets that of the tile; the shape of a shared tensor is that of the whole."""
    mesh = "sharding<x = 2: S[0]>"
    text = f"""relax.func @main[%n](%x: !relax.tensor<[4 * n, 6], f32, {mesh}>) -> !relax.object {{
      %s = relax.shape [4 * n, 2, 3]
      %0 = relax.reshape %x, %s : !relax.tensor<[4 * n, 2, 3], f32, {mesh}>
      %t = relax.shape [5, 4 * n, 2, 3]
      %1 = relax.broadcast_to %0, %t : !relax.tensor<[5, 4 * n, 2, 3], f32, sharding<x = 2: S[1]>>
      %u = relax.shape_of %1
      %2 = relax.zeros %u dtype = f32 : !relax.tensor<[5, 4 * n, 2, 3], f32, sharding<x = 2: S[1]>>
      %3 = relax.add %1, %2 : !relax.tensor<[5, 4 * n, 2, 3], f32, sharding<x = 2: S[1]>>
      %4 = relax.max %3 axes = [1] : !relax.tensor<[5, 2, 3], f32, sharding<x = 2: P[max]>>
      %5 = relax.dist.redistribute %4 mesh = [2] placement = "S[2]" axes = "x"
      %6 = relax.tuple(%5, %3)
      relax.return %6
    }}"""
    check_sharded(text, [[array(4 * n, 6)] for n in (1, 3)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8"])
def test_take_along_a_shared_axis(dtype: str):
    """Each worker takes from its rows, zeros for those of others; indices out of range mean what they do in all."""
    info = np.iinfo(dtype)
    indices = np.array([[0, 9, 10, info.max], [info.min, info.max - 1, 12, 5]], dtype)
    name = dtype.replace("uint", "ui").replace("int", "i")
    for workers in (1, 2, 3, 4):
        text = f"""relax.func @main(%t: !relax.tensor<[3, 10, 2], f32, sharding<x = {workers}: S[1]>>,
            %i: !relax.tensor<[2, 4], {name}>) -> !relax.object {{
          %0 = relax.take %t, %i axis = 1
          %1 = relax.take %t, %i axis = 1 mode = "clip"
          %2 = relax.take %t, %i axis = 1 mode = "wrap"
          %3 = relax.tuple(%0, %1, %2)
          relax.return %3
        }}"""
        module = check_sharded(text, [[array(3, 10, 2), indices]], "propagate-sharding,lower-distributed")
        assert str(module).count("relax.ccl.allreduce") == 3


def test_take_from_tiles_that_may_be_empty():
    """Five workers have six rows, two each: the last ones have none, so all gather the table."""
    text = """relax.func @main(%t: !relax.tensor<[6, 2], f32, sharding<x = 5: S[0]>>, %i: !relax.tensor<[4], i64>)
        -> !relax.object {
      %0 = relax.take %t, %i axis = 0
      relax.return %0
    }"""
    module = check_sharded(text, [[array(6, 2), np.array([5, 0, -1, 3])]], "propagate-sharding,lower-distributed")
    assert "relax.ccl.allgather %t" in str(module)


VIEWS = """
tir.prim_func @double[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "double" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
      %x = tir.load %X[%vi, %vj]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 6], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.dist.local_view %0 mesh = [2] placement = "S[0]" axes = "x"
  %2 = relax.call_tir @double(%1) : !relax.tensor<[floordiv(n, 2), 6], f32>
  %3 = relax.dist.global_view %2 mesh = [2] placement = "S[0]" axes = "x"
  %4 = relax.negative %3
  relax.return %4
}
"""


def test_views():
    """Between a local and a global view, each worker computes with its tile; tiles have to be equally large there."""
    module = parse_module(VIEWS)
    run_pipeline(module, "propagate-sharding,lower-distributed")
    for n in (2, 4):
        x = array(n, 6)
        np.testing.assert_allclose(run_sharded(module, "main", [x]), -2 * np.exp(x), 1e-6)
    with pytest.raises(WorkerError, match=r"rank 0: ValueError: main: .*expected floordiv\(n, 2\) = 1, got 2"):
        run_sharded(module, "main", [array(3, 6)])


def test_symbolic_mesh():
    """The size of an axis may be a symbol until the program is lowered."""
    text = """relax.func @main[%n, %p](%q: !relax.prim<i64, p>, %x: !relax.tensor<[n, 4], f32, sharding<x = p: S[0]>>)
        -> !relax.tensor<[n, 4], f32> {
      %0 = relax.exp %x : !relax.tensor<[n, 4], f32, sharding<x = p: S[0]>>
      %1 = relax.dist.redistribute %0 mesh = [p] placement = "R" axes = "x"
      relax.return %1
    }"""
    module = parse_module(text)
    with pytest.raises(InvalidModule, match="expected a number of workers along axis x, got p"):
        run_pipeline(module.clone(), "lower-distributed")
    run_pipeline(module, "lower-distributed{x=3}")
    assert Distribution.of(module, "main").mesh == {"x": 3}
    with pytest.raises(InvalidModule, match=r"expected sizes for axes of the mesh \[x = 2\], got y"):
        run_pipeline(parse_module(redistribution("x = 2", "R", "S[0]")), "lower-distributed{y=3}")


def test_another_mesh():
    """The sizes that a program says are only those that it has without others."""
    text = redistribution("x = 2", "S[0]", "S[1]")
    for workers in (1, 2, 3):
        module = check_sharded(text, [[array(5, 4)]], f"lower-distributed{{x={workers}}}")
        assert Distribution.of(module, "main").mesh == {"x": workers}


REFUSED = {
    "cannot be shared so along axis x = 2: (S[0]) -> (R)": "relax.exp %x : !relax.tensor<[n, 4], f32>",
    "expected operands that all workers have": "relax.unique %x",
    "expected a placement that S[0] can become, got P": (
        'relax.dist.redistribute %x mesh = [2] placement = "P" axes = "x"'
    ),
    "expected the mesh [x = 2] of the function's other tensors, got [y = 2]": (
        'relax.dist.redistribute %x mesh = [2] placement = "R" axes = "y"'
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str):
    text = f"""relax.func @main[%n](%x: !relax.tensor<[n, 4], f32, sharding<x = 2: S[0]>>) -> !relax.object {{
      %0 = {REFUSED[message]}
      relax.return %0
    }}"""
    with pytest.raises(InvalidModule) as caught:
        run_pipeline(parse_module(text), "lower-distributed")
    assert message in str(caught.value)


def test_options():
    from lowering.distributed.lower_distributed import LowerDistributedPass

    assert LowerDistributedPass({"x": 2, "y": 3}) == LowerDistributedPass.from_spec(
        LowerDistributedPass({"x": 2, "y": 3}).spec()
    )
    text = "relax.func @main(%x: !relax.object) -> !relax.object { relax.return %x }"
    with pytest.raises(ValueError, match="expected a number of workers for the axis x, got 0"):
        run_pipeline(parse_module(text), "lower-distributed{x=0}")


def rows_of_extrema(width: int) -> np.ndarray:
    """Rows with equal extrema in several tiles, both zeros, infinities and NaN, in the first tile or a later one."""
    rows = [array(width, seed=seed) for seed in range(4)]
    rows += [np.zeros(width, np.float32), np.where(np.arange(width) % 2, 0.0, -0.0).astype(np.float32)]
    for place in range(width):
        for special in (np.nan, np.inf, -np.inf):
            row = array(width, seed=place)
            row[place::2] = special
            rows.append(row)
    return np.stack(rows)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("keepdims", ["", " keepdims"])
def test_positions_of_extrema_along_the_axis_that_is_shared(op: str, keepdims: str):
    """Workers exchange two numbers for each row; tiles may differ in size."""
    for workers, width in ((2, 2), (2, 7), (3, 7), (4, 7), (3, 12), (4, 13)):
        info = f"!relax.tensor<[n, {width}], f32, sharding<x = {workers}: S[1]>>"
        text = f"""relax.func @main[%n](%x: {info}) -> !relax.tensor<{"[n, 1]" if keepdims else "[n]"}, i64> {{
          %0 = relax.{op} %x axis = 1{keepdims}
          relax.return %0
        }}"""
        lowered = check_sharded(text, [[rows_of_extrema(width)]])
        assert str(lowered).count("relax.ccl.allgather") == 2


def test_exchanges_of_an_operator_count():
    """Positions and extrema are 12 bytes for each row and worker: of four columns there are fewer bytes to gather."""
    text = """relax.func @main[%n](%x: !relax.tensor<[n, WIDTH], f32, sharding<x = 4: S[1]>>) -> !relax.object {
      %0 = relax.exp %x
      %1 = relax.argmax %0 axis = 1
      relax.return %1
    }"""
    for width, count in ((4, 1), (400, 2)):
        module = check_sharded(
            text.replace("WIDTH", str(width)), [[array(3, width)]], "propagate-sharding,lower-distributed"
        )
        gathers = [line for line in str(module).splitlines() if "relax.ccl.allgather" in line]
        assert len(gathers) == count


@pytest.mark.parametrize(("workers", "extent"), [(2, "m"), (3, "4"), (2, "1")])
def test_positions_along_an_axis_of_which_a_worker_may_have_nothing_are_refused(workers: int, extent: str):
    info = f"!relax.tensor<[{extent}, n], f32, sharding<x = {workers}: S[0]>>"
    text = f"""relax.func @main[%m, %n](%x: {info}, %y: !relax.tensor<[m, n], f32>) -> !relax.tensor<[n], i64> {{
      %0 = relax.argmax %x axis = 0
      relax.return %0
    }}"""
    with pytest.raises(InvalidModule, match="cannot be shared so along axis x"):
        run_pipeline(parse_module(text), "lower-distributed")


@pytest.mark.parametrize(("heads", "shared", "workers"), [(4, 4, 2), (6, 6, 4), (9, 3, 2), (8, 2, 4)])
def test_heads_that_workers_do_not_divide(heads: int, shared: int, workers: int):
    """Workers have whole heads, if there are enough of keys; else the report says why projections are gathered."""
    queries, keys = heads * 4, shared * 4
    text = f"""relax.func @main[%n](%x: !relax.tensor<[1, n, 8], f32>,
        %q: !relax.tensor<[8, {queries}], f32, sharding<x = {workers}: S[1]>>,
        %k: !relax.tensor<[8, {keys}], f32, sharding<x = {workers}: S[1]>>,
        %v: !relax.tensor<[8, {keys}], f32, sharding<x = {workers}: S[1]>>,
        %o: !relax.tensor<[{queries}, 8], f32, sharding<x = {workers}: S[0]>>) -> !relax.tensor<[1, n, 8], f32> {{
      %0 = relax.matmul %x, %q
      %1 = relax.matmul %x, %k
      %2 = relax.matmul %x, %v
      %s = relax.shape [1, n, {heads}, 4]
      %t = relax.shape [1, n, {shared}, 4]
      %3 = relax.reshape %0, %s
      %4 = relax.reshape %1, %t
      %5 = relax.reshape %2, %t
      %6 = relax.nn.attention %3, %4, %5
      %u = relax.shape [1, n, {queries}]
      %7 = relax.reshape %6, %u
      %8 = relax.matmul %7, %o
      relax.return %8
    }}"""
    shapes = (8, queries), (8, keys), (8, keys), (queries, 8)
    args = [[array(1, n, 8), *(array(*shape, seed=1) for shape in shapes)] for n in (1, 5)]
    report = communication_text(check_sharded(text, args, "propagate-sharding,lower-distributed"))
    assert ("allgather" in report) == (shared < workers)
    if shared < workers:
        assert f", since {workers} workers do not divide {shared} of [1, n, {shared}, 4]" in report


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_packed_matrices(workers: int):
    """Rows of outputs of the first and inputs of the second, by whole blocks: three workers have 2, 2 and none of 4."""
    mesh = f"x = {workers}"
    text = f"""relax.func @main[%n](%x: !relax.tensor<[n, 32], f32>,
        %up: !relax.tensor<[128, 34], ui8, sharding<{mesh}: S[0]>>,
        %down: !relax.tensor<[6, 136], ui8, sharding<{mesh}: S[1]>>) -> !relax.tensor<[n, 6], f32> {{
      %0 = relax.dequantize_blocks %up format = "q8_0"
      %1 = relax.permute_dims %0
      %2 = relax.matmul %x, %1
      %3 = relax.dequantize_blocks %down format = "q8_0"
      %4 = relax.permute_dims %3
      %5 = relax.matmul %2, %4
      relax.return %5
    }}"""

    def packed(rows: int, blocks: int) -> np.ndarray:
        found = np.random.default_rng(rows).integers(0, 256, (rows, blocks, 34)).astype(np.uint8)
        found[:, :, :2] = np.frombuffer(np.float16(0.125).tobytes(), np.uint8)
        return found.reshape(rows, -1)

    args = [[array(n, 32), packed(128, 1), packed(6, 4)] for n in (1, 3)]
    report = communication_text(check_sharded(text, args, "propagate-sharding,lower-distributed"))
    assert "allgather" not in report
    assert "allreduce" in report
