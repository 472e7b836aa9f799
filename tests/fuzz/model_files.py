"""Files of language models with changes: they are read, or refused with the errors that are documented.

A file is a GGUF file, or one of a folder of Hugging Face: the header or the tensors of `model.safetensors`, its
configuration, its tokenizer. Changes are of bytes, or of values in JSON and metadata. What is accepted has to encode,
decode and fill its template, and its model has to become a module.

`python -m tests.fuzz.model_files 10000 [SEED]` tries so many, and prints what ends in anything else.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import safetensors.numpy
import tokenizers

from lowering.generation.tokenizer import Tokenizer, tokenizer_of, tokenizer_of_folder
from relax_dialect.frontend.gguf import GGUFFile, GGUFImportError, read_file
from relax_dialect.frontend.gguf.models import model_of as model_of_file
from relax_dialect.frontend.huggingface import HuggingFaceImportError, read_folder
from relax_dialect.frontend.huggingface.families import config_of
from relax_dialect.frontend.huggingface.models import model_of
from relax_dialect.nn import Decoder, DecoderProgram
from tests.fuzz.isolation import outcome
from tests.support import decoders

NAME = "model_files"

DOCUMENTED = (GGUFImportError, HuggingFaceImportError)
"""What reading a file may raise."""

MOST_BYTES = 1 << 30
"""What reading a file of a few kilobytes may add to the memory of the process."""

Files = Mapping[str, bytes]
"""A folder, or one file: contents by name."""

_CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 64,
    "vocab_size": 32,
    "max_position_embeddings": 64,
    "rope_theta": 100.0,
    "eos_token_id": [2],
}
_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True}
_COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"a": {"format": None}},
}
_ROPE = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@cache
def samples() -> Sequence[Files]:
    """Small models: two GGUF files, with byte-level and SentencePiece's tokenizer, and folders."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        decoders.write_decoder(path / "model.gguf")
        _sentence_piece(path / "pieces.gguf")
        files = [{"model.gguf": (path / each).read_bytes()} for each in ("model.gguf", "pieces.gguf")]
    experts = {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 1}
    return (
        *files,
        _folder({**_CONFIG, "rope_scaling": {**_ROPE, "original_max_position_embeddings": 16}}, _plain, _byte_level),
        _folder({**_CONFIG, **experts, "sliding_window": 4}, _plain, _unigram),
        _folder({**_CONFIG, "quantization_config": _GPTQ}, _gptq, _word_piece),
        _folder({**_CONFIG, "quantization_config": _COMPRESSED}, _compressed, _byte_level),
    )


def _sentence_piece(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(0)
    tokens = ["<unk>", "<s>", "</s>", "<0x0A>", "\u2581", "a", "b", "ab", "\u2581a", "\u2581ab"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(number) for number in range(len(tokens))])
    writer.add_token_types([2, 3, 3, 6, 1, 1, 1, 1, 1, 4])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


_Pack = Callable[[str, np.ndarray], Mapping[str, np.ndarray]]


def _plain(name: str, array: np.ndarray) -> Mapping[str, np.ndarray]:
    """A weight; those of experts by number."""
    if array.ndim < 3:
        return {name: array}
    return {name.replace(".experts.", f".experts.{number}."): each for number, each in enumerate(array)}


