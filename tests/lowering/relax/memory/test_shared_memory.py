"""Memory that several values have, or that is not the program's to give away: calls in place, constants, copies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from vm_dialect import VirtualMachine

# y[i] = y[i] + x[n - 1 - i]: what is read is written earlier or later if x and y are one tensor.
KERNEL = """
tir.prim_func private @add_reversed[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "add" (%vi = spatial %i in %n) {
      %c1 = arith.constant 1 : index
      %last = arith.subi %n, %c1 : index
      %j = arith.subi %last, %vi : index
      %x = tir.load %X[%j]
      %y = tir.load %Y[%vi]
      %z = arith.addf %x, %y : f32
      tir.store %z, %Y[%vi]
    }
  }
}
"""

CALL = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %0 = relax.call_tir_inplace @add_reversed(%x, %y) inplace [1] : !relax.tensor<[n], f32>
  relax.return %0
}
"""

MODES = ("interpreter", "bytecode", "native")


def main_of(text: str, mode: str) -> Callable[..., Any]:
    """The function `main` of a program, in one of the modes."""
    module = parse_module(text)
    if mode == "interpreter":
        return lambda *arguments: run(module, "main", arguments)
    return VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))["main"]


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_overlap_are_refused(mode: str):
    main = main_of(KERNEL + CALL, mode)
    data = np.arange(6, dtype=np.float32)
    for x, y in ((data, data), (data[1:], data[:-1]), (data[:-1], data[1:])):
        with pytest.raises(
            ValueError, match=r"add_reversed: argument #1 \(Y\): overlaps argument #0 \(X\): pass a copy"
        ):
            main(x, y)
    assert np.array_equal(data, np.arange(6))
    assert np.array_equal(np.from_dlpack(main(data[:3], data[3:])), [5, 5, 5])  # one after the other
    assert np.from_dlpack(main(data[2:2], data[:0])).shape == (0,)  # nothing in the midst of something


RETURNED = {
    "constant": "%r = relax.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>",
    "folded": "%s = relax.shape [3] %r = relax.zeros %s dtype = f32",
    "view": "%c = relax.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32> %r = relax.flatten %c",
    "through a call": "%c = relax.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> %r = relax.call @same(%c)",
    "twice negative": "%0 = relax.negative %x %r = relax.negative %0",
    "permuted back": "%0 = relax.permute_dims %x %r = relax.permute_dims %0",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("body", RETURNED.values(), ids=RETURNED)
def test_what_is_returned_is_the_callers(body: str, mode: str):
    main = main_of(
        f"""relax.func @main(%x: !relax.tensor<[3], f32>) -> !relax.tensor<[3], f32> {{ {body} relax.return %r }}
        relax.func private @same(%x: !relax.tensor<[3], f32>) -> !relax.tensor<[3], f32> {{ relax.return %x }}""",
        mode,
    )
    x = np.array([1, 2, 3], np.float32)
    first = np.from_dlpack(main(x))
    expected = first.copy()
    first += 1
    assert np.array_equal(x, [1, 2, 3])
    assert np.array_equal(np.from_dlpack(main(x)), expected)


WRITTEN = """
relax.func private @write[%n](
    %x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>
) -> !relax.tensor<[n], f32> impure {
  %0 = relax.call_tir_inplace @add_reversed(%x, %y) inplace [1] : !relax.tensor<[n], f32>
  %1 = relax.exp %0
  relax.return %1
}
relax.func @main(%x: !relax.tensor<[3], f32>) -> !relax.tensor<[3], f32> impure {
  %c = relax.constant dense<0.0> : tensor<3xf32>
  %0 = relax.call @write(%x, %c) impure
  relax.return %0
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_constant_that_a_function_writes_into_stays(mode: str):
    main = main_of(KERNEL + WRITTEN, mode)
    x = np.array([1, 2, 3], np.float32)
    for _ in range(2):
        assert np.allclose(np.from_dlpack(main(x)), np.exp([3, 2, 1]))
