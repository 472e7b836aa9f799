"""The names of the package, and those around it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import xdsl_relax

EXAMPLE = Path(__file__).parents[2] / "examples" / "mvp.mlir"
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("name", xdsl_relax.__all__)
def test_every_name_is_there(name: str):
    assert getattr(xdsl_relax, name) is not None
    assert name in dir(xdsl_relax)


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError) as caught:
        xdsl_relax.Sesion
    assert str(caught.value) == "module 'xdsl_relax' has no attribute 'Sesion'; did you mean 'Session'?"


def test_importing_the_package_loads_none_of_its_parts():
    script = "import sys\nbefore = set(sys.modules)\nimport xdsl_relax\nprint(*sorted(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name for name in result.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert loaded == {"vm_dialect", "vm_dialect.lazy_names", "xdsl_relax", "xdsl_relax.own_packages"}


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder of a user who has files with the names of our packages."""
    for name in ("tools", "relax_dialect", "tir_dialect", "vm_dialect"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "lowering.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "mvp.mlir").write_text(EXAMPLE.read_text())
    return tmp_path


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    [
        "relax-opt mvp.mlir",
        "relax-translate mvp.mlir --emit listing",
        "relax-run mvp.mlir --entry myfunc --random f32[3,4] --mode interpret",
        "xdsl-opt mvp.mlir",
    ],
)
def test_tools_find_our_packages(command: str, beside: Path):
    script, *arguments = command.split()
    environment = {"PYTHONPATH": str(beside), "PATH": str(BIN), "HOME": str(beside)}
    result = subprocess.run([BIN / script, *arguments], capture_output=True, text=True, cwd=beside, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "myfunc" in result.stdout


def test_scripts_find_our_packages(beside: Path):
    (beside / "script.py").write_text("import xdsl_relax as xr\nprint(xr.load('mvp.mlir'))")
    result = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=beside)
    assert (result.returncode, result.stderr) == (0, "")
    assert "relax.func @myfunc" in result.stdout


def test_a_module_of_such_a_name_that_is_loaded_already(tmp_path: Path):
    (tmp_path / "lowering.py").write_text("")
    (tmp_path / "script.py").write_text("import lowering\nimport xdsl_relax")
    result = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path)
    assert result.stderr.splitlines()[-1] == (
        "ImportError: xdsl_relax has a package lowering, but a module of this name is loaded from "
        f"{tmp_path / 'lowering.py'}: rename that one, or import xdsl_relax before it"
    )


def test_what_is_installed_starts_in_the_package():
    """Another distribution, or a user, may have a package `tools`."""
    points = [*entry_points(group="console_scripts"), *entry_points(group="xdsl.universe")]
    ours = [point.value for point in points if point.dist is not None and point.dist.name == "xdsl-relax"]
    assert len(ours) >= 4
    assert all(value.startswith("xdsl_relax.") for value in ours), ours
