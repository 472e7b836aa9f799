"""Several texts at once: requests join a batch when there is room, and leave it when they end; a compiled decoder with
its cache takes the new tokens of all.

Each turn reads a piece of one prompt, and makes one token of every text that is being written. Prompts that begin like
a sequence that is in the cache share its pages.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.generation.cache import CachedSequence, PagedKVCache
from lowering.generation.sampling import Mask, Sampler, Speculation, checked, choosing_arguments

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 512
"""Tokens of a prompt that are read at once."""


class Decoding:
    """The functions of `DecoderProgram`, on sequences in a cache."""

    def __init__(self, function: Callable[[str], Callable[..., Any]], cache: PagedKVCache):
        """`function` gives the functions by name."""
        self._function, self.cache = function, cache

    def _call(self, name: str, sequence: CachedSequence, tokens: Sequence[int], *choosing: Any) -> Any:
        self.cache.begin_forward(sequence, len(tokens))
        positions = self.cache.positions(sequence)
        found = self._function(name)(np.array(tokens, np.int64), *positions, *choosing, *self.cache.arrays)
        self.cache.end_forward(sequence, tokens)
        return found

    def read(self, sequence: CachedSequence, tokens: Sequence[int]) -> Any:
        """The logits after new tokens of a sequence, `(1, vocabulary)`."""
        return self._call("main", sequence, tokens)

    def read_token(self, sequence: CachedSequence, tokens: Sequence[int], sampler: Sampler) -> int:
        """The token after new tokens of a sequence."""
        arguments = choosing_arguments([sampler.row([*sequence.tokens, *tokens])])
        return checked(int(np.from_dlpack(self._call("main_token", sequence, tokens, *arguments))[0]))

    def read_every(self, sequence: CachedSequence, tokens: Sequence[int]) -> NDArray[Any]:
        """The logits after each of some new tokens."""
        return np.from_dlpack(self._call("every", sequence, tokens))

    def read_likeliest(self, sequence: CachedSequence, tokens: Sequence[int]) -> list[int]:
        """The likeliest token after each of some new tokens."""
        return np.from_dlpack(self._call("every_token", sequence, tokens)).tolist()

    def step(
        self, sequences: Sequence[CachedSequence], tokens: Sequence[int], samplers: Sequence[Sampler] | None
    ) -> Any:
        """The tokens after one new token of each sequence, or the logits if nothing chooses."""
        for sequence in sequences:
            self.cache.begin_forward(sequence, 1)
        positions = self.cache.positions_of_batch(sequences)
        choosing: tuple[Any, ...] = ()
        if samplers is not None:
            befores = [[*sequence.tokens, token] for sequence, token in zip(sequences, tokens, strict=True)]
            choosing = choosing_arguments(
                [sampler.row(before) for sampler, before in zip(samplers, befores, strict=True)]
            )
        name = "step" if samplers is None else "step_token"
        ids = np.array(tokens, np.int64)
        found = self._function(name)(ids, *positions, *choosing, *self.cache.arrays)
        for sequence, token in zip(sequences, tokens, strict=True):
            self.cache.end_forward(sequence, [token])
        return found if samplers is None else np.from_dlpack(found).tolist()

    def choose(self, logits: NDArray[Any], sampler: Sampler, before: Sequence[int]) -> int:
        """The token for logits, `(vocabulary,)`."""
        arguments = choosing_arguments([sampler.row(before)])
        return checked(int(np.from_dlpack(self._function("choose")(logits[None], *arguments))[0]))


@dataclass(eq=False)
class Request:
    """A text to be written."""

    tokens: list[int]
    """The prompt, then what follows."""
    sampler: Sampler
    receive: Callable[[int], bool]
    """Gets each new token at once, and says whether more are wanted."""
    mask: Mask | None = None
    speculation: Speculation | None = None
    sequence: CachedSequence | None = None
    is_over: bool = False
    error: Exception | None = None
    """Why it ended early."""

    @property
    def unread(self) -> list[int]:
        """The tokens whose keys and values are not in the cache."""
        return self.tokens[0 if self.sequence is None else len(self.sequence.tokens) :]


@dataclass(eq=False)
class Scheduler:
    """The requests of one decoder. Any thread may take the next turn; one does at a time."""

    decoding: Decoding
    context: int
    most: int
    """How many texts are written at once."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _waiting: deque[Request] = field(default_factory=deque[Request])
    _active: list[Request] = field(default_factory=list[Request])
    _idle: list[CachedSequence] = field(default_factory=list[CachedSequence])
    """Sequences of texts that have ended, the last ones last."""

    def add(self, request: Request) -> None:
        """A text to be written."""
        with self.lock:
            self._waiting.append(request)

    def end(self, request: Request) -> None:
        """Nothing more is wanted of a request."""
        with self.lock:
            request.is_over = True
            if request in self._waiting:
                self._waiting.remove(request)
            if request in self._active:
                self._active.remove(request)
            if request.sequence is not None:
                self._idle.append(request.sequence)
                request.sequence = None
            while self._idle and len(self._idle) + len(self._active) > self.most:
                self.decoding.cache.remove_sequence(self._idle.pop(0))

    def make_room(self) -> None:
        """Leaves as many pages as one more sequence may need: texts that have ended are for those of the future."""
        with self.lock:
            while len(self._idle) + len(self._active) >= self.most and self._idle:
                self.decoding.cache.remove_sequence(self._idle.pop(0))

    def turn(self) -> None:
        """Admits what there is room for, reads a piece of one prompt, makes a token of each text."""
        with self.lock:
            while self._waiting and len(self._active) < self.most:
                self._admit(self._waiting.popleft())
            reading = next((each for each in self._active if len(each.unread) > 1), None)
            writing = [each for each in self._active if len(each.unread) == 1]
            if reading is not None:
                self._guarded([reading], lambda: self._read(reading))
            alone = [each for each in writing if each.speculation is not None]
            for each in alone:
                self._guarded([each], lambda each=each: self._speculate(each))
            together = [each for each in writing if each.speculation is None]
            if len(together) == 1:
                # The kernels for one sequence know that its tokens share their keys.
                self._guarded(together, lambda: self._read(together[0]))
            elif together:
                self._guarded(together, lambda: self._step(together))

    def _guarded(self, requests: Sequence[Request], action: Callable[[], None]) -> None:
        """What goes wrong ends the requests that it goes wrong for."""
        try:
            action()
        except Exception as error:
            for request in requests:
                request.error = request.error or error
                self.end(request)

    def _admit(self, request: Request) -> None:
        cache = self.decoding.cache
        known = [*self._idle, *(each.sequence for each in self._active if each.sequence is not None)]
        best, length = None, 0
        for each in known:
            # How many tokens two sequences begin alike with; one of the second is left, to be read for its
            # logits.
            most = min(len(each.tokens), len(request.tokens) - 1)
            common = cache.longest_prefix(
                each, next((at for at in range(most) if each.tokens[at] != request.tokens[at]), most)
            )
            if common > length:
                best, length = each, common
        request.sequence = cache.add_sequence() if best is None else cache.fork_sequence(best, length)
        self.make_room()
        self._active.append(request)

    def _read(self, request: Request) -> None:
        sequence, unread = request.sequence, request.unread
        assert sequence is not None  # it is active
        piece = unread[:CHUNK]
        if len(piece) < len(unread):
            self.decoding.read(sequence, piece)
        elif request.mask is None:
            self._give(request, self.decoding.read_token(sequence, piece, request.sampler))
        else:
            self._give(request, self._masked(request, np.from_dlpack(self.decoding.read(sequence, piece))[0]))

    def _step(self, requests: Sequence[Request]) -> None:
        sequences = [each.sequence for each in requests if each.sequence is not None]
        last = [each.tokens[-1] for each in requests]
        if all(each.mask is None for each in requests):
            tokens = self.decoding.step(sequences, last, [each.sampler for each in requests])
            for request, token in zip(requests, tokens, strict=True):
                self._guarded([request], lambda request=request, token=token: self._give(request, token))
            return
        logits = np.from_dlpack(self.decoding.step(sequences, last, None))
        for request, row in zip(requests, logits, strict=True):
            self._guarded([request], lambda request=request, row=row: self._give(request, self._masked(request, row)))

    def _masked(self, request: Request, logits: Any) -> int:
        found = np.array(logits)
        if request.mask is not None:
            request.mask(request.tokens, found)
        return self.decoding.choose(found, request.sampler, request.tokens)

    def _speculate(self, request: Request) -> None:
        """Reads tokens that are guessed along with the last one: those that are right are made at once."""
        sequence, speculation = request.sequence, request.speculation
        assert sequence is not None  # it is active
        assert speculation is not None  # as it is chosen for this
        room = self.context - len(request.tokens)
        guessed = speculation.guess(request.tokens, max(room, 0))
        found = self.decoding.read_likeliest(sequence, [request.tokens[-1], *guessed])
        right = next((i for i, (a, b) in enumerate(zip(guessed, found, strict=False)) if a != b), len(guessed))
        self.decoding.cache.popn(sequence, len(guessed) - right)
        speculation.learn(len(guessed), right)
        for token in found[: right + 1]:
            self._give(request, token)
            if request.is_over:
                break

    def _give(self, request: Request, token: int) -> None:
        request.tokens.append(checked(token))
        goes_on = request.receive(token)
        if not goes_on or len(request.tokens) > self.context:
            self.end(request)
