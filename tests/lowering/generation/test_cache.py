"""Which pages sequences have: shared beginnings, copies on writing, windows, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.generation.cache import KEPT, CachedSequence, CacheFull, PagedKVCache
from relax_dialect.nn import PAGE, DecoderConfig

WINDOW, CHUNK, POSITIONS = 40, 64, 1024


def _cache(windows: tuple[int | None, ...], sequences: int = 2) -> PagedKVCache:
    config = DecoderConfig(8, len(windows), 1, 1, 8, 8, 16, POSITIONS, windows=windows)
    return PagedKVCache(config, "f32", POSITIONS, CHUNK, sequences)


def _extend(cache: PagedKVCache, sequence: CachedSequence, tokens: list[int]) -> None:
    cache.begin_forward(sequence, len(tokens))
    cache.end_forward(sequence, tokens)


def test_sequences_that_begin_alike_share_pages_until_one_writes():
    cache = _cache((None,))
    free, one = cache.free_pages[0], cache.add_sequence()
    _extend(cache, one, [1] * (2 * PAGE + 3))
    other = cache.fork_sequence(one, 2 * PAGE + 1)
    assert cache.free_pages[0] == free - 3, "a fork takes no pages"
    array = np.from_dlpack(cache.arrays[0])
    array[one.pages[0].numbers] = 7
    _extend(cache, other, [2])
    assert other.pages[0].numbers[:2] == one.pages[0].numbers[:2]
    assert other.pages[0].numbers[2] != one.pages[0].numbers[2]
    seen = array[other.pages[0].numbers].reshape(-1, array.shape[-1])[: 2 * PAGE + 1]
    assert (seen == 7).all(), "the page that is written is a copy"
    cache.popn(other, PAGE + 2)
    assert (len(other.tokens), len(other.pages[0].numbers)) == (PAGE, 1)
    for sequence in (one, other):
        cache.remove_sequence(sequence)
    assert cache.free_pages[0] == free


def test_a_window_frees_pages():
    """However long a text is, layers with a window have as many pages as the window, and positions count from these."""
    cache = _cache((WINDOW, None))
    sequence, (whole, local) = cache.add_sequence(), cache.free_pages
    for number in range(POSITIONS // 4):
        _extend(cache, sequence, [number % 16] * 4)
        assert local - cache.free_pages[1] <= -(-(WINDOW + KEPT) // PAGE) + 1
    assert whole - cache.free_pages[0] == POSITIONS // PAGE
    past, table, near, local_table = cache.positions(sequence)
    assert (past, len(table)) == (POSITIONS, POSITIONS // PAGE)
    assert WINDOW <= near <= len(local_table) * PAGE
    assert (past - near) % PAGE == 0
    assert cache.longest_prefix(sequence, 100) == 0, "what it saw there has gone"
    cache.popn(sequence, KEPT // 2)
    with pytest.raises(ValueError, match="tokens to take back, got 500"):
        cache.popn(sequence, 500)
    cache.popn(sequence, len(sequence.tokens))
    _extend(cache, sequence, [1] * 3)
    assert [cache.positions(sequence)[index] for index in (0, 2)] == [3, 3], "it begins anew"
    cache.remove_sequence(sequence)
    _extend(cache, sequence, [1])
    assert cache.positions(sequence)[2] == 1


def test_tables_of_a_batch():
    cache = _cache((WINDOW, WINDOW))
    one, other = cache.add_sequence(), cache.add_sequence()
    _extend(cache, one, [1] * 50)
    _extend(cache, other, [1] * 3)
    positions, table, _, local_table = cache.positions_of_batch([one, other])
    assert positions.tolist() == [50, 3]
    assert table.shape == (2, 0), "no layer sees everything"
    assert local_table[1].tolist() == [other.pages[1].numbers[0], 0]


def test_a_cache_that_is_full():
    cache = _cache((None,), 1)
    with pytest.raises(CacheFull, match="no page left"):
        cache.begin_forward(cache.add_sequence(), POSITIONS + 3 * PAGE)
