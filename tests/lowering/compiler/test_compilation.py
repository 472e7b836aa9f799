"""What a build leaves behind: code, and nothing of the IR."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Operation

from lowering import build
from lowering.compiler.compilation import Mode
from lowering.parsing import parse_module

EXAMPLE = Path(__file__).parents[3] / "examples" / "mvp.mlir"


def _operations() -> int:
    gc.collect()
    return sum(isinstance(each, Operation) for each in gc.get_objects())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "nativ"}, ValueError, "mode expected native or bytecode, got nativ"),
        ({"opt_level": 4}, ValueError, "opt_level expected 0 to 3, got 4"),
        ({"target": "hots"}, ValueError, 'unknown target "hots"'),
        ({"target": 5}, TypeError, "target expected a Target, or the text of one, got int"),
        ({"weights": ["w"]}, TypeError, "weights expected arrays by name, got list"),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        build(parse_module(EXAMPLE.read_text()), **options)


def test_what_is_no_module():
    module = parse_module(EXAMPLE.read_text())
    with pytest.raises(TypeError, match=r"build expected a module \(builtin.module\), got str"):
        build(str(module))
    with pytest.raises(TypeError, match=r"got PrimFuncOp; put it into one: ModuleOp\(\[function\]\)"):
        build(next(iter(module.ops)))


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_operations_are_released(mode: Mode):
    text = EXAMPLE.read_text()

    def built() -> int:
        build(parse_module(text), mode=mode, cache=False)
        return _operations()

    built()  # what all programs have in common is kept
    assert built() == built()
