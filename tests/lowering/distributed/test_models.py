"""Transformers on several workers by ready-made plans: equal to the whole, with the collectives that plans promise."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from examples.models.bert import sentence_embeddings
from examples.models.llama import decoder, random_weights
from lowering.context import make_context
from lowering.distributed.lower_distributed import CutConstantsPass
from lowering.distributed.plans import (
    BERT,
    LLAMA,
    LLAMA_CACHE,
    Plan,
    annotate,
    data_parallel,
    expert_parallel,
    sequence_parallel,
    tensor_parallel,
)
from lowering.distributed.program import Distribution, shard
from lowering.distributed.report import communication
from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.workers import run_workers
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


def check(
    module: ModuleOp, plans: dict[str, Plan | list[Plan]], mesh: dict[str, int], args: list[np.ndarray]
) -> ModuleOp:
    """All workers, each with its tiles of the weights, compute what the whole does; gives the program of a worker."""
    annotated = module.clone()
    assert annotate(annotated, plans, mesh) > 0
    local = shard(annotated)
    verify_module(local)
    distribution = Distribution.of(local, "main")
    expected = run(module, "main", args)
    given = [distribution.arguments(args, rank) for rank in range(distribution.workers)]
    assert_same(distribution.whole(run_workers(local, "main", mesh, given)), expected, CLOSE, f"{mesh}")
    cut = local.clone()
    CutConstantsPass(distribution.workers - 1).apply(make_context(), cut)
    verify_module(cut)
    return cut


def exchanges(module: ModuleOp) -> list[str]:
    return [each.op.name.removeprefix("relax.ccl.") for func in communication(module) for each in func.exchanges]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_llama_decoder(workers: int):
    """Heads of queries and of the cache, and hidden features, on workers: two all-reduces in a layer.

    Of the vocabulary, which three workers do not divide, there is one more for the table, and an all-gather of logits.
    More than two workers cannot share two heads of keys, so there they have all heads of the cache.
    """
    module = decoder(LLAMA_SIZES, random_weights(LLAMA_SIZES))
    plans: dict[str, Plan | list[Plan]] = {"x": [LLAMA, LLAMA_CACHE] if workers <= 2 else LLAMA}
    for past, length in ((0, 3), (4, 1)):
        local = check(module, plans, {"x": workers}, llama_inputs(past, length))
    if workers == 2:
        assert exchanges(local) == ["allreduce", "allreduce", "allreduce", "allgather"]
        assert "tensor<[batch, past, 1, 8], f32>" in str(local)  # a worker has half of the heads of the cache
        assert 'relax.constant "model.layers.0.mlp.down_proj.weight[x = 1]" : !relax.tensor<[88, 32]' in str(local)
    last = 40 - (workers - 1) * -(-40 // workers)
    if workers > 1:
        for name, shape in (("model.embed_tokens", f"{last}, 32"), ("lm_head", f"32, {last}")):
            assert f'"{name}.weight[x = {workers - 1}]" : !relax.tensor<[{shape}], f32>' in str(local)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_bert_encoder(workers: int):
    module = sentence_embeddings(BERT_SIZES, bert_weights(BERT_SIZES))
    ids = np.random.default_rng(0).integers(0, 50, (3, 5))
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
    local = check(module, {"x": BERT}, {"x": workers}, [ids, mask])
    if workers == 2:
        assert exchanges(local) == ["allreduce", "allreduce", "allreduce"]  # one for words and positions together


def test_batches_and_heads():
    """A mesh of two axes: batches along one, heads along the other; the batch is not divided evenly."""
    module = sentence_embeddings(BERT_SIZES, bert_weights(BERT_SIZES))
    ids = np.random.default_rng(0).integers(0, 50, (3, 5))
    local = check(module, {"d": data_parallel("ids", "mask"), "t": BERT}, {"d": 2, "t": 2}, [ids, np.ones_like(ids)])
    assert exchanges(local) == ["allreduce", "allreduce", "allreduce"]


def test_logits_of_tiles_of_the_batch():
    """All workers along one axis get all logits, those along the other keep theirs."""
    module = decoder(LLAMA_SIZES, random_weights(LLAMA_SIZES))
    local = check(
        module, {"d": data_parallel("ids", "keys*", "values*"), "t": LLAMA}, {"d": 2, "t": 2}, llama_inputs(2, 1)
    )
    assert exchanges(local)[-1] == "allgather"


HEAD = """relax.func @main[%n](%x: !relax.tensor<[n, 8], f16>, %head: !relax.tensor<[8, 40], f16>) -> !relax.object {
  %0 = relax.matmul %x, %head
  %1 = relax.multiply %0, %0
  %2 = relax.argmax %1 axis = -1
  %3 = relax.max %0 axes = [1]
  RESULTS
  relax.return %4
}"""


@pytest.mark.parametrize("workers", [2, 3])
def test_what_is_found_in_logits(workers: int):
    """Positions and extrema of tiles are communicated, not the logits, unless these are needed, too."""
    rng = np.random.default_rng(0)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((3, 8), (8, 40))]
    plan = {"x": tensor_parallel([], [], heads=["head"])}
    found = check(parse_module(HEAD.replace("RESULTS", "%4 = relax.tuple(%2, %3)")), plan, {"x": workers}, args)
    assert sorted(exchanges(found)) == ["allgather", "allgather", "allreduce"]
    text = HEAD.replace("RESULTS", "%4 = relax.tuple(%0, %2, %3)").replace("argmax %1", "argmax %0")
    whole = check(parse_module(text), plan, {"x": workers}, args)
    assert exchanges(whole) == ["allgather"]


def test_sequences():
    """Where workers normalise tiles of the sequence, a reduce-scatter takes the place of an all-reduce."""
    module = sentence_embeddings(BERT_SIZES, bert_weights(BERT_SIZES))
    ids = np.random.default_rng(0).integers(0, 50, (2, 5))
    local = check(module, {"x": [BERT, sequence_parallel()]}, {"x": 2}, [ids, np.ones_like(ids)])
    assert "reduce_scatter" in exchanges(local)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_residual_network(workers: int):
    """Tiles of a batch, which workers need not divide, go through a network of convolutions without a message."""
    images = np.random.default_rng(0).standard_normal((5, 3, 8, 8)).astype(np.float32)
    local = check(residual_network(), {"x": data_parallel("images")}, {"x": workers}, [images])
    assert exchanges(local) == [] or workers == 1


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_mixture_of_experts(workers: int):
    """Workers have some experts each: with all tokens, an all-reduce; with tiles of the tokens, these go to and fro."""
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    experts = expert_parallel("experts.*")
    local = check(mixture_of_experts(), {"x": experts}, {"x": workers}, [x])
    tiles = check(mixture_of_experts(), {"x": [experts, data_parallel("x")]}, {"x": workers}, [x])
    for each in (local, tiles):
        assert f"tensor<[{4 // workers}, 6, 8], f32>" in str(each)
    if workers > 1:
        assert exchanges(local) == ["allreduce"]
        assert exchanges(tiles) == ["allgather", "all_to_all", "reduce_scatter"]


def test_a_plan_for_no_axis():
    module = decoder(LLAMA_SIZES, random_weights(LLAMA_SIZES))
    with pytest.raises(ValueError, match="expected plans for axes of the mesh x, got y"):
        annotate(module, {"y": LLAMA}, {"x": 2})
