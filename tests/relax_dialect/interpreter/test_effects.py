"""`relax.assert` and `relax.print` in every mode."""

import re

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from lowering.parsing import parse_module
from tests.support.programs import MODES, runner

PRINT = """
relax.func @main[%n](
    %x: !relax.tensor<[n], bf16>, %p: !relax.prim<f64>, %b: !relax.prim<i1>, %s: !relax.shape<[_, _]>
  ) -> !relax.tuple<> impure {
  %size = relax.prim n
  %text = relax.string "text"
  %type = relax.dtype bf16
  %none = relax.null
  %pair = relax.tuple(%size, %s)
  relax.print "nothing"()
  relax.print "{} at {}: {}{}"(%x, %size, %p, %b)
  relax.print "{} {} {} {}"(%text, %type, %none, %pair)
  %r = relax.tuple()
  relax.return %r
}
"""

ASSERT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %flag: !relax.prim<i1>) -> !relax.prim<i64> impure {
  %size = relax.prim n
  relax.assert %flag, "got {} rows of {}% {name}"(%size, %size)
  relax.return %size
}
relax.func @integers[%n](%x: !relax.tensor<[n], f32>, %flag: !relax.tensor<[], i1>) -> !relax.prim<i64> impure {
  %size = relax.prim n
  relax.assert %flag, "got {} rows, 100%"(%size)
  relax.return %size
}
relax.func @tensors[%n](%x: !relax.tensor<[n], f32>, %flag: !relax.prim<i1>) -> !relax.prim<i64> impure {
  %size = relax.prim n
  relax.assert %flag, "got {}, expected {} numbers"(%x, %size)
  relax.assert %flag, "never"()
  relax.return %size
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_print(mode: str, capsys: pytest.CaptureFixture[str]):
    runner(parse_module(PRINT), "main", mode)(np.array([1, 2.5], ml_dtypes.bfloat16), 0.5, True, tvm_ffi.Shape((2, 3)))
    assert capsys.readouterr().out == "nothing\n[1 2.5] at 2: 0.5true\ntext bf16 null (2, [2, 3])\n"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("main", "main: got 2 rows of 2% {name}"),
        ("integers", "integers: got 2 rows, 100%"),
        ("tensors", "tensors: got [1. 2.], expected 2 numbers"),
    ],
)
def test_assert(mode: str, name: str, message: str):
    run = runner(parse_module(ASSERT), name, mode)
    x = np.array([1, 2], np.float32)
    holds, fails = (np.asarray(flag) if name == "integers" else flag for flag in (True, False))
    assert run(x, holds) == 2
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}(\n|$)"):
        run(x, fails)
