"""What every rank of `test_mpi.py` runs: `mpiexec -n 4 python tests/mpi/checks.py CASE+CASE`."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
import tvm_ffi

from examples.models.bert import sentence_embeddings
from examples.models.llama import decoder, random_weights
from lowering.distributed.plans import (
    BERT,
    LLAMA,
    LLAMA_CACHE,
    annotate,
    assign_stages,
    data_parallel,
    expert_parallel,
    tensor_parallel,
)
from lowering.distributed.program import Distribution, PipelinedProgram, ShardedProgram, shard
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.runtime_values import to_ffi
from relax_dialect.interpreter.workers import run_workers
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import tile_bounds
from tests.lowering.distributed.collectives import COLLECTIVES, DTYPES, arguments, program
from tests.lowering.distributed.models import (
    BERT_SIZES,
    CLOSE,
    LLAMA_SIZES,
    bert_weights,
    llama_inputs,
    mixture_of_experts,
    residual_network,
)
from tests.support.programs import assert_same
from vm_dialect import VirtualMachine
from vm_dialect.builtins import BUILTINS, register_globals
from vm_dialect.dtypes import element_type
from vm_dialect.mpi import MPI, abort, join_mpi
from vm_dialect.tensors import from_numpy, numpy_dtype, to_numpy
from vm_dialect.workers import ALLREDUCE, Call

RANK, SIZE = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
MESH = {1: {"x": 1}, 2: {"x": 2}, 3: {"x": 3}, 4: {"x": 2, "y": 2}}[SIZE]

LAYER = """relax.func @main[%n](%x: !relax.tensor<[n, 6], f32>,
    %v: !relax.tensor<[6, 25], f32, sharding<MESH: S[1]>>, %w: !relax.tensor<[25, 6], f32>) -> !relax.object {
  %0 = relax.matmul %x, %v
  %1 = relax.nn.relu %0
  %2 = relax.matmul %1, %w
  %3 = relax.add %2, %x
  %4 = relax.tuple(%3, %1)
  relax.return %4
}"""


def layer(axis: str = "x") -> str:
    return LAYER.replace("MESH", f"{axis} = {SIZE}")


def values(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((n, 6), (6, 25), (25, 6))]


WAYS = {"shared memory": (8, True), "messages": (8, False), "collectives of MPI": (1, False)}
"""How workers exchange: up to how many do it themselves, and whether through memory."""


def collectives() -> None:
    """Every collective gives what the interpreter gives in every way, natively and as bytecode; on four workers with
    every dtype.
    """
    from lowering import build

    for dtype in DTYPES if SIZE == 4 else DTYPES[:1]:
        module = parse_module("\n".join(program(name, dtype, MESH) for name in COLLECTIVES))
        join_mpi(MESH)
        machines = {
            mode: VirtualMachine(build(module.clone(), mode=mode, cache=False)) for mode in ("native", "bytecode")
        }
        for name in COLLECTIVES:
            given = [arguments(name, dtype, MESH, rank) for rank in range(SIZE)]
            expected = run_workers(module, name, MESH, given)[RANK]
            for way, (few, shared) in WAYS.items():
                for mode in ("native", "bytecode") if shared else ("bytecode",):
                    join_mpi(MESH, few=few, shared_memory=shared)
                    mine = [from_numpy(each) if isinstance(each, np.ndarray) else each for each in given[RANK]]
                    got = to_numpy(machines[mode][name](*mine))
                    np.testing.assert_array_equal(got, expected, err_msg=f"{name} {dtype} {mode} {way}")


def large() -> None:
    """What does not fit into one message or chunk: sums, tiles of all, and a maximum that is NaN where a term is."""
    terms = [np.arange(40_001, dtype=np.float32) / (1 + rank) for rank in range(SIZE)]
    terms[-1][7] = np.nan
    whole = np.arange(3 * 25_001 * 2).reshape(3, 25_001, 2)
    tile = -(-whole.shape[1] // SIZE)
    for few, shared in WAYS.values():
        group = join_mpi({"x": SIZE}, few=few, shared_memory=shared)
        for by, expected in (("sum", np.add), ("max", np.maximum)):
            out = np.empty_like(terms[0])
            group.allreduce(Call(f"allreduce by {by}", out.dtype, out.shape), terms[RANK], out, by)
            np.testing.assert_allclose(out, reduce(expected, terms), 1e-6)
        mine, out = whole[:, RANK * tile : (RANK + 1) * tile], np.empty_like(whole)
        group.allgather(Call("allgather along {} to {}", whole.dtype, (3, None, 2), (1, 25_001)), mine, out, 1)
        np.testing.assert_array_equal(out, whole)


def sums() -> None:
    """Sums of each dtype are those of NumPy, of halves in f32, rounded once; also of what is not finite, and into
    memory with gaps, where other workers have none.
    """
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 65504, 3e38, 1.0, 1 + 2**-8, 2**-24]
    for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "bool"):
        dtype = numpy_dtype(element_type(name))
        pairs = np.array(np.meshgrid(special, special)).reshape(2, -1)
        with np.errstate(all="ignore"):
            random = rng.uniform(-100, 100, (SIZE, 3000 - pairs.shape[1]))
            terms = [
                np.concatenate(
                    [
                        np.nan_to_num(pairs[rank % 2], posinf=7, neginf=-7) % 50
                        if dtype.kind in "iub"
                        else pairs[rank % 2],
                        random[rank],
                    ]
                ).astype(dtype)
                for rank in range(SIZE)
            ]
            wide = np.float32 if dtype.itemsize == 2 else dtype
            expected = reduce(np.add, [term.astype(wide) for term in terms]).astype(dtype)
        for few, shared in WAYS.values():
            group = join_mpi({"x": SIZE}, few=few, shared_memory=shared)
            memory = np.zeros(6000, dtype)
            out = memory[::2] if RANK == 0 else memory[:3000]
            group.allreduce(Call(ALLREDUCE, dtype, out.shape), terms[RANK], out, "sum")
            np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64), err_msg=f"{name} {few}")


def messages() -> None:
    """A large message that is taken only after a sum arrives, although its sender waits for the sum meanwhile."""
    for few, shared in WAYS.values():
        group = join_mpi({"x": SIZE}, few=few, shared_memory=shared)
        x, total = np.arange(1 << 20, dtype=np.float32), np.empty(3, np.float32)
        call, ones = Call(ALLREDUCE, total.dtype, total.shape), np.ones(3, np.float32)
        if RANK == 0:
            group.send(x, 1, 5)
        elif RANK == 1:
            got = np.empty_like(x)
            group.receive(got, 0, 5)
            np.testing.assert_array_equal(got, x)
        group.allreduce(call, ones, total, "sum")
        np.testing.assert_array_equal(total, SIZE * ones)


def sharded() -> None:
    """A tensor-parallel layer is the layer, natively and as bytecode."""
    module = parse_module(layer())
    for mode in ("native", "bytecode"):
        function = ShardedProgram(module, {"x": SIZE}, mode=mode, timeout=60)
        for n in (1, 5):
            for got, want in zip(function(*values(n)), run(module, "main", values(n)), strict=True):
                np.testing.assert_allclose(got, want, 1e-5, 1e-6)


KERNELS = """tir.prim_func @sums(%X: !tir.buffer<[6, 25], f32>, %Y: !tir.buffer<[6], f32>) {
  %c6 = arith.constant 6 : index
  %c25 = arith.constant 25 : index
  tir.for (%i, %j) in (%c6, %c25) {
    tir.block "sums" (%vi = spatial %i in %c6, %vj = reduce %j in %c25) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vj]
      %y = tir.load %Y[%vi]
      %s = arith.addf %y, %x : f32
      tir.store %s, %Y[%vi]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 25], f32, sharding<MESH: S[1]>>) -> !relax.object {
  %0, %k = relax.match_cast %x : !relax.tensor<[3 * k, 25], f32> binds [k]
  %1 = relax.match_cast %0 : !relax.tensor<[6, 25], f32>
  %2 = relax.call_tir @sums(%1) : !relax.tensor<[6], f32>
  %3 = relax.tuple(%2, %1)
  relax.return %3
}"""


def kernels() -> None:
    """A PrimFunc of tiles of different sizes, and casts, natively and as bytecode."""
    module = parse_module(KERNELS.replace("MESH", f"x = {SIZE}"))
    x = values(25)[1]
    for mode in ("native", "bytecode"):
        function = ShardedProgram(module, {"x": SIZE}, mode=mode, timeout=60)
        assert_same(function(x), run(module, "main", [x]), CLOSE, f"rank {RANK}")


HEADS = """relax.func @main[%n](%x: !relax.tensor<[1, n, 8], f32>,
    %w: !relax.tensor<[8, 20], f32, sharding<MESH: S[1]>>, %o: !relax.tensor<[20, 8], f32>) -> !relax.object {
  %0 = relax.matmul %x, %w
  %s = relax.shape [1, n, 5, 4]
  %1 = relax.reshape %0, %s
  %2 = relax.nn.attention %1, %1, %1
  %t = relax.shape [1, n, 20]
  %3 = relax.reshape %2, %t
  %4 = relax.matmul %3, %o
  %5 = relax.dist.redistribute %0 mesh = [COUNT] placement = "S[1]" axes = "x"
  %6 = relax.dist.redistribute %0 mesh = [COUNT] placement = "R" axes = "x"
  %7 = relax.tuple(%4, %5, %6)
  relax.return %7
}"""


def heads() -> None:
    """Five heads, which workers do not divide: each has whole ones, and what is gathered or moved is in their order."""
    module = parse_module(HEADS.replace("MESH", f"x = {SIZE}").replace("COUNT", str(SIZE)))
    rng = np.random.default_rng(5)
    args = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((1, 3, 8), (8, 20), (20, 8))]
    for mode in ("native", "bytecode"):
        function = ShardedProgram(module, {"x": SIZE}, mode=mode, timeout=60)
        assert_same(function(*args), run(module, "main", args), CLOSE, f"rank {RANK}")
        rows = -(-5 // SIZE) * 4
        assert [np.shape(each)[-1] for each in function.arguments(*args)[2:3]] == [max(0, min(rows, 20 - RANK * rows))]


def several_meshes() -> None:
    """Programs of different meshes are called in turn; those of one mesh have its communicators together."""
    module = parse_module(layer())
    other = parse_module(layer("y").replace("sharding<y", "sharding<x = 1: R, y"))
    first = ShardedProgram(module, {"x": SIZE}, mode="bytecode")
    second = ShardedProgram(other, {"x": 1, "y": SIZE}, mode="bytecode")
    for function in (first, second, first):
        assert_same(function(*values(3)), run(module, "main", values(3)), CLOSE, f"rank {RANK}")
    groups = [join_mpi({"x": SIZE}) for _ in range(3)]
    assert groups == [first.group] * 3
    assert join_mpi({"x": SIZE}, timeout=60) is not first.group


def models() -> None:
    """Networks by ready-made plans, natively, with the weights by name: each rank keeps its tiles."""
    mesh = {"x": SIZE}
    decoder_weights, encoder_weights = random_weights(LLAMA_SIZES), bert_weights(BERT_SIZES)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, (3, 5))
    models = (
        (decoder(LLAMA_SIZES, decoder_weights), [LLAMA, LLAMA_CACHE], llama_inputs(2, 3)),
        (sentence_embeddings(BERT_SIZES, encoder_weights), [BERT], [ids, np.ones_like(ids)]),
        (residual_network(), [data_parallel("images")], [rng.standard_normal((5, 3, 8, 8)).astype(np.float32)]),
        (mixture_of_experts(), [expert_parallel("experts.*")], [rng.standard_normal((5, 6)).astype(np.float32)]),
    )
    for module, plans, args in models:
        expected = run(module, "main", args)
        annotate(module, {"x": plans}, mesh)
        got = ShardedProgram(module, mesh, timeout=120)(*args)
        assert_same(got, expected, CLOSE, f"rank {RANK}")


def named_weights() -> None:
    """A program from text names its weights, of which each rank keeps its tile; those that do not fit are refused."""
    text = LAYER.replace("%v: !relax.tensor<[6, 25], f32, sharding<MESH: S[1]>>, ", "").replace(
        "%0 = relax.matmul %x, %v",
        """%c = relax.constant "v" : !relax.tensor<[6, 25], f32>
  %v = relax.dist.annotate_sharding %c mesh = [COUNT] placement = "S[1]" axes = "x"
  %0 = relax.matmul %x, %v""",
    )
    x, v, w = values(3)
    function = ShardedProgram(parse_module(text.replace("COUNT", str(SIZE))), {"x": SIZE}, weights={"v": v})
    expected = run(parse_module(layer()), "main", [x, v, w])
    assert_same(function(x, w), expected, CLOSE, f"rank {RANK}")
    tiles = [op.array.shape for op in function.module.walk() if isinstance(op, ConstantOp) and op.array is not None]
    assert tiles == [(6, 13 if RANK == 0 else 12)], tiles


BEGUN = """relax.func @main[%n](%x: !relax.tensor<[n, 96], f32>, %v: !relax.tensor<[96, 96], f32>,
    %y: !relax.tensor<[n, 96], f32>, %w: !relax.tensor<[96, 96], f32>) -> !relax.object {
  %0 = relax.matmul %x, %v
  %1 = relax.nn.relu %0
  %2 = relax.matmul %y, %w
  %3 = relax.nn.softmax %2
  %4 = relax.matmul %3, %w
  %5 = relax.add %1, %4
  relax.return %5
}"""


def begun() -> None:
    """A sum that begins before products that do not need it, natively and as bytecode, in every way."""
    from lowering import build

    module = parse_module(BEGUN)
    annotate(module, {"x": tensor_parallel([], ["v"])}, {"x": SIZE})
    local = shard(module)
    assert [op.name for op in local.walk() if op.name.startswith("relax.ccl.")] == [
        "relax.ccl.start",
        "relax.ccl.allreduce",
    ]
    distribution = Distribution.of(local, "main")
    machines = [VirtualMachine(build(local.clone(), mode=mode, cache=False)) for mode in ("native", "bytecode")]
    for few, shared in WAYS.values():
        join_mpi({"x": SIZE}, few=few, shared_memory=shared, timeout=60)
        for n in (1, 3, 200):  # the last one in several chunks
            rng = np.random.default_rng(n)
            args = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((n, 96), (96, 96)) * 2]
            expected = run(module, "main", args)
            mine = list(map(to_ffi, distribution.arguments(args, RANK)))
            for machine in machines:
                assert_same(to_numpy(machine["main"](*mine)), expected, CLOSE, f"rank {RANK}")


def nothing_between() -> None:
    """A group that exchanges something else, or begins again, before it has ended an exchange is told."""
    x, out = np.ones(6, np.float32), np.empty(6, np.float32)
    call, other = (Call(f"allreduce by {by}", x.dtype, x.shape) for by in ("sum", "max"))
    for few, shared in list(WAYS.values())[:2]:
        group = join_mpi({"x": SIZE}, few=few, shared_memory=shared, timeout=60)
        group.start_allreduce(call, x)
        with pytest.raises(RuntimeError, match="another exchange of the group has begun before allreduce by sum of"):
            group.start_allreduce(call, x)
        with pytest.raises(RuntimeError, match="another exchange of the group has begun before allreduce by max of"):
            group.allreduce(other, x, out, "max")
        group.allreduce(call, x, out, "sum")
        np.testing.assert_array_equal(out, SIZE * x)


PIPELINE = """relax.func @main[%n](%x: !relax.tensor<[n, 6], f32>, %v: !relax.tensor<[6, 6], f32>,
    %w: !relax.tensor<[6, 6], f32>) -> !relax.object {
  %0 = relax.matmul %x, %v
  %1 = relax.nn.relu %0
  %2 = relax.matmul %1, %w
  %3 = relax.add %2, %0
  relax.return %3
}"""


def pipeline() -> None:
    """Stages on different ranks, several calls one after the other, natively and as bytecode."""
    module = parse_module(PIPELINE)
    rng = np.random.default_rng(0)
    weights = [rng.uniform(-1, 1, (6, 6)).astype(np.float32) for _ in range(2)]
    calls = [[rng.uniform(-1, 1, (n, 6)).astype(np.float32), *weights] for n in (1, 4, 1)]
    expected = [run(module, "main", each) for each in calls]
    assign_stages(module, [["v"], ["w"]])
    for mode in ("native", "bytecode"):
        program = PipelinedProgram(module, SIZE, mode=mode, timeout=60)
        for got, want in zip(program.stream(calls), expected, strict=True):
            assert_same(got, want, CLOSE, f"rank {RANK}")


def _mixed(name: str) -> Callable[..., None]:
    """A collective: what native programs call, or on odd ranks what bytecode calls."""
    register_globals()
    natively = tvm_ffi.get_global_func(f"vm.builtin.ccl_{name}")
    return natively if RANK % 2 == 0 else BUILTINS[f"ccl_{name}"].function


def mixed() -> None:
    """Native code and bytecode take part in one collective: their digests are the same."""
    join_mpi({"x": SIZE}, timeout=60)
    for shape in ((), (0,), (3, 5), (2, 1, 20_000)):
        for dtype in (np.float32, np.int64, np.int8):
            x = np.full(shape, 1 + RANK, dtype)
            out = np.zeros_like(x)
            _mixed("allreduce")("x", 0, "sum", from_numpy(x), from_numpy(out))
            np.testing.assert_array_equal(out, np.full_like(x, SIZE * (SIZE + 1) // 2))
    whole = np.arange(3 * 7 * 5, dtype=np.int8).reshape(3, 7, 5)
    for axis in range(3):
        begin, end = tile_bounds(whole.shape[axis], SIZE, RANK)
        out = np.zeros_like(whole)
        mine = np.ascontiguousarray(np.take(whole, range(begin, end), axis))
        _mixed("allgather")("x", SIZE, axis, from_numpy(mine), from_numpy(out))
        np.testing.assert_array_equal(out, whole)


def _calls(calls: Sequence[tuple[str, Sequence[int]]]) -> None:
    """Each rank makes another call, and learns it; so do those that make the right one."""
    join_mpi({"x": SIZE}, timeout=60)
    what, shape = calls[min(RANK, len(calls) - 1)]
    x = np.ones(shape, np.float32)
    out = np.empty((SIZE * shape[0] if what == "gather" else shape[0],), np.float32)
    name, by = ("allgather", 0) if what == "gather" else ("allreduce", what)
    function = _mixed(name)
    with pytest.raises(RuntimeError, match="workers disagree: rank 0 is at"):
        function("x", 0, by, from_numpy(x), from_numpy(out))


def other_calls() -> None:
    """Workers that are at other collectives, or at one with other shapes, small or large, are told."""
    large = (300_000,)
    for first, second in combinations([("sum", (4,)), ("max", (4,)), ("gather", (4,)), ("sum", large)], 2):
        _calls([first, second])
        _calls([second, first])


def disagree() -> None:
    """Ranks with arguments of other shapes are told before data moves."""
    ShardedProgram(parse_module(layer()), {"x": SIZE}, timeout=60)(*values(1 + RANK))


def other_program() -> None:
    """Ranks with other programs are told."""
    text = layer().replace("relax.nn.relu", "relax.tanh") if RANK == 1 else layer()
    ShardedProgram(parse_module(text), {"x": SIZE}, timeout=60)


def other_mesh() -> None:
    """The mesh has another number of workers than there are processes."""
    ShardedProgram(parse_module(layer()), {"x": SIZE + 1})


def meshes_differ() -> None:
    """One rank has a mesh of other axes, of as many workers."""
    ShardedProgram(parse_module(layer()), {"x": SIZE} if RANK == 0 else {"x": SIZE, "y": 1})


def other_weights() -> None:
    """One rank has another file of weights, or other arrays."""
    text = """relax.func @main(%x: !relax.tensor<[6], f32, sharding<x = 2: S[0]>>) -> !relax.object {
      %0 = relax.constant "w" : !relax.tensor<[6], f32>
      %1 = relax.add %x, %0
      relax.return %1
    }"""
    ShardedProgram(parse_module(text), {"x": SIZE}, weights={"w": np.full(6, RANK, np.float32)})


def one_fails() -> None:
    """An exception on one rank ends all, which wait for it."""
    function = ShardedProgram(parse_module(layer()), {"x": SIZE})
    if RANK == 1:
        raise ValueError("no memory for the weights")
    function(*values(3))


def killed() -> None:
    """So does a rank that is killed."""
    function = ShardedProgram(parse_module(layer()), {"x": SIZE})
    if RANK == 1:
        os.kill(os.getpid(), 9)
    function(*values(3))


def late() -> None:
    """A rank that does not come is not waited for longer than the time-out."""
    function = ShardedProgram(parse_module(layer()), {"x": SIZE}, timeout=1)
    if RANK == 1:
        time.sleep(600)
    function(*values(3))


def _leaves(few: int, shared: bool) -> None:
    group = join_mpi({"x": SIZE}, few=few, shared_memory=shared)
    if RANK == 1:
        sys.exit(0)
    x = np.ones(3, np.float32)
    group.allreduce(Call(ALLREDUCE, x.dtype, x.shape), x, np.empty_like(x), "sum")


def leaves() -> None:
    """A rank that ends, without an error, while another one waits for it in shared memory, ends both."""
    _leaves(*WAYS["shared memory"])


def leaves_messages() -> None:
    """So does one whose messages another one waits for."""
    _leaves(*WAYS["messages"])


def leaves_collectives() -> None:
    """And one that is to come to a collective of MPI, which others learn from it."""
    _leaves(*WAYS["collectives of MPI"])


def leaves_before() -> None:
    """So does one that ends before it has joined."""
    if RANK == 1:
        sys.exit(0)
    join_mpi({"x": SIZE})


def fails_before() -> None:
    """And one that fails before."""
    if RANK == 1:
        raise ValueError("no file")
    join_mpi({"x": SIZE})


def small_model() -> None:
    """A mixture of experts, each of whose experts is on one rank."""
    module, x = mixture_of_experts(), np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    expected = run(module, "main", [x])
    annotate(module, {"x": [expert_parallel("experts.*")]}, {"x": SIZE})
    assert_same(ShardedProgram(module, {"x": SIZE}, timeout=60)(x), expected, CLOSE, f"rank {RANK}")


FAULTS = (
    leaves_before,
    fails_before,
    leaves,
    leaves_messages,
    leaves_collectives,
    disagree,
    other_program,
    other_mesh,
    meshes_differ,
    other_weights,
    one_fails,
    killed,
    late,
)
WELL = (
    collectives,
    large,
    sums,
    messages,
    begun,
    nothing_between,
    mixed,
    other_calls,
    sharded,
    kernels,
    heads,
    several_meshes,
    models,
    small_model,
    named_weights,
    pipeline,
)
CASES: dict[str, Callable[[], None]] = {each.__name__: each for each in (*WELL, *FAULTS)}

if __name__ == "__main__":
    try:
        for name in sys.argv[1].split("+"):
            CASES[name]()
    except Exception as error:
        if sys.argv[1] in ("one_fails", "fails_before"):  # scripts that do not catch it
            raise
        abort(f"{type(error).__name__}: {error}")
    print(f"rank {RANK} of {SIZE} is done")
