"""Generation with a small random model: tokens, texts, templates, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from lowering.generation.cache import CachedSequence
from lowering.generation.language_model import LanguageModel, _program_of, _Text
from lowering.generation.sampling import Draft, PromptLookup, Sampling
from lowering.generation.tokenizer import SPLITS, tokenizer_of, tokenizer_of_folder
from lowering.kernels.gemm.quantized_rows import multiplies_int16
from lowering.llvm.code_cache import CodeCache
from relax_dialect.frontend.gguf import GGUFImportError, read_file
from relax_dialect.frontend.huggingface import HuggingFaceImportError, read_folder
from relax_dialect.frontend.huggingface.families import config_of
from relax_dialect.frontend.huggingface.models import model_of
from relax_dialect.nn import Decoder
from tests.support import decoders
from tests.support.decoders import VOCABULARY
from tir_dialect.block_arrays import BlockArray
from tir_dialect.target import Target
from xdsl_relax.cli.relax_run import main

CONTEXT = 24


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("model") / "model.gguf"
    decoders.write_decoder(found)
    return found


@pytest.fixture(scope="module")
def model(path: Path) -> LanguageModel:
    return LanguageModel.load(path, context=CONTEXT)


@pytest.fixture(scope="module")
def several(path: Path) -> LanguageModel:
    return LanguageModel.load(path, context=CONTEXT, sequences=3)


def test_greedy_tokens_are_those_of_numpy_until_the_context_is_full(model: LanguageModel, path: Path):
    file = read_file(path)
    prompt = model.tokenizer.encode("abc de")
    found = list(model.tokens(prompt))
    assert len(prompt) + len(found) == CONTEXT + 1
    sequence = np.array([*prompt, *found])
    logits = decoders.logits_of(file, sequence[:-1])
    assert logits.argmax(-1)[len(prompt) - 1 :].tolist() == found
    assert list(model.tokens(prompt)) == found, "a second text depends on the first"


def test_logits_have_the_pages_of_a_text_that_has_ended(path: Path):
    model, tokens = LanguageModel.load(path, context=128), [*range(5, 5 + VOCABULARY // 2)] * 20
    before = model.logits(tokens[:100])
    assert len(list(model.tokens(tokens[:20]))) == 109  # until the context is full
    np.testing.assert_array_equal(model.logits(tokens[:100]), before)


def test_sampling_is_repeatable(model: LanguageModel):
    def tokens(seed: int) -> list[int]:
        return list(model.tokens([5, 6], Sampling(temperature=3.0, top_k=50, top_p=0.99, seed=seed)))

    assert tokens(1) == tokens(1) != tokens(2)


def test_text_ends_at_a_stop_string(model: LanguageModel):
    shown: list[str] = []
    whole = model.generate("ab", max_tokens=12)
    assert len(whole.text) >= 6
    stop = whole.text[3:5]
    cut = model.generate("ab", max_tokens=12, stop=[stop], show=shown.append)
    assert cut.text == whole.text[: whole.text.find(stop)] == "".join(shown)
    assert "tokens/s" in cut.summary()
    assert model.generate("ab", max_tokens=3).tokens == whole.tokens[:3]


def test_what_may_begin_a_stop_string_is_held_back():
    text = _Text(["END", "NDX"])
    assert text.add("abE") == ("ab", False)
    assert text.add("Nothing E") == ("ENothing ", False)
    assert text.add("NDX") == ("", True)
    assert text.rest() == ""
    assert text.text == "abENothing "
    other = _Text(["xyz"])
    assert (other.add("axy"), other.rest(), other.text) == (("a", False), "xy", "axy")


def _first(model: LanguageModel, prompt: list[int]) -> int:
    return next(iter(model.tokens(prompt)))


def test_what_prompts_have_in_common_is_read_once(path: Path, model: LanguageModel, monkeypatch: pytest.MonkeyPatch):
    fresh = LanguageModel.load(path, context=CONTEXT)
    read: list[int] = []
    begin = fresh.cache.begin_forward

    def count(sequence: CachedSequence, tokens: int) -> None:
        read.append(tokens)
        begin(sequence, tokens)

    monkeypatch.setattr(fresh.cache, "begin_forward", count)
    list(zip(range(3), fresh.tokens([5, 6, 7, 8]), strict=False))
    for prompt, expected in (([5, 6, 7, 8, 9], 1), ([5, 6, 9], 1), ([5, 6, 9], 1), ([1], 1), ([2, 3], 2)):
        del read[:]
        assert _first(fresh, prompt) == _first(model, prompt)
        assert read == [expected]


PROMPTS = ("ab", "abc de", "xyz", "hello there", "q")


def test_several_texts_at_once_are_those_of_single_runs(several: LanguageModel):
    free = several.cache.free_pages
    for sampling in (Sampling(), Sampling(1.0, top_k=20, repetition_penalty=1.3, seed=3)):
        alone = [several.generate(prompt, max_tokens=9, sampling=sampling).text for prompt in PROMPTS]
        together = several.generate_all(PROMPTS, max_tokens=9, sampling=sampling)
        assert [made.text for made in together] == alone
    # Streams that are advanced in turns share the batch, too, and one that is left ends.
    streams = [several.stream(prompt, max_tokens=9) for prompt in PROMPTS]
    assert all(next(stream) for stream in streams)
    streams.pop().close()
    rest = [list(stream) for stream in streams]
    assert all(rest)
    assert not several._scheduler._active
    for sequence in several._scheduler._idle:
        several.cache.remove_sequence(sequence)
    several._scheduler._idle.clear()
    assert several.cache.free_pages == free


def test_one_text_of_a_batch_may_have_a_mask_or_fail(several: LanguageModel):
    def forbid(before: Sequence[int], logits: np.ndarray) -> None:
        logits[: VOCABULARY // 2] = -np.inf

    plain = several.generate("ab", max_tokens=6).text
    masked = several.generate("abc", max_tokens=6, mask=forbid).tokens
    streams = several.stream("ab", max_tokens=6), several.stream("abc", max_tokens=6, mask=forbid)
    failing = several.stream("a", mask=lambda before, logits: logits.fill(-np.inf))
    first, _ = (next(stream) for stream in streams)
    with pytest.raises(ValueError, match="the mask allows no token"):
        next(failing)
    assert first + "".join(streams[0]) == plain
    assert min(masked) >= VOCABULARY // 2
    assert several.generate("abc", max_tokens=6, mask=forbid).tokens == masked


class _Known(PromptLookup):
    """Guesses what follows, and something else at every third token."""

    def __init__(self, text: Sequence[int]):
        super().__init__()
        self._text = text

    def guess(self, tokens: Sequence[int], most: int) -> list[int]:
        following = self._text[len(tokens) : len(tokens) + min(most, 4)]
        return [token if (len(tokens) + at) % 3 else 7 for at, token in enumerate(following)]


def test_guessed_tokens_change_nothing(model: LanguageModel, several: LanguageModel):
    prompt = [5, 6, 7]
    whole = [*prompt, *model.tokens(prompt)]
    known = _Known(whole)
    assert list(several.tokens(prompt, speculation=known)) == whole[3:]
    assert 0 < known.right < known.guessed
    draft = Draft(model.likeliest)
    assert list(several.tokens(prompt, speculation=draft)) == whole[3:]
    assert draft.right == draft.guessed > 9, "an equal model is right"
    text = "abc abc abc"
    expected = several.generate(text, max_tokens=8).tokens
    for other in ("prompt", model):
        assert several.generate(text, max_tokens=8, speculate=other).tokens == expected
    lookup = PromptLookup()
    assert lookup.guess([1, 2, 3, 4, 9, 2, 3], 3) == [4, 9, 2]
    assert lookup.guess([1, 2, 3, 4, 2, 3], 1) == [4]
    assert lookup.guess([1, 2, 3], 5) == lookup.guess([], 5) == []
    with pytest.raises(ValueError, match="only where the likeliest one is taken"):
        model.generate(text, sampling=Sampling(1.0), speculate="prompt")
    with pytest.raises(ValueError, match="expected another model with the same tokens"):
        model.generate(text, speculate=model)


def test_a_mask_forbids_tokens(model: LanguageModel):
    usual = list(zip(range(6), model.tokens([5, 6]), strict=False))
    forbidden = {token for _, token in usual}
    seen: list[list[int]] = []

    def mask(before: Sequence[int], logits: np.ndarray) -> None:
        seen.append(list(before))
        logits[list(forbidden)] = -np.inf

    made = model.generate([5, 6], max_tokens=4, mask=mask)
    assert not forbidden & set(made.tokens)
    assert seen[-1] == [5, 6, *made.tokens[: len(seen) - 1]]
    with pytest.raises(ValueError, match="the mask allows no token"):
        model.generate([5, 6], mask=lambda before, logits: logits.fill(-np.inf))


def test_pieces_of_a_stream_are_the_text(model: LanguageModel):
    pieces = list(model.stream("ab", max_tokens=9))
    assert "".join(pieces) == model.generate("ab", max_tokens=9).text
    assert len(pieces) > 3


def test_templates(model: LanguageModel):
    text = model.tokenizer.chat([{"role": "user", "content": "hi"}])
    assert text == "<|start|>user:hi<|end|><|start|>assistant:"
    tokens = model.tokenizer.encode(text)
    assert tokens[0] == tokens.index(1) + 1
    assert tokens.count(0) == 1
    assert model.tokenizer.decode(tokens) == "user:hiassistant:"
    assert model.chat([{"role": "user", "content": "hi"}], max_tokens=2).prompt == tokens


def test_tokens_of_texts(model: LanguageModel):
    tokenizer = model.tokenizer
    assert len(tokenizer.encode("abcab")) == 2
    assert tokenizer.decode(tokenizer.encode("a b\nabc")) == "a b\nabc"
    stream = tokenizer.stream()
    assert "".join(stream(token) for token in tokenizer.encode("abc ab<|end|>")) == "abc ab"


def test_what_is_refused(model: LanguageModel, path: Path):
    with pytest.raises(ValueError, match="the prompt has 24 tokens, and there is room for 24"):
        next(model.tokens([5] * CONTEXT))
    with pytest.raises(ValueError, match="at least one token"):
        next(model.tokens([]))
    with pytest.raises(ValueError, match="expected tokens from 0 to 95"):
        next(model.tokens([96]))
    with pytest.raises(ValueError, match="expected tokens from 0 to 95"):
        next(model.tokens([-1]))
    with pytest.raises(ValueError, match="expected a context from 1 to 128 tokens, got 129"):
        LanguageModel.load(path, context=129)
    for wrong in ({"temperature": -1.0}, {"temperature": float("nan")}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 2.0}):
        with pytest.raises(ValueError, match="expected a"):
            Sampling(**wrong)


def _tokenizer(path: Path, **changes: object) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(str(changes.get("model", "gpt2")))
    writer.add_tokenizer_pre(str(changes.get("pre", "qwen2")))
    writer.add_token_list(changes.get("tokens", ["a", "b", "ab"]))
    writer.add_token_merges(changes.get("merges", ["a b"]))
    writer.add_eos_token_id(changes.get("eos", 0))
    if "template" in changes:
        writer.add_chat_template(str(changes["template"]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def _sentence_piece(path: Path, *, prefix: bool = True, scores: int | None = None) -> Path:
    """A vocabulary as SentencePiece makes one: control tokens, bytes, words by falling scores."""
    words = ["\u2581a", "bc", "ca", "abc", "\u2581abc", "\u2581", "a", "b", "c", "\n\n"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [float(-number) for number in range(len(words))][:scores])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * 9 + [4])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if not prefix:
        writer.add_add_space_prefix(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_tokens_of_sentence_piece(tmp_path: Path):
    found = tokenizer_of(read_file(_sentence_piece(tmp_path / "model.gguf")))
    named = found.tokenizer.id_to_token
    cases = {
        "abc abc": ["<s>", "\u2581abc", "\u2581abc"],
        "bca": ["<s>", "\u2581", "bc", "a"],  # the higher score first: not b, ca
        "a\u00e9</s>": ["<s>", "\u2581a", "<0xC3>", "<0xA9>", "</s>"],
        "a\n\n\n": ["<s>", "\u2581a", "\n\n", "\u2581", "<0x0A>"],
    }
    for text, expected in cases.items():
        tokens = found.encode(text)
        assert [named(each) for each in tokens] == expected
    tokens = found.encode("abc \u00e9 abc")
    assert found.decode(tokens) == "abc \u00e9 abc"
    add = found.stream()
    assert "".join(map(add, tokens[1:])) == "abc \u00e9 abc"
    assert found.ends == {2}
    cache = CodeCache(tmp_path / "cache")
    for _ in range(2):
        again = tokenizer_of(read_file(tmp_path / "model.gguf"), cache)
        assert [again.encode(text) for text in cases] == [found.encode(text) for text in cases]
    without = tokenizer_of(read_file(_sentence_piece(tmp_path / "plain.gguf", prefix=False)), cache)
    assert [named(each) for each in without.encode("a a")] == ["<s>", "a", "\u2581a"]
    with pytest.raises(GGUFImportError, match=r"tokenizer.ggml.scores expected 269 numbers"):
        tokenizer_of(read_file(_sentence_piece(tmp_path / "short.gguf", scores=4)))
    file = read_file(tmp_path / "plain.gguf")
    tokens = file.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    longer = {**file.metadata, "tokenizer.ggml.tokens": [*tokens[:-1], "a" * 1025]}
    with pytest.raises(GGUFImportError, match="expected tokens of at most 1024 characters, got 1025"):
        tokenizer_of(replace(file, metadata=longer))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-2", "I|'|VE| don|'t| HelloWorld| 12345| x|=+=|\n\n |\u00a0|a|/|b|//|\n|\u00c4\u00e9"),
        ("smollm", "I|'|VE| don|'t| HelloWorld| |1|2|3|4|5| x|=+=|\n\n |\u00a0|a|/|b|//|\n|\u00c4\u00e9"),
        ("falcon", "I|'|VE| don|'|t| HelloWorld| |123|45| x|=+=|\n\n |\u00a0|a|/|b|//|\n|\u00c4\u00e9"),
        ("qwen2", "I|'VE| don|'t| HelloWorld| |1|2|3|4|5| x|=+=\n\n| |\u00a0a|/b|//\n|\u00c4\u00e9"),
        ("dbrx", "I|'VE| don|'t| HelloWorld| |123|45| x|=+=\n\n| |\u00a0a|/b|//\n|\u00c4\u00e9"),
        ("gpt-4o", "I'VE| don't| Hello|World| |123|45| x|=+=\n\n| |\u00a0a|/b|//\n|\u00c4\u00e9"),
        ("tekken", "I|'VE| don|'t| Hello|World| |1|2|3|4|5| x|=+=\n\n| |\u00a0a|/b|//\n|\u00c4\u00e9"),
    ],
)
def test_texts_are_split(name: str, expected: str):
    text = expected.replace("|", "")
    found = SPLITS[name].pre_tokenizer(tokenizers).pre_tokenize_str(text)
    assert "|".join(text[first:end] for _, (first, end) in found) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "the tokenizer 't5' is not supported; known are gpt2, llama"),
        ({"pre": "other"}, "splits as 'other'; known are default, gpt-2, phi-2"),
        ({"merges": ["a c"]}, "has 'c', which is no token"),
        ({"merges": ["abc"]}, "expected pairs"),
        ({"eos": 7}, "eos_token_id expected an integer from 0 to 2, got 7"),
    ],
)
def test_tokenizers_that_make_no_sense(changes: dict[str, object], message: str, tmp_path: Path):
    with pytest.raises(GGUFImportError, match=message):
        tokenizer_of(read_file(_tokenizer(tmp_path / "some.gguf", **changes)))


@pytest.mark.parametrize(
    "template", ["{{ messages[9]['role'] }}", "{{ raise_exception('no') }}", "{% if %}", "{{ 1 / 0 }}"]
)
def test_templates_that_fail(template: str, tmp_path: Path):
    tokenizer = tokenizer_of(read_file(_tokenizer(tmp_path / "some.gguf", template=template)))
    with pytest.raises(ValueError, match="the template for chats fails"):
        tokenizer.chat([])
    with pytest.raises(ValueError, match="has no template"):
        tokenizer_of(read_file(_tokenizer(tmp_path / "other.gguf"))).chat([])


def test_command_line(path: Path, model: LanguageModel, capsys: pytest.CaptureFixture[str]):
    assert main([str(path), "--prompt", "abc", "--max-tokens", "5", "--context", str(CONTEXT)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{model.generate('abc', max_tokens=5).text}\n"
    assert "prompt: 1 tokens" in err
    assert re.search(r"memory: \d+ MB at most", err)
    assert main([str(path)]) == 1
    assert "expected --prompt TEXT, --ask TEXT, --chat, --serve PORT or --warm-up" in capsys.readouterr().err
    assert main([str(path), "--ask", "x", "--top-p", "3"]) == 1
    assert "expected a top_p above 0" in capsys.readouterr().err
    assert main(["x.mlir", "--prompt", "x"]) == 1
    assert "options of language models (.gguf) are given for x.mlir: --prompt" in capsys.readouterr().err
    assert main(["nowhere.gguf", "--prompt", "a"]) == 1
    assert capsys.readouterr().err == "relax-run: error: nowhere.gguf: no such file or directory\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Hugging Face with a tokenizer that puts a token before each text."""
    path = tmp_path_factory.mktemp("folder")
    characters = {chr(97 + number): number + 3 for number in range(26)} | {"\u0120": 29}
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **characters, "ab": 30, "abc": 31}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("a", "b"), ("ab", "c")]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    made.save(str(path / "tokenizer.json"))
    settings = {
        "bos_token": {"content": "<s>"},
        "eos_token": "</s>",
        "chat_template": "{{ bos_token }}{% for each in messages %}{{ each['content'] }}{% endfor %}",
    }
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 29]}))
    config = {
        "model_type": "qwen3",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 8,
        "intermediate_size": 128,
        "vocab_size": 32,
        "max_position_embeddings": 32,
        "tie_word_embeddings": True,
    }
    (path / "config.json").write_text(json.dumps(config))
    safetensors.numpy.save_file({}, path / "model.safetensors")
    weights = decoders.random_weights(Decoder(config_of(read_folder(path))))
    safetensors.numpy.save_file({f"model.{name}": each for name, each in weights.items()}, path / "model.safetensors")
    return path


