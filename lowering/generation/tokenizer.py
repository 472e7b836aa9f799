"""The tokenizer and the chat template of a model, by the packages `tokenizers` and `jinja2`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lowering.compiler.program_cache import program_compiler_version
from lowering.llvm.code_cache import NO_CACHE, CodeCache, cache_key
from relax_dialect.frontend.gguf import GGUFFile, GGUFImportError
from relax_dialect.frontend.huggingface import HuggingFaceImportError, ModelFolder
from relax_dialect.frontend.huggingface.folder import LARGEST_JSON, read_json
from vm_dialect.files import open_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens that texts have as a whole."""

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = _ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _REST
"""Words, and so many digits at a time."""

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?"
    + _UPPER
    + "*"
    + _LOWER
    + r"+%s|[^\r\n\p{L}\p{N}]?"
    + _UPPER
    + "+"
    + _LOWER
    + r"*%s|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    + _REST
)
"""Words, which also begin where small letters are followed by a capital one."""


@dataclass(frozen=True)
class Splitting:
    """How a text is split before pairs are merged."""

    words: str | None = None
    """A pattern of pieces; that of GPT-2 if there is none."""
    before: Sequence[str] = ()
    """Patterns of pieces that are taken out first."""
    after: Sequence[str] = ()
    """Patterns of pieces into which the others are split further."""
    whole_tokens: bool = False
    """Whether a piece that is a token needs no merges."""
    is_normalized: bool = False
    """Whether characters are composed first (NFC)."""

    def pre_tokenizer(self, library: Any) -> Any:
        """The pre-tokenizer of the package `tokenizers`."""

        def split(pattern: str) -> Any:
            return library.pre_tokenizers.Split(library.Regex(pattern), "isolated")

        words = [] if self.words is None else [split(self.words)]
        level = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=self.words is None)
        return library.pre_tokenizers.Sequence([*map(split, self.before), *words, level, *map(split, self.after)])


_GPT_2, _DIGITS = Splitting(), Splitting(before=(r"\p{N}",))
_LLAMA_3 = Splitting(_WORDS % 3, whole_tokens=True)
_GPT_4O = Splitting(_CASED % (f"{_ENDINGS}?", f"{_ENDINGS}?", 3))

SPLITS: Mapping[str, Splitting] = {
    "default": _GPT_2,
    "gpt-2": _GPT_2,
    "phi-2": _GPT_2,
    "olmo": _GPT_2,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "falcon": Splitting(before=(r"[\p{P}\$\+<=>\^~\|`]+",), after=("[0-9][0-9][0-9]",)),
    "qwen2": Splitting(_WORDS % 1, is_normalized=True),
    "stablelm2": Splitting(_WORDS % 1),
    "llama-bpe": _LLAMA_3,
    "llama3": _LLAMA_3,
    "dbrx": Splitting(_WORDS % 3),
    "smaug-bpe": Splitting(_WORDS % 3),
    "gpt-4o": _GPT_4O,
    "llama4": _GPT_4O,
    "tekken": Splitting(_CASED % ("", "", 1), whole_tokens=True),
}
"""By `tokenizer.ggml.pre`."""


@dataclass(frozen=True)
class Tokenizer:
    """Between texts and tokens."""

    path: str
    tokenizer: Any
    bos: int | None
    """The token before each text, if there is one."""
    ends: frozenset[int]
    """The tokens that end a text."""
    template: str | None
    special: Mapping[str, str]
    """Tokens that templates name."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, special ones written out in it included; `ValueError` if the tokenizer fails."""
        with library_errors(self._failed):
            tokens: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        starts = self.bos is not None and tokens[:1] != [self.bos]
        return [self.bos, *tokens] if starts and self.bos is not None else tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones; `ValueError` if the tokenizer fails."""
        with library_errors(self._failed):
            return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def stream(self) -> Callable[[int], str]:
        """What gives the text that each token adds; none while a character is not complete."""
        stream = import_module("tokenizers.decoders").DecodeStream(skip_special_tokens=True)

        def step(token: int) -> str:
            with library_errors(self._failed):
                return stream.step(self.tokenizer, token) or ""

        return step

    def _failed(self, message: str) -> ValueError:
        return ValueError(f"{self.path}: the tokenizer fails: {message}")

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The text that asks for an answer to messages, `{"role": "user", "content": ".."}`, by the model's template.

        `ValueError` if the file has no template, or it fails.
        """
        if self.template is None:
            raise ValueError(f"{self.path} has no template for chats; give the whole text as the prompt")
        try:
            sandbox, errors = import_module("jinja2.sandbox"), import_module("jinja2.exceptions")
        except ModuleNotFoundError as error:
            raise _missing("templates of chats", error) from error

        def refuse(message: str) -> None:
            raise errors.TemplateError(message)

        environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        del environment.globals["lipsum"]  # texts of any length
        try:
            template = environment.from_string(self.template)
            return template.render(messages=list(messages), add_generation_prompt=True, **self.special)
        except (errors.TemplateError, TypeError, LookupError, ArithmeticError, ValueError, *_EXHAUSTED) as error:
            raise ValueError(f"{self.path}: the template for chats fails: {error}") from error


