"""What the README tells people to type does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if not kind for line in block.splitlines() if line.startswith("relax-")]
PYTHON = [block for kind, block in BLOCKS if kind == "python"]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, tmp_path: Path):
    import numpy as np

    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    command = command.replace("x.npy", str(tmp_path / "x.npy")).replace(" out ", f" {tmp_path} ")
    result = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.mark.parametrize("source", PYTHON, ids=range(len(PYTHON)))
def test_python(source: str):
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr


def test_the_example_is_the_file():
    shown = next(block for kind, block in BLOCKS if kind == "mlir")
    assert shown.strip() in (ROOT / "examples" / "mvp.mlir").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:examples|docs|tests)/[\w./]+)`", README))))
def test_files_that_are_mentioned_exist(path: str):
    assert (ROOT / path).exists()


def test_the_tree_is_the_one_there_is():
    tree = next(block for kind, block in BLOCKS if block.startswith("tir_dialect/"))
    package = ROOT
    for line in tree.splitlines():
        names = re.findall(r"(?<![\w/])(\w+(?:/|\.py))", line)
        if not line.startswith(" "):
            package = ROOT / names.pop(0)
            assert package.exists(), line
        for name in names:
            assert (package / name).exists(), f"{line.strip()}: {name}"
