"""Memory that is given back, or taken only where it is written."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from vm_dialect.host_memory import give_back_library, unwritten_mappings, zeros_on_demand

SMAPS = """\
7f00-7f10 r-xp 00000000 08:01 12 /a folder/libthis.so.1
Rss:  64 kB
Anonymous:             0 kB
7f10-7f20 r--p 00010000 08:01 12 /a folder/libthis.so.1
Anonymous:             4 kB
7f20-7f30 rw-p 00020000 08:01 12 /a folder/libthis.so.1
Anonymous:             0 kB
7f30-7f40 r-xp 00000000 08:01 13 /a folder/libother.so
Anonymous:             0 kB
7f40-7f50 rw-p 00000000 00:00 0
Anonymous:             0 kB
"""


def test_only_what_was_never_written_is_given_back():
    assert list(unwritten_mappings(SMAPS.splitlines(keepends=True), "libthis.")) == [(0x7F00, 0x7F10)]


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is mapped")
def test_a_library_works_after_it_was_given_back():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    give_back_library("libllvmlite.")
    assert llvm.get_process_triple() == llvm.get_process_triple()
    assert llvm.Target.from_default_triple().create_target_machine().target_data


@pytest.mark.skipif(sys.platform != "linux", reason="pages are counted by Linux")
def test_zeros_take_memory_where_they_are_written():
    array = zeros_on_demand((64, 1 << 12), np.dtype(np.float32))
    assert array.dtype == np.float32
    array[3, 5] = 1
    assert array.sum() == 1
    pages = (ctypes.c_ubyte * (array.nbytes // mmap.PAGESIZE))()
    resident = ctypes.CDLL(None).mincore
    assert resident(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), pages) == 0
    assert zeros_on_demand((0, 4), np.dtype(np.int8)).shape == (0, 4)
