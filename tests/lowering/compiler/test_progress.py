"""The bar appears for what takes long, and only on a stream."""

import io

import pytest

from lowering import build
from lowering.debug import ProgressBar
from lowering.parsing import parse_module


def test_what_is_quick_leaves_no_trace():
    stream = io.StringIO()
    bar = ProgressBar(stream, "kernels")
    bar.show(1, 2, "a")
    bar.close()
    assert stream.getvalue() == ""


def test_bar(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lowering.debug.PATIENCE", 0)
    stream = io.StringIO()
    bar = ProgressBar(stream, "kernels")
    bar.show(1, 2, "exp")
    assert stream.getvalue().startswith("\r[" + "#" * 15 + "." * 15 + "] 1/2 kernels  exp ")
    bar.close()
    assert stream.getvalue().endswith("\n")


def test_no_stream():
    bar = ProgressBar(None, "kernels")
    bar.show(0, 0, "nothing")
    bar.close()


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_build(mode: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lowering.debug.PATIENCE", 0)
    text = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""
    stream = io.StringIO()
    build(parse_module(text), mode=mode, progress=stream, cache=False)
    assert "0/1 kernels  exp" in stream.getvalue()
    assert stream.getvalue().endswith("\n")
