"""Which pages hold the keys and values of which sequences.

The state of TVM's paged cache (`vm.builtin.paged_attention_kv_cache_create`, `kv_state_add_sequence`,
`kv_state_remove_sequence`, `kv_state_fork_sequence`, `kv_state_popn`, `begin_forward`) as methods of these names. Pages
are shared by sequences that begin alike, and copied when one of them writes into a page that another one has. Layers
that see a window have pages of their own, which are free again once the window has left them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm_ffi

from relax_dialect.nn.config import PAGE, CacheFormat, DecoderConfig, pool_shapes
from tir_dialect.dtypes import numpy_dtype, parse_dtype
from vm_dialect.host_memory import zeros_on_demand

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT = 2 * PAGE
"""Positions before a window that are kept, so that the last tokens of a sequence may be taken back."""


class CacheFull(ValueError):
    """No page is free."""


@dataclass
class Pages:
    """The pages of a sequence in the pools of some layers, from page `first` on."""

    numbers: list[int] = field(default_factory=list[int])
    first: int = 0


@dataclass(eq=False)
class CachedSequence:
    """A sequence whose keys and values are in the cache."""

    tokens: list[int] = field(default_factory=list[int])
    """The tokens whose keys and values are there."""
    pages: tuple[Pages, ...] = ()
    """Those of all layers without a window, and those of layers with one."""


class _Pools:
    """The pools of some layers, and which of their pages are free. Page 0 is never written."""

    def __init__(self, arrays: Sequence[NDArray[Any]], window: int | None):
        self.arrays, self.window = arrays, window
        count = len(arrays[0]) if arrays else 1
        self._free = list(range(count - 1, 0, -1))
        self._users = [0] * count

    def take(self) -> int:
        """A page that nobody has; `CacheFull` if there is none."""
        if not self._free:
            raise CacheFull("the cache has no page left")
        page = self._free.pop()
        self._users[page] = 1
        return page

    def share(self, pages: Sequence[int]) -> None:
        """One more sequence has these pages."""
        for page in pages:
            self._users[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """One sequence fewer has these pages."""
        for page in pages:
            self._users[page] -= 1
            if not self._users[page]:
                self._free.append(page)

    def own(self, pages: Pages, index: int) -> None:
        """Makes a page of a sequence its own, as a copy if another one has it, too."""
        page = pages.numbers[index]
        if self._users[page] > 1:
            fresh = self.take()
            for array in self.arrays:
                array[fresh] = array[page]
            self.release([page])
            pages.numbers[index] = fresh

    @property
    def free(self) -> int:
        """How many pages nobody has."""
        return len(self._free)


class PagedKVCache:
    """The pools of all layers of a decoder, and the sequences in them."""

    def __init__(
        self, config: DecoderConfig, cache_format: CacheFormat, positions: int, chunk: int, sequences: int = 1
    ):
        """Has room for so many sequences of `positions` tokens, of which at most `chunk` are new at once.

        Memory that has never been written is not there.
        """
        self.windows = [config.window(layer) for layer in range(config.num_hidden_layers)]
        largest = max((window for window in self.windows if window is not None), default=None)
        kinds = (None,) if largest is None else (None, largest)
        memory: dict[int | None, list[NDArray[Any]]] = {kind: [] for kind in kinds}
        self.arrays: list[Any] = []
        layout = pool_shapes(config.num_key_value_heads, config.head_dim, cache_format)
        for window in self.windows:
            most = positions if window is None or largest is None else min(positions, largest + chunk + KEPT + PAGE)
            pages = 1 + sequences * (-(-most // PAGE) + 1)
            for shape, dtype in layout.values():
                pool = zeros_on_demand((pages, *shape), numpy_dtype(parse_dtype(dtype)))
                memory[None if window is None else largest].append(pool)
                self.arrays.append(tvm_ffi.from_dlpack(pool))
        self._pools = [_Pools(memory[kind], kind) for kind in kinds]

    @property
    def nbytes(self) -> int:
        """The bytes of all pages, written or not."""
        return sum(array.nbytes for pools in self._pools for array in pools.arrays)

    @property
    def free_pages(self) -> tuple[int, ...]:
        """How many pages are free in the pools without a window, and in those with one."""
        return tuple(pools.free for pools in self._pools)

    def add_sequence(self) -> CachedSequence:
        """An empty sequence."""
        return CachedSequence(pages=tuple(Pages() for _ in self._pools))

    def remove_sequence(self, sequence: CachedSequence) -> None:
        """Gives back the pages of a sequence."""
        for pools, pages in zip(self._pools, sequence.pages, strict=True):
            pools.release(pages.numbers)
            pages.numbers.clear()
            pages.first = 0
        sequence.tokens.clear()

    def longest_prefix(self, sequence: CachedSequence, length: int) -> int:
        """So many of its first tokens, or 0 if what the next token would see is no longer there."""
        length = min(length, len(sequence.tokens))
        for pools, pages in zip(self._pools, sequence.pages, strict=True):
            if pools.window is not None and pages.first * PAGE > max(0, length - pools.window + 1):
                return 0
        return length

    def fork_sequence(self, sequence: CachedSequence, length: int) -> CachedSequence:
        """A sequence that begins with the first `length` tokens of another one, and shares its pages."""
        if length and self.longest_prefix(sequence, length) != length:
            raise ValueError(f"the sequence has no {length} tokens to begin with")
        found = CachedSequence(sequence.tokens[:length])
        shared: list[Pages] = []
        for pools, pages in zip(self._pools, sequence.pages, strict=True):
            own = Pages(pages.numbers[: max(0, -(-length // PAGE) - pages.first)], pages.first if length else 0)
            pools.share(own.numbers)
            shared.append(own)
        found.pages = tuple(shared)
        return found

    def popn(self, sequence: CachedSequence, count: int) -> None:
        """Takes back the last tokens of a sequence; `ValueError` if what the next one would see is not there."""
        length = len(sequence.tokens) - count
        if count < 0 or length < 0 or self.longest_prefix(sequence, length) != length:
            raise ValueError(f"expected at most {len(sequence.tokens)} tokens to take back, got {count}")
        del sequence.tokens[length:]
        for pools, pages in zip(self._pools, sequence.pages, strict=True):
            keep = max(0, -(-length // PAGE) - pages.first)
            pools.release(pages.numbers[keep:])
            del pages.numbers[keep:]
            if not length:
                pages.first = 0

    def begin_forward(self, sequence: CachedSequence, count: int) -> None:
        """Makes room for new tokens, in pages that are the sequence's own; `CacheFull` if there is none.

        Pages that no new token sees are given back.
        """
        past = len(sequence.tokens)
        for pools, pages in zip(self._pools, sequence.pages, strict=True):
            if pools.window is not None:
                unseen = max(0, past - pools.window + 1 - KEPT) // PAGE - pages.first
                if unseen > 0:
                    pools.release(pages.numbers[:unseen])
                    del pages.numbers[:unseen]
                    pages.first += unseen
            if not pools.arrays:
                continue
            if past % PAGE:
                pools.own(pages, past // PAGE - pages.first)
            while (pages.first + len(pages.numbers)) * PAGE < past + count:
                pages.numbers.append(pools.take())

    def end_forward(self, sequence: CachedSequence, tokens: Sequence[int]) -> None:
        """The keys and values of new tokens are there."""
        sequence.tokens += tokens

    def positions(self, sequence: CachedSequence) -> list[Any]:
        """The arguments of functions for one sequence: positions so far and table, for each kind of pools."""
        past = len(sequence.tokens)
        found: list[Any] = []
        for pages in sequence.pages:
            found += [past - pages.first * PAGE, np.array(pages.numbers, np.int64)]
        return found

    def positions_of_batch(self, sequences: Sequence[CachedSequence]) -> list[Any]:
        """The arguments of functions for a batch: positions and tables, for each kind of pools."""
        found: list[Any] = []
        for kind in range(len(self._pools)):
            own = [sequence.pages[kind] for sequence in sequences]
            table = np.zeros((len(own), max(len(pages.numbers) for pages in own)), np.int64)
            for row, pages in zip(table, own, strict=True):
                row[: len(pages.numbers)] = pages.numbers
            firsts = [pages.first * PAGE for pages in own]
            at = [len(sequence.tokens) - first for sequence, first in zip(sequences, firsts, strict=True)]
            found += [np.array(at, np.int64), table]
        return found
