"""Notebooks, by the shell that runs their cells."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
from pathlib import Path

import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").rglob("*.ipynb"))

RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in json.loads(sys.stdin.read()):
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    if result.result is not None:
        shown, _ = shell.display_formatter.format(result.result)
        print("SHOWN", json.dumps(shown))
"""


def shown_by(cells: list[str], folder: Path) -> list[dict[str, str]]:
    """What a notebook shows under those of its cells that end in a value."""
    environment = {"IPYTHONDIR": str(folder), "HOME": str(folder)}
    command = [sys.executable, "-c", RUN]
    result = subprocess.run(
        command, input=json.dumps(cells), capture_output=True, text=True, cwd=folder, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return [json.loads(line[6:]) for line in result.stdout.splitlines() if line.startswith("SHOWN ")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run(path: Path, tmp_path: Path):
    notebook = json.loads(path.read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"), "clear the outputs"
    assert shown_by(cells, tmp_path)


def test_programs_are_shown_in_colours(tmp_path: Path):
    cells = [
        "import xdsl_relax as xr",
        "module = xr.parse('relax.func @main(%x: !relax.object) { relax.return %x }')\nmodule",
        "xr.compile(module)",
        "xr.show(module)",
    ]
    module, model = shown_by(cells, tmp_path)
    assert '<span style="color:#8030a0">relax.return</span>' in module["text/html"]
    assert module["text/plain"].startswith("builtin.module {\n  relax.func @main")
    assert "<pre>&lt;Model main(x: object)" in model["text/html"]
    assert model["text/plain"] == "<Model main(x: object) -> object, native>"


SCRIPT = """
from relax_dialect.frontend.tvmscript import ir as I, relax as R

before = 1

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        return R.exp(x)
"""


@pytest.mark.slow
def test_classes_of_cells_are_read(tmp_path: Path):
    (shown,) = shown_by(["import xdsl_relax\n" + SCRIPT + "\nModule\n"], tmp_path)
    assert "relax.exp %x" in shown["text/plain"]


def test_classes_of_lines_without_a_file(monkeypatch: pytest.MonkeyPatch):
    """As notebooks have them: of a module without a file, with lines that tracebacks show."""
    name = "<cell 1>"
    monkeypatch.setitem(linecache.cache, name, (len(SCRIPT), None, SCRIPT.splitlines(keepends=True), name))
    scope: dict[str, object] = {"__name__": "__nowhere__"}
    exec(compile(SCRIPT, name, "exec"), scope)
    assert "relax.exp %x" in str(scope["Module"])
    wrong = SCRIPT.replace("R.exp", "R.expp")
    monkeypatch.setitem(linecache.cache, name, (len(wrong), None, wrong.splitlines(keepends=True), name))
    with pytest.raises(TVMScriptError) as caught:
        exec(compile(wrong, name, "exec"), {"__name__": "__nowhere__"})
    assert str(caught.value).startswith("<cell 1>:10:16: ")
    monkeypatch.delitem(linecache.cache, name)
    with pytest.raises(TVMScriptError, match="the source of Module cannot be read"):
        exec(compile(wrong, name, "exec"), {"__name__": "__nowhere__"})
