"""What the README tells people to type does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
SHELL = [block for kind, block in BLOCKS if not kind and "tir_dialect/" not in block]
OTHERWISE = ("make demo", "source .venv/bin/activate", "make minilm")
"""Commands that install; `tests/test_docs.py` runs what `make demo` runs, and the tests of `examples` the others."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder to write into that has the files of the repository."""
    for name in ("examples", "docs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize("block", SHELL)
def test_commands_as_they_stand(block: str, checkout: Path):
    """One after the other, in one folder, with the environment activated."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in block.splitlines():
        command = line.partition("  #")[0].strip()
        if command in OTHERWISE:
            continue
        result = subprocess.run(
            command, shell=True, capture_output=True, text=True, cwd=checkout, env=environment, check=False
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout or "np.save" in command


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


def test_the_demo_installs_the_run_time_only(tmp_path: Path):
    plan = subprocess.run(
        ["make", "-n", "demo", f"VENV={tmp_path / 'venv'}"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    (install,) = (line for line in plan.stdout.splitlines() if "pip install" in line)
    assert install.endswith("-e .")


def test_what_the_demo_advises_runs(checkout: Path):
    text = (ROOT / "examples" / "demo.py").read_text()
    *commands, pages = re.findall(r'^NEXT = """(.*?)"""', text, flags=re.MULTILINE | re.DOTALL)[0].splitlines()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, cwd=checkout, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
    assert all((ROOT / path).exists() for path in re.findall(r"docs/[\w/.]+\w", pages))
