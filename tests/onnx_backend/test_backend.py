"""A sample of the backend tests of the onnx package; `make test-onnx` runs all of them."""

from __future__ import annotations

import hashlib

import pytest

from tests.onnx_backend.cases import Case, load_cases
from tests.onnx_backend.outcome import outcome

COUNT = 60
SAMPLE = sorted(load_cases(), key=lambda case: hashlib.sha1(case.name.encode()).hexdigest())[:COUNT]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_no_value_is_wrong(case: Case):
    found = outcome(case)
    assert found.status != "wrong", found.reason
