"""Language models that are ready to generate: a compiled decoder, its cache, its tokenizer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.build import build, build_file
from lowering.generation.cache import PagedKVCache
from lowering.generation.sampling import Draft, Mask, PromptLookup, Sampling, Speculation
from lowering.generation.scheduler import CHUNK, Decoding, Request, Scheduler
from lowering.generation.tokenizer import Tokenizer, tokenizer_of, tokenizer_of_folder
from lowering.llvm.binding import LLVM_LIBRARY
from lowering.llvm.code_cache import NO_CACHE, default_cache
from lowering.pass_context import PassContext
from relax_dialect.frontend import huggingface
from relax_dialect.frontend.gguf import GGUFFile, read_file
from relax_dialect.frontend.gguf.architectures import config_of
from relax_dialect.nn.config import CacheFormat, DecoderConfig
from tir_dialect.target import ACTIVATION_BITS, Target
from vm_dialect import VirtualMachine
from vm_dialect.executable import Executable
from vm_dialect.host_memory import give_back, give_back_library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from relax_dialect.nn.decoder import DecoderProgram

USUAL_CONTEXT = 2048
"""Tokens that there is room for, unless told otherwise; fewer if the model was made for fewer."""

ItemT = TypeVar("ItemT")


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

    def add(self, other: Generation) -> None:
        """Counts another text with this one."""
        self.prompt += other.prompt
        self.tokens += other.tokens
        self.prompt_seconds += other.prompt_seconds
        self.seconds += other.seconds
        self.steps += other.steps


class LanguageModel:
    """A decoder that writes texts, several at once."""

    def __init__(
        self,
        function: Callable[[str], Callable[..., Any]],
        config: DecoderConfig,
        tokenizer: Tokenizer,
        context: int,
        sequences: int = 1,
        cache_format: CacheFormat = "f16",
        workers: int = 1,
    ):
        """`function` gives the functions of a decoder's program; there is room for `sequences` of `context` tokens.

        The heads of the cache are shared by so many `workers`, of which this is one.
        """
        self.config = config
        self.tokenizer, self.context = tokenizer, context
        own = replace(config, num_key_value_heads=config.num_key_value_heads // workers)
        self.cache = PagedKVCache(own, cache_format, context, CHUNK, sequences)
        self.decoding = Decoding(function, self.cache)
        self._scheduler = Scheduler(self.decoding, context, sequences)

    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        context: int | None = None,
        sequences: int = 1,
        cache_format: CacheFormat = "f16",
        weight_format: str | None = None,
        activation_bits: int | None = None,
        cache: bool = True,
        mesh: Mapping[str, int] | None = None,
        timeout: float | None = None,
    ) -> LanguageModel:
        """Compiles the model of a GGUF file or of a folder of Hugging Face, with room for `context` tokens.

        The weights of a GGUF file stay in it. At most so many `sequences` are written at once, others wait.
        `cache_format` is that of keys and values. Matrices of a folder are packed into blocks of `weight_format`, such
        as `q8_0`, if there is one, unless they are already, but not those that route tokens to experts; the weights of
        a GGUF file stay as they are. What is multiplied with packed weights is rounded to `activation_bits`: 8 and 16
        are faster, 24 is as near as `f32`, 32 rounds nothing; 24 if the processor has dot products of bytes, else 16
        with AVX2, else 32. With a `mesh` of one axis, such as `{"x": 2}`, as many processes of MPI share its matrices:
        all of them load it and call it alike, and wait `timeout` seconds for each other. Each has its heads of the
        cache, or all where the workers do not divide them.
        `GGUFImportError` or `HuggingFaceImportError` for what is damaged or not supported.
        """
        if sequences < 1:
            raise ValueError(f"expected at least one sequence, got {sequences}")
        # The machine that rounds to so many bits; `None` if nothing is said. `ValueError` for a number of bits that
        # it cannot.
        if activation_bits is None:
            target = None
        else:
            if type(activation_bits) is not int or activation_bits not in ACTIVATION_BITS[1:]:
                known = ", ".join(map(str, ACTIVATION_BITS[1:]))
                raise ValueError(f"expected activations of {known} bits, got {activation_bits!r}")
            machine = PassContext.current().machine or Target.host()
            target = machine.with_settings({"activation_bits": activation_bits})
        if Path(path).is_dir():
            config, tokenizer, module = _of_folder(path, cache_format, weight_format)
            executable = partial(_executable_of_folder, module, target, cache)
        elif weight_format is not None:
            raise ValueError(f"{fspath(path)}: weights of files are not quantised, only those of folders")
        else:
            file = read_file(path)
            config, tokenizer = config_of(file), tokenizer_of(file, default_cache() if cache else NO_CACHE)
            module = partial(_module, file, cache_format)
            executable = partial(_executable, file, cache_format, target, cache)
        # The tokens that there is room for; `ValueError` for more than the model can tell apart.
        most = config.max_position_embeddings
        room = min(USUAL_CONTEXT, most) if context is None else context
        if not 1 <= room <= most:
            raise ValueError(f"expected a context from 1 to {most} tokens, got {room}")
        if mesh is None:
            function, workers = VirtualMachine(executable(room)).__getitem__, 1
        else:
            function, workers = _sharded(module(room), config, mesh, target, timeout)
        give_back()
        give_back_library(LLVM_LIBRARY)
        return LanguageModel(function, config, tokenizer, room, sequences, cache_format, workers)

    def logits(self, tokens: Sequence[int]) -> NDArray[Any]:
        """The logits of the token that follows `tokens`."""
        self.check(tokens)
        with self._scheduler.lock:
            self._scheduler.make_room()
            sequence = self.cache.add_sequence()
            try:
                last = (len(tokens) - 1) // CHUNK * CHUNK
                for first in range(0, last, CHUNK):
                    self.decoding.read(sequence, tokens[first : first + CHUNK])
                return np.array(np.from_dlpack(self.decoding.read(sequence, tokens[last:]))[0])
            finally:
                self.cache.remove_sequence(sequence)

    def tokens(
        self,
        prompt: Sequence[int],
        sampling: Sampling | None = None,
        mask: Mask | None = None,
        speculation: Speculation | None = None,
    ) -> Iterator[int]:
        """Token after token, until the context is full; those that end a text among them.

        What the prompt has in common with texts before is not read again. `ValueError` as of `check`.
        """
        made = deque[int]()
        request = self._request(prompt, sampling, mask, speculation, lambda token: made.append(token) is None)
        yield from self._run(request, made)

    def _request(
        self,
        prompt: Sequence[int],
        sampling: Sampling | None,
        mask: Mask | None,
        speculation: Speculation | None,
        receive: Callable[[int], bool],
    ) -> Request:
        self.check(prompt)
        chosen = sampling or Sampling()
        if speculation is not None and (mask is not None or not chosen.is_greedy):
            raise ValueError("tokens are guessed only where the likeliest one is taken, without a mask")
        request = Request(list(prompt), chosen.sampler(), receive, mask, speculation)
        self._scheduler.add(request)
        return request

    def _run(self, request: Request, made: deque[ItemT]) -> Iterator[ItemT]:
        """What a request makes, as it comes."""
        try:
            while True:
                with self._scheduler.lock:
                    while not made and not request.is_over:
                        self._scheduler.turn()
                while made:
                    yield made.popleft()
                if request.is_over and not made:
                    break
            if request.error is not None:
                raise request.error
        finally:
            self._scheduler.end(request)

    def check(self, prompt: Sequence[int]) -> None:
        """`ValueError` for a prompt that is empty, has unknown tokens, or leaves no room."""
        if not prompt:
            raise ValueError("expected a prompt of at least one token")
        if len(prompt) >= self.context:
            raise ValueError(f"the prompt has {len(prompt)} tokens, and there is room for {self.context} with the text")
        if not 0 <= min(prompt) <= max(prompt) < self.config.vocab_size:
            raise ValueError(f"expected tokens from 0 to {self.config.vocab_size - 1}")

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

    def generate_all(self, prompts: Sequence[str | Sequence[int]], **options: Any) -> list[Generation]:
        """The texts that continue some prompts, as many at once as there is room for (`sequences`).

        The options are those of `stream`.
        """
        texts = [self._writing(prompt, **options) for prompt in prompts]
        try:
            for text in texts:
                deque(self._run(text.request, text.pieces), maxlen=0)
        finally:
            for text in texts:
                self._scheduler.end(text.request)
        return [text.made for text in texts]

    def stream(
        self, prompt: str | Sequence[int], *, made: Generation | None = None, **options: Any
    ) -> Generator[str, None, Generation]:
        """The text that continues a prompt, piece by piece: at most `max_tokens`, up to one of the `stop` strings.

        A piece is given as soon as no `stop` string can begin in it. `mask` forbids tokens, as a grammar does.
        `speculate` guesses tokens, `"prompt"` by what followed in the text before, or another model of the same
        tokens, which is smaller; the text is the same. What has been made is in `made`, if it is given, also of a text
        that is left early.
        """
        text = self._writing(prompt, made=made, **options)
        yield from self._run(text.request, text.pieces)
        if piece := text.rest():
            yield piece
        return text.made

    def _writing(
        self,
        prompt: str | Sequence[int],
        *,
        made: Generation | None = None,
        max_tokens: int = 128,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        mask: Mask | None = None,
        speculate: Literal["prompt"] | LanguageModel | None = None,
    ) -> _Writing:
        made = Generation() if made is None else made
        made.prompt = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        text = _Writing(made, _Text(stop), self.tokenizer.stream(), self.tokenizer.ends, max_tokens)
        speculation = None if speculate is None else self._speculation(speculate)
        text.request = self._request(made.prompt, sampling, mask, speculation, text.receive)
        return text

    def _speculation(self, speculate: Literal["prompt"] | LanguageModel) -> Speculation:
        if not isinstance(speculate, LanguageModel):
            return PromptLookup()
        if speculate is self or speculate.config.vocab_size != self.config.vocab_size:
            raise ValueError("expected another model with the same tokens to guess")
        return Draft(speculate.likeliest)

    def likeliest(self, tokens: Sequence[int], count: int) -> list[int]:
        """The `count` likeliest tokens that follow, fewer where the context is full."""
        if not tokens or len(tokens) >= self.context:
            return []
        return list(islice(self.tokens(tokens), count))


@dataclass
class _Writing:
    """A text that is being written: what becomes of its tokens."""

    made: Generation
    text: _Text
    decode: Callable[[int], str]
    ends: frozenset[int]
    most: int
    pieces: deque[str] = field(default_factory=deque[str])
    request: Request = field(init=False)
    started: float = field(default_factory=time.perf_counter)
    first: float | None = None

    def receive(self, token: int) -> bool:
        """Adds a token; says whether more are wanted."""
        made, now = self.made, time.perf_counter()
        made.steps += self.first is not None
        self.first = now if self.first is None else self.first
        made.prompt_seconds, made.seconds = self.first - self.started, now - self.first
        if token in self.ends:
            made.end = "stop"
            return False
        made.tokens.append(token)
        piece, is_end = self.text.add(self.decode(token))
        if piece:
            self.pieces.append(piece)
        made.text = self.text.text
        if is_end:
            made.end = "stop"
        return not is_end and len(made.tokens) < self.most

    def rest(self) -> str:
        """The end of the text, in which a stop string might have begun."""
        return self.text.rest()


def program_of(path: str | PathLike[str]) -> ModuleOp:
    """The module of the model in a GGUF file: its `DecoderProgram`."""
    return _module(read_file(path), "f16")


def _executable(
    file: GGUFFile, cache_format: CacheFormat, target: Target | None, cache: bool, context: int
) -> Executable:
    options = f"decoder {cache_format}{' long' if config_of(file).is_long(context) else ''}"
    return build_file(file.mapped, lambda: _module(file, cache_format, context), options, target=target, cache=cache)


def _module(file: GGUFFile, cache_format: CacheFormat, context: int | None = None) -> ModuleOp:
    # Not at the top: a program that is in the cache needs no layers.
    from relax_dialect.frontend.gguf.models import model_of
    from relax_dialect.nn.decoder import DecoderProgram

    return DecoderProgram(model_of(file, context), cache_format).module()


def _sharded(
    module: ModuleOp, config: DecoderConfig, mesh: Mapping[str, int], target: Target | None, timeout: float | None
) -> tuple[Callable[[str], Callable[..., Any]], int]:
    """The functions of a decoder whose matrices the workers of a mesh share, and how many share the heads of the cache:
    all if they divide these, else one has all. `ValueError` if they cannot.
    """
    from lowering.distributed.plans import LLAMA_PACKED, LLAMA_POOLS, annotate
    from lowering.distributed.program import ShardedProgram

    if len(mesh) != 1:
        raise ValueError(f"expected a mesh of one axis for a language model, got {', '.join(mesh) or 'none'}")
    (workers,) = mesh.values()
    shares_heads = config.num_key_value_heads % workers == 0
    plans = [LLAMA_PACKED, LLAMA_POOLS] if shares_heads else [LLAMA_PACKED]
    if not annotate(module, dict.fromkeys(mesh, plans), mesh):
        raise ValueError("the model has no matrices that workers can share")
    own = tuple(LLAMA_POOLS.placements) if shares_heads else ()
    program = ShardedProgram(module, mesh, timeout=timeout, target=target, own=own)
    return lru_cache(maxsize=None)(program.__getitem__), workers if shares_heads else 1


def _executable_of_folder(
    module: Callable[[int], ModuleOp], target: Target | None, cache: bool, context: int
) -> Executable:
    return build(module(context), target=target, cache=cache)


def _of_folder(
    path: str | PathLike[str], cache_format: CacheFormat, weight_format: str | None
) -> tuple[DecoderConfig, Tokenizer, Callable[[int], ModuleOp]]:
    """The model of a folder of Hugging Face, and its module for texts of so many tokens."""
    from relax_dialect.frontend.huggingface.families import config_of

    folder = huggingface.read_folder(path)

    def module(context: int) -> ModuleOp:
        return _program_of(folder, cache_format, weight_format, context).module()

    return config_of(folder), tokenizer_of_folder(folder), module


def _program_of(
    folder: huggingface.ModelFolder, cache_format: CacheFormat, weight_format: str | None, context: int
) -> DecoderProgram:
    from relax_dialect.frontend.huggingface.models import model_of
    from relax_dialect.nn.decoder import DecoderProgram

    model = model_of(folder, context)
    if weight_format is not None:
        model.quantize(weight_format, leave_out=("*.mlp.gate.weight",))
    return DecoderProgram(model, cache_format)


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