@pytest.mark.slow
def test_a_folder_of_hugging_face(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = LanguageModel.load(folder, context=16)
    prompt = model.tokenizer.encode("abc zab")
    assert prompt == [1, 31, 29, 28, 30]
    assert model.tokenizer.decode(prompt) == "abc zab"
    assert model.tokenizer.ends == {2, 29}
    assert model.tokenizer.chat([{"role": "user", "content": "ab"}]) == "<s>ab"
    assert model.tokenizer.encode("<s>ab") == [1, 30]
    found = list(model.tokens(prompt))
    weights = decoders.weights_of(model_of(read_folder(folder)))
    logits = decoders.logits(model.config, weights, np.array([*prompt, *found[:-1]]))
    assert logits.argmax(-1)[len(prompt) - 1 :].tolist() == found
    main([str(folder), "--prompt", "abc", "--context", "16", "--max-tokens", "4"])
    assert capsys.readouterr().out.strip() == model.generate("abc", max_tokens=4).text.strip()


def test_weights_of_folders_are_quantised(folder: Path, path: Path):
    """The matrices that are large enough; those of files, and formats without an encoder, are refused."""
    program = _program_of(read_folder(folder), "f32", "q8_0", 16)
    packed = [name for name, each in program.decoder.named_parameters() if isinstance(each.elements, BlockArray)]
    assert packed == [f"layers.0.mlp.{name}_proj.weight" for name in ("gate", "up", "down")]
    assert str(program.module()).count('format = "q8_0"') == 2 * 3  # of one sequence, and of a batch
    with pytest.raises(ValueError, match="there is no encoder of 'q2_k', only of q4_0"):
        LanguageModel.load(folder, weight_format="q2_k")
    with pytest.raises(ValueError, match=r"model\.gguf: weights of files are not quantised, only those of folders"):
        LanguageModel.load(path, weight_format="q8_0")


@pytest.mark.slow
def test_activations_may_have_fewer_bits(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    """The executables of files in the cache are told apart by them. For a prompt, and for one token.

    Rows have at least 16 bits where pairs of 16 bits are multiplied.
    """
    has_int16 = multiplies_int16(Target.host())
    wide = LanguageModel.load(path, context=CONTEXT, cache_format="f32")
    fewer = [LanguageModel.load(path, context=CONTEXT, activation_bits=8) for _ in ("compiled", "from the cache")]
    for size in (1, CONTEXT - 1):
        tokens = [5 + number for number in range(size)]
        exact = decoders.logits_of(read_file(path), np.array(tokens))[-1]
        error = np.abs(wide.logits(tokens) - exact).max() / np.abs(exact).max()
        errors = [np.abs(each.logits(tokens) - exact).max() / np.abs(exact).max() for each in fewer]
        assert error < (1e-3 if has_int16 else 1e-5)
        assert errors[0] == errors[1] < 5e-2
        assert has_int16 or errors[0] > 1e-4
    command = [str(path), "--prompt", "abc", "--context", str(CONTEXT), "--temperature", "3", "--seed", "1"]
    main([*command, "--activation-bits", "8"])
    out = capsys.readouterr().out
    assert out.strip() == fewer[0].generate("abc", sampling=Sampling(3.0, seed=1)).text.strip()
    main(command)
    assert has_int16 or capsys.readouterr().out != out
    for each in (path, folder):
        for wrong in (12, True, 8.0):
            with pytest.raises(ValueError, match=f"expected activations of 8, 16, 24, 32 bits, got {wrong}"):
                LanguageModel.load(each, activation_bits=wrong)


def test_damaged_tokenizers_of_folders(folder: Path, tmp_path: Path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(HuggingFaceImportError, match=r"cannot read .*tokenizer.json"):
        LanguageModel.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(HuggingFaceImportError, match=r"cannot read .*tokenizer.json"):
        LanguageModel.load(tmp_path)


def _steps(kind: str, *steps: dict[str, object]) -> dict[str, object]:
    return {"type": "Sequence", kind: list(steps)}


_DOUBLED = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
_PIECE = {"SpecialToken": {"id": "<s>", "type_id": 0}}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("normalizer", _steps("normalizers", *[_DOUBLED] * 60), "at most 65536 times as long"),
        ("normalizer", _steps("normalizers", *[{"type": "ByteLevel"}] * 60), "at most 65536 times as long"),
        ("decoder", _steps("decoders", *[_DOUBLED] * 60), "at most 65536 times as long"),
        (
            "post_processor",
            {"type": "TemplateProcessing", "single": [_PIECE], "pair": [], "special_tokens": {}},
            "no entry found for key",
        ),
    ],
)
def test_tokenizers_of_folders_that_make_texts_long_or_panic(
    folder: Path, tmp_path: Path, key: str, value: object, message: str
):
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    table = json.loads((folder / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(table | {key: value}))
    with pytest.raises(HuggingFaceImportError, match=f"cannot read .*tokenizer.json: .*{message}"):
        tokenizer_of_folder(read_folder(tmp_path))


def test_padding_and_truncation_of_tokenizers_are_not_used(folder: Path, tmp_path: Path):
    """A text has the tokens that it has: no 2**40 more, and not the first two of them."""
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    table = json.loads((folder / "tokenizer.json").read_text())
    table["padding"] = {
        "strategy": {"Fixed": 1 << 40},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "a",
    }
    table["truncation"] = {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(table))
    files = [read_folder(path) for path in (folder, tmp_path)]
    plain, padded = map(tokenizer_of_folder, files)
    assert padded.encode("abc xyz") == plain.encode("abc xyz")
