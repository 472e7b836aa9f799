"""What is deployed: the page about it, the C++ program, and a server without the compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lowering import build
from lowering.parsing import parse_module
from vm_dialect import ExecBuilder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "deploy.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)

has_linker = any(shutil.which(driver) for driver in ("cc", "gcc", "clang"))
has_cmake = shutil.which("cmake") is not None and shutil.which("c++") is not None
needs_linker = pytest.mark.skipif(not has_linker, reason="no linker")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder to write into that has the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@needs_linker
def test_the_commands_and_programs_of_the_page(checkout: Path):
    """The C++ program, too, where there is a compiler."""
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    program = "".join(text for kind, text in BLOCKS if kind == "python")
    shown = [text for kind, text in BLOCKS if not kind and "pip install" not in text]  # those need a network
    commands = [line for text in shown for line in text.splitlines()]
    outputs: list[str] = []
    for command in ([sys.executable, "-c", program], *commands):
        is_cpp = not isinstance(command, list) and command.startswith(("cmake", "build/"))
        if is_cpp and not has_cmake:
            continue
        shell = not isinstance(command, list)
        done = subprocess.run(command, shell=shell, cwd=checkout, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0].startswith("<Library myfunc(x: f32[n, m]) -> f32[m * n]>\nTensor([2.718")
    if has_cmake:
        assert "myfunc: 1 2.71828 7.38906 20.0855 ...\n" * 2 in outputs


SERVER = """
import sys

class Blocked:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("xdsl", "llvmlite", "lowering", "relax_dialect", "tir_dialect", "onnx", "torch"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
sys.path.insert(0, sys.argv[1])
import numpy as np
import xdsl_relax as xr

assert xr.__file__.startswith(sys.argv[1])
x = np.ones((2, 3), np.float32)
library = xr.load_library("m.so")
np.testing.assert_allclose(library["main"](x=x), np.exp(x), rtol=1e-6)
(y,) = xr.Session("m.so").run(None, {"x": x})
np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
assert xr.VirtualMachine(xr.Executable.load("m.rvm"))["main"](3) == 3
try:
    xr.VirtualMachine(xr.Executable.load("native.rvm"))
except RuntimeError as error:
    print(error)
"""


@needs_linker
def test_the_server_has_what_it_needs(tmp_path: Path):
    """The packages of `packaging/server` alone, in a process that finds nothing of the compiler."""
    with open(ROOT / "packaging" / "server" / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    for package in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(
            ROOT / package.replace(".", "/"),
            tmp_path / "server" / package.replace(".", "/"),
            ignore=lambda folder, names: [name for name in names if not name.endswith(".py")],
        )
    module = parse_module(
        "relax.func @main[%n](%x: !relax.tensor<[n, 3], f32>) -> !relax.tensor<[n, 3], f32> {\n"
        "  %0 = relax.exp %x\n  relax.return %0\n}"
    )
    made = build(module)
    made.export_library(tmp_path / "m.so")
    made.save(tmp_path / "native.rvm")
    bytecode = ExecBuilder()
    with bytecode.function("main", 1):
        bytecode.emit_ret(bytecode.r(0))
    bytecode.get().save(tmp_path / "m.rvm")
    command = [sys.executable, "-c", SERVER, str(tmp_path / "server")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "needs a loader: install the package 'lowering'" in done.stdout


def test_the_server_depends_on_what_the_compiler_depends_on_less_the_compiler():
    with open(ROOT / "packaging" / "server" / "pyproject.toml", "rb") as file:
        server = tomllib.load(file)["project"]
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    assert server["version"] == project["version"]
    assert set(project["dependencies"]) - set(server["dependencies"]) == {"xdsl==0.74.*", "llvmlite>=0.50,<0.51"}
