"""What a build leaves behind: code, and nothing of the IR."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from xdsl.ir import Operation

from lowering import build
from lowering.compilation import Mode
from lowering.parsing import parse_module

EXAMPLE = Path(__file__).parents[2] / "examples" / "mvp.mlir"


def _operations() -> int:
    gc.collect()
    return sum(isinstance(each, Operation) for each in gc.get_objects())


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_operations_are_released(mode: Mode):
    text = EXAMPLE.read_text()

    def built() -> int:
        build(parse_module(text), mode=mode, cache=False)
        return _operations()

    built()  # what all programs have in common is kept
    assert built() == built()
