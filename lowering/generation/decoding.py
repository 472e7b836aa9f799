"""A compiled decoder and its cache: new tokens of sequences in, logits or the tokens that follow out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.generation.cache import CachedSequence, PagedKVCache
from lowering.generation.sampling import Sampler, checked, choosing_arguments

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
