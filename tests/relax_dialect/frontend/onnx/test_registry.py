"""Converters are loaded by the names of their operators."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.families import FAMILIES
from relax_dialect.frontend.onnx.registry import CONVERTERS, find

PACKAGE = "relax_dialect.frontend.onnx"
ROOT = Path(__file__).parents[4]


def test_modules_have_the_converters_that_are_named():
    """Each module all versions of the operators that are named with it, and no others."""
    named = {
        (domain, name): f"{PACKAGE}.{family}"
        for domain, families in FAMILIES.items()
        for family, names in families.items()
        for name in names.split()
    }
    for module in dict.fromkeys(named.values()):
        import_module(module)
    found = {key: {each.__module__ for each in versions.values()} for key, versions in CONVERTERS.items()}
    assert found == {key: {module} for key, module in named.items()}


def test_an_operator_is_named_once():
    for families in FAMILIES.values():
        names = [name for text in families.values() for name in text.split()]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "version", "domain", "found"),
    [("Relu", 17, "", True), ("Relu", 17, MICROSOFT, False), ("Rellu", 17, "", False), ("TopK", 1, "", True)],
)
def test_find(name: str, version: int, domain: str, found: bool):
    assert (find(name, version, domain) is not None) is found


def test_an_operator_loads_its_module():
    script = f"""
import sys
from {PACKAGE}.registry import find

find("NoSuchOperator", 17)
find("TopK", 17)
print(*(name for name in ("sorting", "vision", "contrib.attention") if f"{PACKAGE}.{{name}}" in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (result.returncode, result.stdout) == (0, "sorting\n"), result.stderr
