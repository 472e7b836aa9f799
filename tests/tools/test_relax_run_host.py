"""`relax-run` calls host functions with TVM's conventions as any other."""

from pathlib import Path

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from xdsl_relax.cli.relax_run import main

PROGRAMS = Path(__file__).parents[1] / "relax_dialect/frontend/tvmscript/programs"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["native", "bytecode", "interpret"])
def test_host_function(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "add.mlir"
    path.write_text(str(parse((PROGRAMS / "lowered_dynamic.txt").read_text())))
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    for file, array in zip(files, (a, b), strict=True):
        np.save(file, array)
    call = [str(path), "--entry", "add", "--mode", mode, "--input", *files, "--value", "3", "--value", "2.0"]
    assert main([*call, "--output-dir", str(tmp_path)]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "argument_1.npy"), a * 2 + 3)
    capsys.readouterr()
    assert main(call[:-2]) == 1
    assert "expected 4 arguments, got 3" in capsys.readouterr().err
