"""LLVM's library in memory before it is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from lowering.llvm import binding

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


_FORKED = """
import os
import threading

from lowering.llvm.binding import llvm, load_ahead

load_ahead()
child = os.fork()
if child == 0:
    llvm()
    os._exit(0)
print(threading.active_count(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_has_all_of_it():
    """A fork waits for the thread, which it would end."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKED]  # Python 3.12 warns
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (result.stdout.split(), result.stderr) == (["1", "0"], "")


def test_without_the_library_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binding, "find_spec", lambda name: None)
    binding.load_ahead.__wrapped__()
