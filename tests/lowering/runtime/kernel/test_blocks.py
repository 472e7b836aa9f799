"""Memory of large results that is used again."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lowering import build
from lowering.llvm.compiler import compile_object
from lowering.parsing import parse_module
from lowering.runtime.loading import LoadedCode, load_objects
from lowering.runtime.support import BLOCKS
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

NEGATE = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.negative %x
  relax.return %0
}
"""
MIB = 1 << 20


@pytest.fixture(scope="module")
def negate():
    return VirtualMachine(build(parse_module(NEGATE)))["main"]


@pytest.fixture(scope="module")
def loaded() -> LoadedCode:
    return load_objects([compile_object(BLOCKS.text(), Target.host())])


@pytest.fixture
def take(loaded: LoadedCode):
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(loaded.address("relax_block_take"))


@pytest.fixture
def give(loaded: LoadedCode, take):
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("relax_block_give"))
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p

    def of_size(size: int) -> int:
        block = libc.malloc(ctypes.c_size_t(64))  # whose contents beside the size nobody reads
        ctypes.cast(block, ctypes.POINTER(ctypes.c_size_t))[1] = size
        function(block)
        return block

    yield of_size
    libc.free.argtypes = [ctypes.c_void_p]
    for size in range(1, 257):
        while block := take(size * MIB):
            libc.free(block)


def test_a_kept_block_is_found_by_a_size_up_to_a_quarter_less(take, give) -> None:
    block = give(10 * MIB)
    assert take(10 * MIB + 1) is None
    assert take(8 * MIB - 1) is None
    assert take(8 * MIB) == block
    assert take(8 * MIB) is None


def test_four_blocks_are_kept(take, give) -> None:
    for number in range(6):
        give(MIB << number)
    assert sum(take(MIB << number) is not None for number in range(6)) == 4


def test_blocks_of_256_mib_are_kept_together(take, give) -> None:
    give(256 * MIB + 1)
    assert take(256 * MIB) is None
    assert take(256 * MIB + 1) is None
    small, large = give(100 * MIB), give(156 * MIB)
    assert (take(100 * MIB), take(156 * MIB)) == (small, large)
    give(100 * MIB)
    large = give(157 * MIB)
    assert (take(100 * MIB), take(157 * MIB)) == (None, large)
    assert take(256 * MIB) is None
    largest = give(256 * MIB)
    assert take(256 * MIB) == largest


def address(result: object) -> int:
    return np.from_dlpack(result).ctypes.data  # type: ignore[arg-type]


def test_memory_of_a_result_that_has_gone_is_used_again(negate) -> None:
    x = np.ones(MIB, np.float32)
    first = negate(x)
    second = negate(x)
    assert address(first) != address(second)
    place = address(first)
    del first
    gc.collect()
    third = negate(x[: MIB - 1000])
    assert address(third) == place
    np.testing.assert_array_equal(np.from_dlpack(third), -x[: MIB - 1000])
    np.testing.assert_array_equal(np.from_dlpack(second), -x)


@pytest.mark.parametrize(
    ("size", "alignment"), [(1, 64), (1000, 64), (1 << 14, 4096), (1 << 18, 4096), (1 << 20, 4096)]
)
def test_large_results_begin_with_a_page(negate, size: int, alignment: int) -> None:
    assert address(negate(np.ones(size, np.float32))) % alignment == 0


def test_threads_never_share_a_block(negate) -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = np.full(int(rng.integers(250_000, 400_000)), seed, np.float32)
            results = [np.from_dlpack(negate(x + k)) for k in range(3)]
            for k, result in enumerate(results):
                assert (result == -(seed + k)).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, [10, 20, 30, 40]))


@pytest.mark.slow
def test_a_result_may_outlive_everything() -> None:
    script = f"""
import sys, gc, numpy as np
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine
machine = VirtualMachine(build(parse_module({NEGATE!r})))
result = machine["main"](np.ones(1 << 20, np.float32))
del machine
gc.collect()
sys.kept = [result, np.from_dlpack(result)]
print(int(sys.kept[1].sum()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "-1048576"), done.stderr