def _gptq(name: str, array: np.ndarray) -> Mapping[str, np.ndarray]:
    if "_proj" not in name:
        return {name: array}
    owner, (outputs, inputs) = name.removesuffix(".weight"), array.shape
    return {
        f"{owner}.qweight": np.full((inputs // 8, outputs), 0x12345678, np.int32),
        f"{owner}.qzeros": np.full((inputs // 32, outputs // 8), 0x77777777, np.int32),
        f"{owner}.scales": np.full((inputs // 32, outputs), 0.01, np.float16),
        f"{owner}.g_idx": np.arange(inputs, dtype=np.int32) // 32,
    }


def _compressed(name: str, array: np.ndarray) -> Mapping[str, np.ndarray]:
    if "_proj" not in name:
        return {name: array}
    owner, (outputs, inputs) = name.removesuffix(".weight"), array.shape
    return {
        f"{owner}.weight_packed": np.full((outputs, inputs // 8), 0x12345678, np.int32),
        f"{owner}.weight_scale": np.full((outputs, inputs // 32), 0.01, np.float16),
        f"{owner}.weight_shape": np.array([outputs, inputs]),
        f"{owner}.weight_zero_point": np.full((outputs // 8, inputs // 32), 0x77777777, np.int32),
    }


def _folder(config: Mapping[str, Any], pack: _Pack, tokenizer: Callable[[], tokenizers.Tokenizer]) -> Files:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        (path / "config.json").write_text(json.dumps(config))
        safetensors.numpy.save_file({}, path / "model.safetensors")
        plain = {key: each for key, each in config.items() if key != "quantization_config"}
        (path / "config.json").write_text(json.dumps(plain))
        weights = decoders.random_weights(Decoder(config_of(read_folder(path))))
    tensors = {key: each for name, array in weights.items() for key, each in pack(f"model.{name}", array).items()}
    return {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": safetensors.numpy.save(
            {name: np.ascontiguousarray(each) for name, each in tensors.items()}
        ),
        "tokenizer.json": tokenizer().to_str().encode(),
        "tokenizer_config.json": json.dumps(
            {
                "bos_token": {"content": "<s>"},
                "eos_token": "</s>",
                "chat_template": "{{ bos_token }}{% for each in messages %}{{ each['content'] }}{% endfor %}",
            }
        ).encode(),
        "generation_config.json": b'{"eos_token_id": [2]}',
    }


def _byte_level() -> tokenizers.Tokenizer:
    characters = {chr(97 + number): number + 3 for number in range(26)} | {"\u0120": 29}
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **characters, "ab": 30, "abc": 31}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("a", "b"), ("ab", "c")]))
    made.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC(), tokenizers.normalizers.Strip()])
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return made


def _unigram() -> tokenizers.Tokenizer:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("\u2581", -1.0), ("a", -2.0), ("b", -2.5), ("ab", -1.5)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0, byte_fallback=False))
    made.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"(a|b)+|\s+"), "isolated")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, tokenizers.pre_tokenizers.Metaspace()])
    made.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.Replace("\u2581", " "), tokenizers.decoders.Strip(" ", 1, 0)]
    )
    made.enable_padding(length=8)
    made.enable_truncation(max_length=4)
    return made


def _word_piece() -> tokenizers.Tokenizer:
    vocabulary = {"[UNK]": 0, "<s>": 1, "</s>": 2, "a": 3, "b": 4, "##b": 5, "##c": 6}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    made.post_processor = tokenizers.processors.BertProcessing(("</s>", 2), ("<s>", 1))
    return made


_NUMBERS = (0, 1, 255, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1)

_VALUES: Sequence[Any] = (
    *(None, True, False, "", "a", "<s>", "x" * 10_000, [], {}, [[]], [[["a"]]], ["a", "b"], {"a": {"a": 1}}),
    *(-1, 0, 1, 2, 3, 7, 31, 33, 255, 1 << 31, 1 << 40, 1 << 63, 1 << 80, 0.5, -2.5, 1e308, float("inf"), float("nan")),
)


def _changed_bytes(data: bytes, source: random.Random) -> bytes:
    """A few bits, a number, the end, or something twice; mostly in the first two thousand bytes."""
    changed, room = bytearray(data), min(len(data), source.choice((200, 2000, 2000, len(data))))
    match source.randrange(4):
        case 0:
            for _ in range(source.choice((1, 1, 3, 8))):
                changed[source.randrange(room)] ^= 1 << source.randrange(8)
        case 1:
            at = source.randrange(room)
            changed[at : at + 8] = source.choice(_NUMBERS).to_bytes(8, "little")
        case 2:
            del changed[source.randrange(len(data)) :]
        case _:
            at = source.randrange(room)
            changed[at:at] = changed[at : at + source.randrange(64)]
    return bytes(changed)


def _changed_json(text: bytes, source: random.Random) -> bytes:
    """One or two values are others, or missing, or there twice under another name."""
    value = json.loads(text)
    for _ in range(source.choice((1, 1, 2))):
        spots = list(_spots(value))
        if not spots:
            break
        container, key = source.choice(spots)
        match source.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[source.choice(("a", "weight", "bits", f"{key}x", f"{key}.weight"))] = container[key]
            case 2:
                other, name = source.choice(spots)
                container[key] = json.loads(json.dumps(other[name]))
            case _:
                container[key] = source.choice(_VALUES)
    return json.dumps(value).encode()


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value inside of others: what it is in, and under which key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _spots(value[key])


