"""Kernels that read one tensor by the size of another: every mode refuses sizes that do not fit, in the same words."""

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder, op, tensor
from tests.support.programs import MODES, runner
from tir_dialect import te

WRITTEN = """
tir.prim_func @shifted[%n, %m](%A: !tir.buffer<[m], f32>, %B: !tir.buffer<[n], f32>) {
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    tir.block "copy" (%v = spatial %i in %n) {
      %at = arith.addi %v, %c1 : index
      %a = tir.load %A[%at]
      tir.store %a, %B[%v]
    }
  }
}
relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[n], f32> {
  %z = relax.call_tir @shifted(%y) : !relax.tensor<[n], f32>
  %r = relax.add %x, %z
  relax.return %r
}
"""


def emitted() -> ModuleOp:
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(("n",)), "y": tensor(("m",))}) as (x, y):
        total = bb.emit_te(lambda a, b: te.compute((a.shape[0],), lambda i: a[i] + b[i], name="total"), x, y)
        bb.emit_func_output(op.negative(total))
    return bb.get()


def unknown() -> ModuleOp:
    """The sizes have no names."""
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor((None,)), "y": tensor((None,))}) as (x, y):
        bb.emit_func_output(bb.emit_te(lambda a, b: te.compute((a.shape[0],), lambda i: a[i] - b[i]), x, y))
    return bb.get()


PROGRAMS = {"emitted": emitted, "written": lambda: parse_module(WRITTEN)}
MESSAGES = {
    "emitted": "te: a 'tir.load' whose index 0 of %b reaches n - 1, expected less than m",
    "written": "shifted: a 'tir.load' whose index 0 of %A reaches n, expected less than m",
}


@cache
def program(name: str, mode: str):
    return runner(PROGRAMS[name](), "main", mode)


def values(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n", "m"), [(5, 5), (20, 40), (0, 0), (0, 3)])
def test_sizes_that_fit(mode: str, n: int, m: int):
    expected = -(values(n) + values(m)[:n])
    np.testing.assert_array_equal(program("emitted", mode)(values(n), values(m)), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n", "m"), [(4, 5), (20, 40), (0, 0), (0, 3)])
def test_nothing_is_read_for_an_empty_result(mode: str, n: int, m: int):
    np.testing.assert_array_equal(program("written", mode)(values(n), values(m)), values(n) + values(m)[1 : n + 1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("n", "m"), [(5, 4), (1, 0), (1000, 3)])
def test_sizes_that_do_not_fit(name: str, mode: str, n: int, m: int):
    with pytest.raises(ValueError, match=MESSAGES[name]):
        program(name, mode)(values(n), values(m))
    program(name, mode)(values(2), values(3))  # the next call is not affected


@pytest.mark.parametrize("mode", MODES)
def test_sizes_without_names(mode: str):
    run = runner(unknown(), "main", mode)
    np.testing.assert_array_equal(run(values(2), values(3)), np.float32([0, 0]))
    with pytest.raises(ValueError, match=r"te: a 'tir.load' whose index 0 of %b reaches \w+ - 1, expected less than"):
        run(values(3), values(2))
