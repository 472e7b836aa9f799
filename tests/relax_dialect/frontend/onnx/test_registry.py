"""Converters are loaded by the names of their operators."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from relax_dialect.frontend.index import ONNX
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import CONVERTERS, converts, find
from relax_dialect.loading import names_in

PACKAGE = "relax_dialect.frontend.onnx"
ROOT = Path(__file__).parents[4]


def test_modules_have_the_converters_that_are_indexed():
    """Each module all versions of the operators that are indexed with it, and no others."""
    for module in ONNX:
        import_module(f"{PACKAGE}.{module}")
    found = {name: {each.__module__ for each in versions.values()} for name, versions in CONVERTERS.loaded().items()}
    assert found == {name: {f"{PACKAGE}.{module}"} for name, module in names_in(ONNX, "").items()}


def test_an_operator_is_indexed_once():
    names = [name for text in ONNX.values() for name in text.split()]
    assert len(names) == len(set(names)) == len(CONVERTERS)


@pytest.mark.parametrize(
    ("name", "version", "domain", "found"),
    [("Relu", 17, "", True), ("Relu", 17, MICROSOFT, False), ("Rellu", 17, "", False), ("TopK", 1, "", True)],
)
def test_find(name: str, version: int, domain: str, found: bool):
    assert (find(name, version, domain) is not None) is found


def test_a_registered_converter_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CONVERTERS, "_entries", dict(CONVERTERS.loaded()))
    own = converts("Relu", since=20)(lambda node: node[0])
    assert find("Relu", 20) is own
    assert find("Relu", 19) not in (None, own)
    alone = converts("Ours", domain="ours")(lambda node: node[0])
    assert find("Ours", 1, "ours") is alone


def test_an_operator_loads_its_module():
    script = f"""
import sys
from {PACKAGE}.node import find

find("NoSuchOperator", 17)
find("TopK", 17)
print(*(name for name in ("reduction", "vision", "contrib.attention") if f"{PACKAGE}.{{name}}" in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (result.returncode, result.stdout) == (0, "reduction\n"), result.stderr
