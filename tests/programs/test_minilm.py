"""Sentence embeddings with real weights (`make minilm`): one artefact, every number and length of sentences."""

from __future__ import annotations

import numpy as np
import pytest

from examples.minilm import SENTENCES, Tokenizer, checkpoint, load
from examples.models.bert import sentence_embeddings
from examples.models.reference import NumpyBert
from lowering import build
from vm_dialect import VirtualMachine


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_embeddings_agree_with_numpy_and_with_their_meaning(mode: str) -> None:
    folder = checkpoint()
    config, weights = load(folder)
    embed = VirtualMachine(build(sentence_embeddings(config, weights), mode=mode))["main"]
    tokenize, reference = Tokenizer(folder), NumpyBert(config, weights)
    for sentences in (SENTENCES[:1], SENTENCES[1:3], SENTENCES * 8, ("",), ("word " * 300,)):
        tokens = tokenize(*sentences)
        vectors = np.from_dlpack(embed(*tokens))
        assert np.min(np.sum(vectors * reference.embed_sentences(*tokens), -1)) > 0.9999
    vectors = np.from_dlpack(embed(*tokenize(*SENTENCES)))
    nearest = (vectors @ vectors.T - 2 * np.eye(len(SENTENCES))).argmax(-1)
    assert nearest[:4].tolist() == [1, 0, 3, 2]