_EXHAUSTED = (RecursionError, MemoryError)


@contextmanager
def library_errors(refused: Callable[[str], ValueError]) -> Generator[None]:
    """What the package `tokenizers` raises, panics included, as an error of ours: it has no class of its own."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GGUFImportError, HuggingFaceImportError):
        raise
    except BaseException as error:
        raise refused(str(error)) from error


def _missing(what: str, error: ModuleNotFoundError) -> ValueError:
    return ValueError(f"{what} need the package {error.name}: pip install xdsl-relax[llm] ({error})")


def tokenizer_of(file: GGUFFile, cache: CodeCache = NO_CACHE) -> Tokenizer:
    """The tokenizer in a file; `GGUFImportError` for a kind that is not known, and for one that makes no sense.

    What takes long to find is kept in the cache.
    """
    kind = file.text("tokenizer.ggml.model")
    if kind not in KINDS:
        raise GGUFImportError(f"{file.path}: the tokenizer {kind!r} is not supported; known are {', '.join(KINDS)}")
    try:
        library = import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise _missing("texts", error) from error
    tokens = _texts(file, "tokenizer.ggml.tokens")
    with library_errors(lambda message: GGUFImportError(f"{file.path}: {message}")):
        tokenizer = KINDS[kind](file, tokens, library, cache)
        tokenizer.add_special_tokens(_whole(file, tokens, library, _CONTROL))
        tokenizer.add_tokens(_whole(file, tokens, library, _USER_DEFINED))
    usual = file.metadata.get("tokenizer.ggml.model") == "llama"
    return Tokenizer(
        file.path,
        tokenizer,
        _token(file, tokens, "bos") if file.metadata.get("tokenizer.ggml.add_bos_token", usual) is True else None,
        _ends(file, tokens),
        _template(file),
        _named(file, tokens),
    )


def _byte_level(file: GGUFFile, tokens: list[str], library: Any, cache: CodeCache) -> Any:
    """Byte-pair encoding of bytes, each of which is a printable character."""
    name = file.text("tokenizer.ggml.pre", "default")
    if name not in SPLITS:
        raise GGUFImportError(f"{file.path}: the tokenizer splits as {name!r}; known are {', '.join(SPLITS)}")
    merges = _texts(file, "tokenizer.ggml.merges")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if wrong := [merge for merge, pair in zip(merges, pairs, strict=True) if len(pair) != 2]:
        raise GGUFImportError(f"{file.path}: expected pairs in tokenizer.ggml.merges, got {wrong[0][:40]!r}")
    if unknown := [each for pair in pairs for each in (*pair, "".join(pair)) if each not in vocabulary]:
        raise GGUFImportError(f"{file.path}: tokenizer.ggml.merges has {unknown[0][:40]!r}, which is no token")
    splitting = SPLITS[name]
    tokenizer = library.Tokenizer(library.models.BPE(vocabulary, pairs, ignore_merges=splitting.whole_tokens))
    if splitting.is_normalized:
        tokenizer.normalizer = library.normalizers.NFC()
    tokenizer.pre_tokenizer = splitting.pre_tokenizer(library)
    tokenizer.decoder = library.decoders.ByteLevel()
    return tokenizer


SPACE = "\u2581"
"""What a space is in the tokens of SentencePiece."""


LONGEST_TOKEN = 1 << 10
"""The characters of a token of SentencePiece, as it is taken apart in every way."""


def _sentence_piece(file: GGUFFile, tokens: list[str], library: Any, cache: CodeCache) -> Any:
    """Byte-pair encoding of characters as SentencePiece does it: of neighbours that are a token when they are joined,
    those with the highest score first; characters that are no token are bytes, `<0x0A>`.
    """
    scores = file.metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f" or len(scores) != len(tokens):
        raise GGUFImportError(f"{file.path}: the metadata tokenizer.ggml.scores expected {len(tokens)} numbers")
    if (longest := max(map(len, tokens), default=0)) > LONGEST_TOKEN:
        raise GGUFImportError(f"{file.path}: expected tokens of at most {LONGEST_TOKEN} characters, got {longest}")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    splits = _known_splits(file, vocabulary, tokens, np.nan_to_num(scores), cache)
    firsts, seconds = cast("list[list[int]]", splits.T.tolist())
    pairs = [(tokens[a], tokens[b]) for a, b in zip(firsts, seconds, strict=True)]
    unknown = file.integer("tokenizer.ggml.unknown_token_id", 0, most=len(tokens) - 1)
    tokenizer = library.Tokenizer(
        library.models.BPE(vocabulary, pairs, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True)
    )
    normalizers, decoders = library.normalizers, library.decoders
    has_prefix = file.metadata.get("tokenizer.ggml.add_space_prefix", True) is True
    prefix = [normalizers.Prepend(SPACE)] if has_prefix else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", SPACE)])
    strip = [decoders.Strip(" ", 1, 0)] if has_prefix else []
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    tokenizer.decoder = decoders.Sequence(parts)
    return tokenizer


def _known_splits(
    file: GGUFFile, vocabulary: Mapping[str, int], tokens: list[str], scores: Any, cache: CodeCache
) -> NDArray[np.int32]:
    """As `_splits`, a pair in each row, from the cache if it has those of this very file: to find them takes a
    second.
    """
    identity = file.mapped[0].identity if file.mapped else None
    key = cache_key(["splits of tokens", program_compiler_version(), identity or ""])
    data = None if identity is None else cache.get(key)
    if data is None:
        found = np.array(_splits(vocabulary, tokens, scores), np.int32).reshape(-1, 2)
        if identity is not None:
            cache.put(key, found.tobytes())
        return found
    return np.frombuffer(data, np.int32).reshape(-1, 2)


def _splits(vocabulary: Mapping[str, int], tokens: list[str], scores: Any) -> list[tuple[int, int]]:
    """All pairs of tokens that are a token when they are joined, that of the highest score first."""
    ranks: list[int] = np.argsort(-scores, kind="stable").tolist()
    found: list[tuple[int, int]] = []
    for number in ranks:
        token = tokens[number]
        found += sorted(
            (vocabulary[token[:at]], vocabulary[token[at:]])
            for at in range(1, len(token))
            if token[:at] in vocabulary and token[at:] in vocabulary
        )
    return found


KINDS: Mapping[str, Callable[[GGUFFile, list[str], Any, CodeCache], Any]] = {
    "gpt2": _byte_level,
    "llama": _sentence_piece,
}
"""By the names in `tokenizer.ggml.model`: byte-level BPE, and SentencePiece's."""


