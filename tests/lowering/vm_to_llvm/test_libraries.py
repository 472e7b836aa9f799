"""Shared libraries: what kernels call is in them, so that a process without the compiler opens them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lowering import build
from relax_dialect.builder import BlockBuilder

USER = """
import sys
import numpy as np
import tvm_ffi

main = tvm_ffi.load_module(sys.argv[1]).main
for m, k, n in ((300, 200, 700), (1, 1, 1), (0, 3, 4)):
    x, w = np.random.rand(m, k).astype("f4"), np.random.rand(k, n).astype("f4")
    np.testing.assert_allclose(np.from_dlpack(main(x, w)), x @ w, rtol=1e-4)
assert "lowering" not in sys.modules
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_threads_and_memory_of_kernels_are_in_the_library(tmp_path: Path):
    bb = BlockBuilder()
    with bb.function("main", {"x": ("m", "k"), "w": ("k", "n")}) as (x, w):
        bb.emit_func_output(x @ w)
    build(bb.get()).export_library(tmp_path / "m.so")
    command = [sys.executable, "-c", USER, str(tmp_path / "m.so")]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "2"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
