"""`relax-translate --import-tvmscript`: the module as text, or the error on stderr."""

from pathlib import Path

import pytest

from lowering.parsing import parse_module
from xdsl_relax.cli.relax_translate import main

PROGRAM = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    return R.exp(x)
"""


def test_module_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert main(["--import-tvmscript", str(path)]) == 0
    shown = capsys.readouterr().out
    parse_module(shown, "shown.mlir").verify()
    assert main(["--import-tvmscript", str(path), "-o", str(tmp_path / "out.mlir")]) == 0
    assert (tmp_path / "out.mlir").read_text() == shown


def test_error_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("R.exp", "R.exq"))
    assert main(["--import-tvmscript", str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:4:12: error: there is no operator R.exq; did you mean" in shown
    assert "    return R.exq(x)\n           ^" in shown
