"""Language models that are ready to generate: a compiled decoder, its cache, its tokenizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.generation.sampling import Mask, Sampling
from lowering.generation.tokenizer import Tokenizer, tokenizer_of, tokenizer_of_folder
from relax_dialect.frontend import huggingface
from relax_dialect.frontend.gguf import read_file
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.nn.decoder import Decoder, DecoderConfig
from vm_dialect import VirtualMachine

if TYPE_CHECKING:
    from numpy.typing import NDArray

USUAL_CONTEXT = 2048
"""Tokens that there is room for, unless told otherwise; fewer if the model was made for fewer."""

CHUNK = 512
"""Tokens of a prompt that are read at once."""


@dataclass
class Generation:
    """A text that has been generated."""

    text: str = ""
    tokens: list[int] = field(default_factory=list[int])
    prompt: list[int] = field(default_factory=list[int])
    """The tokens of the prompt."""
    prompt_seconds: float = 0.0
    """How long the prompt took, up to the first logits."""
    seconds: float = 0.0
    """How long the steps after that took."""
    steps: int = 0
    """How many there were; one more than the text has tokens where another one ended it."""
    end: Literal["stop", "length"] = "length"
    """Whether the model or a string ended the text, or the number of tokens did."""

    def summary(self) -> str:
        """Tokens per second, of the prompt and of the text."""
        rates = (len(self.prompt) / max(self.prompt_seconds, 1e-9), self.steps / max(self.seconds, 1e-9))
        return (
            f"prompt: {len(self.prompt)} tokens, {rates[0]:.1f} tokens/s; "
            f"text: {len(self.tokens)} tokens, {rates[1]:.1f} tokens/s"
        )


class LanguageModel:
    """A decoder for one sequence at a time."""

    def __init__(self, step: Callable[..., Any], config: DecoderConfig, tokenizer: Tokenizer, context: int):
        """`step` is the function `main` of the program of a decoder with room for `context` tokens."""
        self.config, self.tokenizer, self.context = config, tokenizer, context
        self._step = step
        shape = (config.num_key_value_heads, context, config.head_dim)
        arrays = [np.zeros(shape, np.float32) for _ in range(2 * config.num_hidden_layers)]
        self._caches = [tvm_ffi.from_dlpack(array) for array in arrays]
        self._cached: list[int] = []
        """The tokens whose keys and values are in the caches."""

    @staticmethod
    def load(path: str | PathLike[str], *, context: int | None = None, cache: bool = True) -> LanguageModel:
        """Compiles the model of a GGUF file or of a folder of Hugging Face, with room for `context` tokens.

        The weights of a GGUF file stay in it. `GGUFImportError` or `HuggingFaceImportError` for what is damaged or not
        supported.
        """
        if Path(path).is_dir():
            folder = huggingface.read_folder(path)
            tokenizer, model = tokenizer_of_folder(folder), huggingface.model_of(folder)
        else:
            file = read_file(path)
            tokenizer, model = tokenizer_of(file), model_of(file)
        room = _room(model, context)
        machine = VirtualMachine(build(model.program(room), cache=cache))
        return LanguageModel(machine["main"], model.config, tokenizer, room)

    def logits(self, tokens: Sequence[int], past: int) -> NDArray[Any]:
        """The logits of the token that follows `tokens`, which come after `past` others that were given before."""
        found = np.empty(0, np.float32)
        del self._cached[past:]
        for first in range(0, len(tokens), CHUNK):
            some = np.array(tokens[first : first + CHUNK], np.int64)
            found = np.from_dlpack(self._step(some, past + first, *self._caches))[-1]
        self._cached += tokens
        return found

    def tokens(
        self, prompt: Sequence[int], sampling: Sampling | None = None, mask: Mask | None = None
    ) -> Iterator[int]:
        """Token after token, until the context is full; those that end a text among them.

        What the prompt has in common with the last text is not read again. `ValueError` as of `check`.
        """
        self.check(prompt)
        sampler, sequence, read = (sampling or Sampling()).sampler(), list(prompt), self._common(prompt)
        while len(sequence) <= self.context:
            logits = self.logits(sequence[read:], read)
            read = len(sequence)
            sequence.append(sampler.choose(logits, sequence, mask))
            yield sequence[-1]

    def check(self, prompt: Sequence[int]) -> None:
        """`ValueError` for a prompt that is empty, has unknown tokens, or leaves no room."""
        if not prompt:
            raise ValueError("expected a prompt of at least one token")
        if len(prompt) >= self.context:
            raise ValueError(f"the prompt has {len(prompt)} tokens, and there is room for {self.context} with the text")
        if not 0 <= min(prompt) <= max(prompt) < self.config.vocab_size:
            raise ValueError(f"expected tokens from 0 to {self.config.vocab_size - 1}")

    def _common(self, prompt: Sequence[int]) -> int:
        """How many tokens of the prompt are in the caches; the last one is read for its logits."""
        most = min(len(prompt) - 1, len(self._cached))
        return next((at for at in range(most) if prompt[at] != self._cached[at]), most)

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Generation:
        """The answer to messages, `{"role": "user", "content": ".."}`; the options are those of `generate`."""
        return self.generate(self.tokenizer.chat(messages), **options)

    def generate(
        self, prompt: str | Sequence[int], *, show: Callable[[str], object] | None = None, **options: Any
    ) -> Generation:
        """The text that continues a prompt; the options are those of `stream`. `show` gets each piece of it at once."""
        pieces = self.stream(prompt, **options)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                return end.value
            if show is not None:
                show(piece)

    def stream(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 128,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        mask: Mask | None = None,
    ) -> Generator[str, None, Generation]:
        """The text that continues a prompt, piece by piece: at most `max_tokens`, up to one of the `stop` strings.

        A piece is given as soon as no `stop` string can begin in it. `mask` forbids tokens, as a grammar does.
        """
        made = Generation(prompt=self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt))
        text, decode = _Text(stop), self.tokenizer.stream()
        started = time.perf_counter()
        first: float | None = None
        for step, token in zip(range(max_tokens), self.tokens(made.prompt, sampling, mask), strict=False):
            now, made.steps = time.perf_counter(), step
            first = now if first is None else first
            made.prompt_seconds, made.seconds = first - started, now - first
            if token in self.tokenizer.ends:
                made.end = "stop"
                break
            made.tokens.append(token)
            piece, is_end = text.add(decode(token))
            if piece:
                yield piece
            if is_end:
                made.end = "stop"
                break
        if piece := text.rest():
            yield piece
        made.text = text.text
        return made


def program_of(path: str | PathLike[str], context: int | None = None) -> ModuleOp:
    """The module of the model in a GGUF file: `Decoder.program` with room for `context` tokens."""
    model = model_of(read_file(path))
    return model.program(_room(model, context))


def _room(model: Decoder, context: int | None) -> int:
    """The tokens that there is room for; `ValueError` for more than the model can tell apart."""
    most = model.config.max_position_embeddings
    room = min(USUAL_CONTEXT, most) if context is None else context
    if not 1 <= room <= most:
        raise ValueError(f"expected a context from 1 to {most} tokens, got {room}")
    return room


class _Text:
    """A text that grows, and ends before the first of some strings."""

    def __init__(self, stop: Sequence[str]):
        self._stop = [each for each in stop if each]
        self.text, self._given = "", 0

    def add(self, piece: str) -> tuple[str, bool]:
        """Adds a piece: what is certain now, and whether that is the end."""
        searched = max(0, len(self.text) - max(map(len, self._stop), default=0))
        self.text += piece
        ends = [end for each in self._stop if (end := self.text.find(each, searched)) >= 0]
        if ends:
            self.text = self.text[: min(ends)]
            return "", True
        return self._until(len(self.text) - self._held_back()), False

    def rest(self) -> str:
        """What has not been given."""
        return self._until(len(self.text))

    def _held_back(self) -> int:
        """The length of the longest end of the text with which a stop string begins."""
        lengths = (size for each in self._stop for size in range(1, len(each)) if self.text.endswith(each[:size]))
        return max(lengths, default=0)

    def _until(self, end: int) -> str:
        piece = self.text[self._given : end]
        self._given = max(self._given, end)
        return piece
