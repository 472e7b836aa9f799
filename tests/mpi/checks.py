"""What every rank of `test_mpi.py` runs: `mpiexec -n 4 python tests/mpi/checks.py CASE+CASE`."""

import os
import sys
import time
from collections.abc import Callable
from functools import reduce

import numpy as np

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
)
from lowering.distributed.program import PipelinedProgram, ShardedProgram
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.workers import run_workers
from relax_dialect.ops.values import ConstantOp
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
from vm_dialect.mpi import MPI, abort, join_mpi
from vm_dialect.tensors import from_numpy, to_numpy

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


def collectives() -> None:
    """Every collective gives what the interpreter gives, natively and as bytecode; on four workers with every dtype.

    Bytecode uses the collectives of MPI, as many workers do, natively a few workers send each other what they exchange.
    """
    from lowering import build

    for dtype in DTYPES if SIZE == 4 else DTYPES[:1]:
        module = parse_module("\n".join(program(name, dtype, MESH) for name in COLLECTIVES))
        modes = ("native", "bytecode")
        machines = [VirtualMachine(build(module.clone(), mode=mode, cache=False)) for mode in modes]
        for name in COLLECTIVES:
            given = [arguments(name, dtype, MESH, rank) for rank in range(SIZE)]
            expected = run_workers(module, name, MESH, given)[RANK]
            for machine, few in zip(machines, (8, 1), strict=True):
                join_mpi(MESH, few=few)
                mine = [from_numpy(each) if isinstance(each, np.ndarray) else each for each in given[RANK]]
                np.testing.assert_array_equal(to_numpy(machine[name](*mine)), expected, err_msg=f"{name} {dtype}")


def large() -> None:
    """Of a large array each of a few workers adds up a tile; the greatest element of many is NaN where one is."""
    terms = [np.arange(40_001, dtype=np.float32) / (1 + rank) for rank in range(SIZE)]
    terms[-1][7] = np.nan
    for few in (8, 1):
        for by, expected in (("sum", np.add), ("max", np.maximum)):
            out = np.empty_like(terms[0])
            join_mpi({"x": SIZE}, few=few).allreduce((by, out.dtype, out.shape), terms[RANK], out, by)
            np.testing.assert_allclose(out, reduce(expected, terms), 1e-6)


def sharded() -> None:
    """A tensor-parallel layer is the layer, natively and as bytecode."""
    module = parse_module(layer())
    for mode in ("native", "bytecode"):
        function = ShardedProgram(module, {"x": SIZE}, mode=mode, timeout=60)
        for n in (1, 5):
            for got, want in zip(function(*values(n)), run(module, "main", values(n)), strict=True):
                np.testing.assert_allclose(got, want, 1e-5, 1e-6)


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


FAULTS = (disagree, other_program, other_mesh, one_fails, killed, late)
FAULTS = (disagree, other_program, other_mesh, one_fails, killed, late)
CASES: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (collectives, large, sharded, models, named_weights, pipeline, *FAULTS)
}

if __name__ == "__main__":
    try:
        for name in sys.argv[1].split("+"):
            CASES[name]()
    except Exception as error:
        if sys.argv[1] == "one_fails":  # a script that does not catch it
            raise
        abort(f"{type(error).__name__}: {error}")
    print(f"rank {RANK} of {SIZE} is done")
