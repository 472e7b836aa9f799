"""Whole models of small size: one artefact for every shape, against NumPy."""

import numpy as np
import pytest

from examples.generate import generate
from examples.models import bert, llama, lstm
from examples.models.reference import NumpyBert, NumpyLlama, NumpyTagger
from lowering import build
from relax_dialect.interpreter import run as interpret
from vm_dialect import VirtualMachine

BERT = bert.BertConfig(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=72, vocab_size=50,
    max_position_embeddings=40,
)  # fmt: skip
LLAMA = llama.LlamaConfig(
    hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=80, vocab_size=70
)
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_sentence_embeddings(mode):
    weights = bert.random_weights(BERT)
    module = bert.sentence_embeddings(BERT, weights)
    embed = VirtualMachine(build(module, mode=mode))["main"]
    reference = NumpyBert(BERT, weights)
    for batch, length in ((1, 1), (1, 40), (3, 17), (8, 5), (0, 4)):
        ids, mask = RNG.integers(0, BERT.vocab_size, (batch, length)), np.ones((batch, length), np.int64)
        mask[1:, length // 2 + 1 :] = 0
        expected = reference.embed_sentences(ids, mask)
        np.testing.assert_allclose(np.from_dlpack(embed(ids, mask)), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(interpret(module, "main", [ids, mask]), expected, rtol=1e-4, atol=1e-5)


def test_encoder_layers():
    weights = bert.random_weights(BERT)
    run = VirtualMachine(build(bert.encoder_layers(BERT, weights)))["main"]
    for batch, length in ((1, 1), (2, 9), (4, 33)):
        x = RNG.standard_normal((batch, length, BERT.hidden_size), dtype=np.float32)
        expected = NumpyBert(BERT, weights).encode(x, np.ones((batch, length)))
        np.testing.assert_allclose(np.from_dlpack(run(x)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_generation_with_growing_caches(mode):
    weights = llama.random_weights(LLAMA)
    step = VirtualMachine(build(llama.decoder(LLAMA, weights), mode=mode))["main"]
    reference = NumpyLlama(LLAMA, weights)
    for batch, length in ((1, 1), (2, 6), (3, 19)):
        ids = RNG.integers(0, LLAMA.vocab_size, (batch, length))
        for token, _ in zip(generate(step, LLAMA, ids), range(5), strict=False):
            np.testing.assert_array_equal(token, reference.logits(ids).argmax(-1)[:, None])
            ids = np.concatenate([ids, token], axis=1)


def test_logits_and_caches():
    weights = llama.random_weights(LLAMA)
    module = llama.decoder(LLAMA, weights)
    step = VirtualMachine(build(module))["main"]
    ids = RNG.integers(0, LLAMA.vocab_size, (2, 7))
    empty = [np.zeros((2, 0, 2, LLAMA.head_size), np.float32)] * 4
    logits, *caches = step(ids, *empty)
    np.testing.assert_allclose(np.from_dlpack(logits), NumpyLlama(LLAMA, weights).logits(ids), rtol=1e-3, atol=1e-4)
    for ours, expected in zip(caches, interpret(module, "main", [ids, *empty])[1:], strict=True):
        np.testing.assert_allclose(np.from_dlpack(ours), expected, rtol=1e-3, atol=1e-4)


LSTM = lstm.LstmConfig(vocab_size=40, embedding_size=6, units=10, tags=5)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_tagger_of_sentences_of_different_lengths(mode):
    weights = lstm.random_weights(LSTM)
    module = lstm.tagger(LSTM, weights)
    run = VirtualMachine(build(module, mode=mode))["main"]
    for batch, length in ((1, 1), (3, 7), (2, 12), (0, 3)):
        ids = RNG.integers(0, LSTM.vocab_size, (batch, length))
        lengths = RNG.integers(0, length + 1, batch)
        expected = NumpyTagger(LSTM, weights).scores(ids, lengths)
        np.testing.assert_allclose(np.from_dlpack(run(ids, lengths)), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(interpret(module, "main", [ids, lengths]), expected, rtol=1e-4, atol=1e-5)
