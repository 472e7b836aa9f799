"""Weights in files: a worker reads its tiles of them, and no more."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from safetensors.numpy import save_file
from xdsl.utils.exceptions import DiagnosticException

from lowering.compiler.program_cache import ModuleDigest
from lowering.compiler.weight_files import load_weights
from lowering.context import make_context
from lowering.distributed.lower_distributed import CutConstantsPass
from lowering.distributed.plans import LLAMA_PACKED, LLAMA_POOLS, annotate
from lowering.distributed.program import Distribution, shard
from lowering.distributed.report import communication
from lowering.parsing import parse_module
from lowering.relax.functions.inline_functions import InlineFunctionsPass
from relax_dialect.frontend.gguf import read_file
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.interpreter import run
from relax_dialect.interpreter.workers import run_workers
from relax_dialect.nn import CacheFormat, DecoderProgram
from relax_dialect.ops.collective import AllGatherOp
from relax_dialect.ops.values import ConstantOp
from tests.lowering.distributed.support import run_sharded
from tests.support import decoders

ROWS, COLUMNS = 2048, 2048
PROGRAM = f"""
relax.func @main(%x: !relax.tensor<[2, {ROWS}], f32>) -> !relax.object {{
  %0 = relax.constant "w" : !relax.tensor<[{ROWS}, {COLUMNS}], f32>
  %w = relax.dist.annotate_sharding %0 mesh = [4] placement = "S[0]" axes = "x"
  %1 = relax.matmul %x, %w
  relax.return %1
}}
"""


def resident(path: Path) -> int:
    """The bytes of a file that this process has in its memory by mapping it."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    starts = [at for at, line in enumerate(lines) if line.endswith(str(path))]
    sizes = [next(line for line in lines[at:] if line.startswith("Rss:")).split()[1] for at in starts]
    return 1024 * sum(map(int, sizes))


