"""Memory that kernels use while they run: kept between calls, shared by no two, refused where it cannot be."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache

import numpy as np

from lowering.llvm.compiler import compile_object
from lowering.runtime.loading import LoadedCode, library_symbol, load_objects, resolve_symbols
from lowering.runtime.support import SCRATCH
from tir_dialect.target import Target

MIB = 1 << 20
KEPT = 8


@cache
def loaded() -> LoadedCode:
    return load_objects([compile_object(SCRATCH.text(), Target.host())])


def functions() -> tuple[Callable[[int, int], int], Callable[[int], None]]:
    code = loaded()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address("relax_scratch_take"))
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("relax_scratch_give"))
    return take, give


TAKE, GIVE = functions()


def test_a_block_is_used_again() -> None:
    first = TAKE(64, MIB)
    GIVE(first)
    assert TAKE(64, MIB - 100) == first
    other = TAKE(64, MIB)
    assert other != first
    GIVE(first)
    GIVE(other)


def test_large_blocks_are_left_for_large_requests() -> None:
    large = TAKE(64, 7 * MIB)
    GIVE(large)
    small = TAKE(64, MIB // 16)
    assert TAKE(64, 6 * MIB) == large
    GIVE(small)
    GIVE(large)


def test_alignment() -> None:
    for alignment in (64, 128, 4096):
        for size in (0, 1, 5000):
            block = TAKE(alignment, size)
            assert block % alignment == 0
            ctypes.memset(block, 255, size)
            GIVE(block)
    blocks = [TAKE(64, 5000) for _ in range(20)]
    assert len({block % 4096 for block in blocks}) > 1  # some of them do not suit
    for block in blocks:
        GIVE(block)
    assert TAKE(4096, 5000) % 4096 == 0


def test_what_cannot_be_is_refused() -> None:
    for size in (-1, -64, -(1 << 63), 1 << 62, (1 << 63) - 1):
        assert TAKE(64, size) is None


def test_more_blocks_than_places() -> None:
    blocks = [TAKE(64, 1000 + i) for i in range(3 * KEPT)]
    assert len(set(blocks)) == len(blocks)
    for block in blocks:
        ctypes.memset(block, 1, 1000)
    for block in blocks:
        GIVE(block)


def test_threads_have_blocks_of_their_own() -> None:
    """Each writes its number all over a block, and finds nothing else there."""
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(300):
            size = 1000 * (1 + (turn + number) % 5)
            blocks = [TAKE(64, size) for _ in range(3)]
            views = [np.frombuffer((ctypes.c_ubyte * size).from_address(block), np.uint8) for block in blocks]
            for i, view in enumerate(views):
                view[:] = number + 10 * i
            wrong.extend(number for i, view in enumerate(views) if (view != number + 10 * i).any())
            for block in blocks:
                GIVE(block)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kernels_find_the_functions() -> None:
    found = resolve_symbols(["relax_scratch_take", "relax_scratch_give"])
    assert sorted(found) == ["relax_scratch_give", "relax_scratch_take"]
    assert found == {name: library_symbol(name) for name in found}