def _texts(file: GGUFFile, key: str) -> list[str]:
    found = file.metadata.get(key)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise GGUFImportError(f"{file.path}: the metadata {key} expected a list of texts")
    return [str(each) for each in found]


def _whole(file: GGUFFile, tokens: Sequence[str], library: Any, kind: int) -> list[Any]:
    """The tokens of a kind, which are found in texts before these are split."""
    types = file.metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, np.ndarray) or len(types) != len(tokens):
        return []
    wanted: list[int] = np.flatnonzero(types == kind).tolist()
    return [library.AddedToken(tokens[number], special=kind == _CONTROL, normalized=False) for number in wanted]


def _token(file: GGUFFile, tokens: Sequence[str], name: str) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    return file.integer(key, most=len(tokens) - 1) if key in file.metadata else None


ENDS = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>")
"""Tokens that end an answer, besides those that the metadata names."""


def _ends(file: GGUFFile, tokens: Sequence[str]) -> frozenset[int]:
    named = (_token(file, tokens, name) for name in ("eos", "eot"))
    known = (number for number, token in enumerate(tokens) if token in ENDS)
    return frozenset((*(each for each in named if each is not None), *known))


def _template(file: GGUFFile) -> str | None:
    key = "tokenizer.chat_template"
    return file.text(key) if key in file.metadata else None