@pytest.mark.parametrize("rank", [0, 3])
def test_a_worker_reads_its_tiles(tmp_path: Path, rank: int):
    path = tmp_path / "weights.safetensors"
    weight = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    save_file({"w": weight, "other": weight[:1]}, path)
    module = parse_module(PROGRAM)
    load_weights(module, path, mapped=True)
    digest = ModuleDigest(module, sampled=True).digest
    local = shard(module)
    CutConstantsPass(rank).apply(make_context(), local)
    (tile,) = (op.array for op in local.walk() if isinstance(op, ConstantOp) and op.weight_name == f"w[x = {rank}]")
    np.testing.assert_array_equal(tile, weight[rank * ROWS // 4 : (rank + 1) * ROWS // 4])
    assert weight.nbytes // 5 < resident(path) < weight.nbytes // 2
    assert digest != ModuleDigest(parse_module(PROGRAM), sampled=True).digest


def test_mapped_weights_are_those_of_the_file(tmp_path: Path):
    """Also those that are not aligned there, and those without elements; nobody may write to them."""
    arrays = {"a": np.ones(3, np.int8), "b": np.arange(4, dtype=np.float64), "c": np.zeros((0, 2), np.float16)}
    save_file(arrays, tmp_path / "w.safetensors")
    types = {"a": "[3], i8", "b": "[4], f64", "c": "[0, 2], f16"}
    body = "\n".join(f'  %{name} = relax.constant "{name}" : !relax.tensor<{info}>' for name, info in types.items())
    module = parse_module(
        f"relax.func @main() -> !relax.object {{\n{body}\n  %t = relax.tuple(%a, %b, %c)\n  relax.return %t\n}}"
    )
    load_weights(module, tmp_path / "w.safetensors", mapped=True)
    for op in module.walk():
        if isinstance(op, ConstantOp):
            assert op.array is not None
            assert not op.array.flags.writeable
            np.testing.assert_array_equal(op.array, arrays[str(op.weight_name)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("workers", "inlined", "architecture"),
    [(2, False, "llama"), (4, True, "llama"), (3, False, "llama"), (2, False, "gpt-oss"), (3, False, "qwen2moe")],
)
def test_packed_weights_of_a_decoder(tmp_path: Path, workers: int, inlined: bool, architecture: str):
    """From a GGUF file: no worker gathers weights, also of matrices with three blocks of inputs, of which one worker
    has two, and of stacked experts. Layers may be functions that are called with their weights.
    """
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path, architecture, GGMLQuantizationType.Q8_0, tied=True, bias=False)
    program = DecoderProgram(model_of(read_file(path)), functions=("every",))
    module = program.module()
    if inlined:
        InlineFunctionsPass().apply(make_context(), module)
    ids = np.array([3, 1, 4, 1, 5])

    def arguments() -> list[object]:
        return [ids, *decoders.Caches(program, 8, fill=np.nan).arguments(0)]

    expected = np.asarray(run(module, "every", arguments()))
    assert annotate(module, {"x": LLAMA_PACKED}, {"x": workers})
    local = shard(module)
    np.testing.assert_allclose(np.asarray(run_sharded(local, "every", arguments())), expected, 1e-3, 1e-4)
    exchanges = [each for function in communication(local) for each in function.exchanges]
    gathered = [each.op for each in exchanges if isinstance(each.op, AllGatherOp)]
    assert not any("ui8" in str(op.x.type) for op in gathered)
    if architecture != "llama":  # a worker has its outputs of all experts
        rows = -(-decoders.INNER // workers)
        assert f"tensor<[{decoders.EXPERTS}, {rows}, 68], ui8>" in str(local)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("workers", "cache_format"), [(2, "f32"), (2, "q8_0"), (4, "f32")])
def test_workers_have_their_heads_of_a_cache(tmp_path: Path, workers: int, cache_format: CacheFormat):
    """What a call writes there the next one reads. Where workers do not divide the heads, each has all."""
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path, "llama", GGMLQuantizationType.Q8_0, tied=True, bias=False)
    program = DecoderProgram(model_of(read_file(path)), cache_format, functions=("every",))
    plans = [LLAMA_PACKED] if decoders.KV_HEADS % workers else [LLAMA_PACKED, LLAMA_POOLS]
    module = program.module()
    annotate(module, {"x": plans}, {"x": workers})
    local = shard(module)
    sent = [str(each.sent.bytes) for function in communication(local) for each in function.exchanges]
    assert not any("pool" in each for each in sent), "nobody gathers the cache"
    distribution, ids = Distribution.of(local, "every"), np.array([3, 1, 4, 1, 5])
    whole, kept = decoders.Caches(program, 8), decoders.Caches(program, 8)
    each = [distribution.arguments([ids, *kept.arguments(0)], rank) for rank in range(workers)]
    tiles = [given[-len(kept.pools) :] for given in each]
    for past, new in ((0, ids[:3]), (3, ids[3:])):
        expected = np.asarray(run(program.module(), "every", [new, *whole.arguments(past)]))
        numbers = frozenset(range(3, 3 + len(kept.pools)))
        given = [
            distribution.arguments([new, past, kept.tables[0], *tiles[rank]], rank, numbers) for rank in range(workers)
        ]
        found = distribution.whole(run_workers(local, "every", distribution.mesh, given))
        np.testing.assert_allclose(np.asarray(found), expected, 1e-3, 1e-4)


def test_what_is_written_in_place_is_not_moved():
    module = parse_module("""
    tir.prim_func @halve[%n](%x: !tir.buffer<[n], f32>) {
      %c2 = arith.constant 2 : index
      tir.for (%i) in (%c2) {
        tir.block "halve" (%vi = spatial %i in %c2) {
          %0 = tir.load %x[%vi]
          %1 = arith.addf %0, %0 : f32
          tir.store %1, %x[%vi]
        }
      }
    }
    relax.func @main[%n](%x: !relax.tensor<[n], f32, sharding<x = 2: S[0]>>) -> !relax.object impure {
      %0 = relax.call_tir_inplace @halve(%x) inplace [0] : !relax.tensor<[n], f32>
      relax.return %0
    }
    """)
    with pytest.raises(DiagnosticException, match="writes in place into a tensor of which workers have tiles"):
        shard(module)
