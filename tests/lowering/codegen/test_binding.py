"""LLVM's library in memory before it is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from lowering.codegen import binding

ROOT = Path(__file__).parents[3]

_AHEAD = """
import sys
import threading

from lowering import build

for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
with open("/proc/self/maps") as maps:
    print("llvmlite.binding" in sys.modules, "libllvmlite" in maps.read())
"""


def test_who_imports_build_has_the_library_soon():
    result = subprocess.run([sys.executable, "-c", _AHEAD], capture_output=True, text=True, cwd=ROOT)
    assert (result.stdout.split(), result.stderr) == (["False", "True"], "")


def test_without_the_library_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binding, "find_spec", lambda name: None)
    binding.load_ahead.__wrapped__()