def _named(file: GGUFFile, tokens: Sequence[str]) -> dict[str, str]:
    ids = {f"{name}_token": _token(file, tokens, name) for name in ("bos", "eos")}
    return {name: tokens[number] for name, number in ids.items() if number is not None}


MOST_GROWTH = 1 << 16
"""How many times as long the steps of a tokenizer may make a text: a few steps that double it are no matter, but a
hundred of them would take all memory.
"""


def _growth(step: Any) -> int:
    """How many times as long a step, or what it consists of, may make a text; at least."""
    if isinstance(step, list):
        return math.prod(map(_growth, cast("list[Any]", step)))
    if not isinstance(step, dict):
        return 1
    table = cast("Mapping[str, Any]", step)
    match table.get("type"):
        case "Replace" | "Prepend":
            own = 1 + len(table.get("content", table.get("prepend", "")))
        case "ByteLevel":
            own = 2
        case "Precompiled":
            own = 16
        case "TemplateProcessing":
            own = max(1, len(table.get("single", ())))
        case _:
            own = 1
    return own * math.prod(map(_growth, table.values()))


def tokenizer_of_folder(folder: ModelFolder) -> Tokenizer:
    """The tokenizer in a folder of Hugging Face; `HuggingFaceImportError` for one that cannot be read."""
    try:
        library = import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise _missing("texts", error) from error
    path = folder.path / "tokenizer.json"
    with library_errors(lambda message: HuggingFaceImportError(f"cannot read {path}: {message}")):
        open_regular(path).close()
        tokenizer = library.Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        for step in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.post_processor, tokenizer.decoder):
            if step is not None and (growth := _growth(json.loads(step.__getstate__()))) > MOST_GROWTH:
                raise ValueError(f"expected steps that make a text at most {MOST_GROWTH} times as long, got {growth}")
        empty: list[int] = tokenizer.encode("").ids
    settings = folder.path / "tokenizer_config.json"
    said: Mapping[str, Any] = read_json(settings) if settings.exists() else {}
    special = {key: text for key in ("bos_token", "eos_token") if (text := _token_text(said.get(key))) is not None}
    ids = {key: tokenizer.token_to_id(text) for key, text in special.items()}
    starts = empty[:1] == [ids.get("bos_token")]
    written = folder.path / "chat_template.jinja"
    template: object = _text_in(written) if written.exists() else said.get("chat_template")
    return Tokenizer(
        str(folder.path),
        tokenizer,
        ids["bos_token"] if starts else None,
        _ends_of_folder(folder, tokenizer, ids.get("eos_token")),
        template if isinstance(template, str) else None,
        special,
    )


def _text_in(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(LARGEST_JSON).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise HuggingFaceImportError(f"cannot read {path}: {error}") from error


def _token_text(token: object) -> str | None:
    """A token of the settings: its text, or a table with it."""
    text = cast("Mapping[str, object]", token).get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _ends_of_folder(folder: ModelFolder, tokenizer: Any, eos: int | None) -> frozenset[int]:
    """The tokens that end a text: of both configurations, of the tokenizer, and those that usually do."""
    generation = folder.path / "generation_config.json"
    said: list[Any] = [folder.config.get("eos_token_id"), eos]
    if generation.exists():
        said.append(read_json(generation).get("eos_token_id"))
    named = (each for ids in said for each in (cast("list[Any]", ids) if isinstance(ids, list) else [ids]))
    usual = (tokenizer.token_to_id(text) for text in ENDS)
    return frozenset(each for each in (*named, *usual) if isinstance(each, int))