def _changed_header(data: bytes, source: random.Random) -> bytes:
    """Safetensors with another header, of which the length is right."""
    size = int.from_bytes(data[:8], "little")
    header = _changed_json(data[8 : 8 + size], source)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def changed(files: Files, source: random.Random) -> Files:
    """The files with one that is another."""
    name = source.choice([each for each in files if each != "generation_config.json" or source.random() < 0.2])
    data, by_bytes = files[name], source.random() < 0.4
    if name.endswith(".gguf"):  # or its metadata are (`changed_metadata`)
        return {**files, name: _changed_bytes(data, source) if by_bytes else data}
    if by_bytes:
        return {**files, name: _changed_bytes(data, source)}
    return {**files, name: (_changed_header if name.endswith("tensors") else _changed_json)(data, source)}


_METADATA: Sequence[Any] = (
    *(value for value in _VALUES if isinstance(value, bool | int | float | str) and value != 1 << 80),
    *(["a"] * count for count in (0, 1, 100)),
    *(np.zeros(count, dtype) for count in (0, 1, 10, 96) for dtype in (np.int32, np.float32, np.uint64, np.bool_)),
    np.full(10, np.nan, np.float32),
    [["a"], ["b"]],
)
"""Values of the kinds that GGUF has."""


def changed_metadata(file: GGUFFile, source: random.Random) -> GGUFFile:
    """A GGUF file with one or two entries of metadata that are others, or missing."""
    metadata = dict(file.metadata)
    for _ in range(source.choice((1, 1, 2))):
        key = source.choice([*metadata, "llama.rope.scaling.type", "llama.expert_count", "general.alignment"])
        match source.randrange(4):
            case 0:
                metadata.pop(key, None)
            case 1:
                metadata[key] = metadata[source.choice(list(metadata))]
            case _:
                metadata[key] = source.choice(_METADATA)
    return replace(file, metadata=metadata)


def read(path: Path, *, whole: bool, source: random.Random) -> None:
    """Reads a model and its tokenizer, and with `whole` makes the module of the model."""
    if (path / "model.gguf").exists():
        file = read_file(path / "model.gguf")
        file = changed_metadata(file, source) if source.random() < 0.5 else file
        readers = (lambda: tokenizer_of(file), lambda: model_of_file(file))
    else:
        folder = read_folder(path)
        readers = (lambda: tokenizer_of_folder(folder), lambda: model_of(folder))
    with suppress(*DOCUMENTED):
        tokenizer = readers[0]()
        assert isinstance(tokenizer, Tokenizer)
        _use(tokenizer)
    with suppress(*DOCUMENTED):
        model = readers[1]()
        assert isinstance(model, Decoder)
        if whole:
            DecoderProgram(model).module()


def _use(tokenizer: Tokenizer) -> None:
    """What a program does with a tokenizer: it may refuse texts."""
    with suppress(ValueError):
        tokens = tokenizer.encode("ab abc\n\u00fc<|end|></s>")
        assert isinstance(tokenizer.decode([*tokens, 0, 1, 2]), str)
        step = tokenizer.stream()
        for token in tokens:
            assert isinstance(step(token), str)
    with suppress(ValueError):
        assert isinstance(tokenizer.chat([{"role": "user", "content": "ab"}]), str)


def run(seed: int) -> None:
    """Raises if a file that is changed by a seed ends in anything but what is documented."""
    source = random.Random(seed)
    files = changed(samples()[seed % len(samples())], source)
    with tempfile.TemporaryDirectory() as name:
        for each, data in files.items():
            (Path(name) / each).write_bytes(data)
        with suppress(*DOCUMENTED):
            read(Path(name), whole=seed % 10 == 0, source=source)


def failures(seeds: Sequence[int], limit: float = 120) -> Iterator[str]:
    """What is found, each batch in a process of its own with bounded memory."""
    samples()
    for first in range(0, len(seeds), 100):
        batch = seeds[first : first + 100]
        if outcome(lambda batch=batch: _bounded(batch), limit) is not None:
            for seed in batch:
                if (found := outcome(lambda seed=seed: _bounded([seed]), limit)) is not None:
                    yield f"{seed}: {found}"


def _bounded(seeds: Sequence[int]) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
    for seed in seeds:
        run(seed)


if __name__ == "__main__":
    begin = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for line in failures(range(begin, begin + int(sys.argv[1]))):
        print(line, flush=True)
