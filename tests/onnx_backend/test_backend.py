"""A sample of the backend tests of the onnx package, of many operators; `make test-onnx` runs all of them."""

from __future__ import annotations

import hashlib
from pkgutil import iter_modules

import pytest
from onnx.backend.test.case import node

from tests.onnx_backend.cases import KINDS, Case, load_cases, load_nodes
from tests.onnx_backend.outcome import outcome
from tests.onnx_backend.report import PAGE, report

SLOW = {"averagepool", "lppool", "maxpool"}
"""Files whose expected values take seconds."""
RANDOM = {"bernoulli"}
"""Files that expect the numbers of another generator."""


def _place(name: str) -> str:
    """An order in which names that are alike are no neighbours."""
    return hashlib.sha1(name.encode()).hexdigest()


def _one(cases: list[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: _place(case.name))[:1]


def _sample() -> list[Case]:
    files = {module.name for module in iter_modules(node.__path__) if not module.ispkg} - SLOW - RANDOM
    nodes = [case for file in sorted(files, key=_place)[:50] for case in _one(load_nodes(file))]
    return nodes + sorted(load_cases(KINDS[1:]), key=lambda case: _place(case.name))[:10]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", _sample(), ids=lambda case: case.name)
def test_no_value_is_wrong(case: Case):
    found = outcome(case)
    assert found.status != "wrong", found.reason


@pytest.mark.slow
def test_the_page_is_of_today():
    found = [(case, outcome(case, import_only=True)) for case in load_cases()]
    assert PAGE.read_text(encoding="utf-8") == report(found), "write it by python -m tests.onnx_backend --list"
