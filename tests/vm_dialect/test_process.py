"""PyTorch is loaded only by those who want it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vm_dialect.process import without_torch


def test_pytorch_can_be_imported_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "torch.py").write_text("NUMBER = 3")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with without_torch(), pytest.raises(ImportError):
        __import__("torch")
    assert __import__("torch").NUMBER == 3
    with without_torch():
        assert __import__("torch").NUMBER == 3
    monkeypatch.delitem(sys.modules, "torch")


@pytest.mark.parametrize("tool", ["relax_run", "relax_opt", "relax_translate"])
def test_tools_do_not_import_pytorch(tmp_path: Path, tool: str):
    (tmp_path / "torch.py").write_text("raise AssertionError('this takes long')")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import xdsl_relax.cli.{tool}, tvm_ffi"
    subprocess.run([sys.executable, "-c", script], check=True)
