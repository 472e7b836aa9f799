"""Sizes that 64 bits do not hold: an error in every mode, and never memory of a wrong size."""

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.parsing import parse_module
from tests.support.programs import MODES, as_arguments, as_plain, runner
from vm_dialect import VirtualMachine

SIZES = """
relax.func @shape[%n](%s: !relax.shape<[n]>) -> !relax.shape<[4 * n]> {
  %r = relax.shape [4 * n]
  relax.return %r
}
relax.func @between[%n](%s: !relax.shape<[n]>) -> !relax.shape<[floordiv(4 * n + 1, 5)]> {
  %r = relax.shape [floordiv(4 * n + 1, 5)]
  relax.return %r
}
relax.func @prim[%n](%s: !relax.prim<i64, n>) -> !relax.prim<i64, 5 - 3 * n> {
  %r = relax.prim 5 - 3 * n
  relax.return %r
}
relax.func @outer[%n, %m](%x: !relax.tensor<[n, 0], f32>, %y: !relax.tensor<[m, 0], f32>) -> !relax.shape<[n * m]> {
  %r = relax.shape [n * m]
  relax.return %r
}
relax.func @checked[%n](%s: !relax.shape<[n]>, %x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> {
  relax.return %x
}
relax.func @memory[%n](%x: !relax.tensor<[n, 0], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.permute_dims %x
  %1 = relax.matmul %x, %0
  %2 = relax.matmul %1, %1
  %3 = relax.sum %2
  relax.return %3
}
"""
OVERFLOW = r"^a size does not fit into 64 bits"


@pytest.fixture(scope="module", params=MODES)
def sizes(request: pytest.FixtureRequest):
    module = parse_module(SIZES)
    if request.param == "interpret":
        return lambda name: runner(module, name, "interpret")
    machine = VirtualMachine(build(module, mode=request.param))
    return lambda name: lambda *arguments: as_plain(machine[name](*as_arguments(arguments)))


def test_sizes_that_fit(sizes):
    assert tuple(sizes("shape")(tvm_ffi.Shape((1 << 60,)))) == (1 << 62,)
    assert tuple(sizes("between")(tvm_ffi.Shape((1 << 60,)))) == (((1 << 62) + 1) // 5,)
    assert sizes("prim")(3074457345618258602) == 7 - (1 << 63)
    x = np.zeros((1 << 40, 0), np.float32)
    assert tuple(sizes("outer")(x, x[: 1 << 20])) == (1 << 60,)


def test_sizes_that_do_not_fit(sizes):
    for name, arguments in (
        ("shape", [tvm_ffi.Shape((1 << 62,))]),
        ("shape", [tvm_ffi.Shape(((1 << 62) + 5,))]),
        ("between", [tvm_ffi.Shape(((1 << 61) + 1,))]),
        ("prim", [3074457345618258603]),
        ("outer", [np.zeros((1 << 40, 0), np.float32)] * 2),
        # Modulo 2^64 this is the length of the tensor.
        ("checked", [tvm_ffi.Shape(((1 << 62) + 5,)), np.zeros(20, np.float32)]),
    ):
        with pytest.raises(ValueError, match=OVERFLOW):
            sizes(name)(*arguments)


def test_memory_of_sizes_that_do_not_fit(sizes):
    assert sizes("memory")(np.zeros((3, 0), np.float32)) == 0
    for size in (1 << 30, 1 << 31, (1 << 31) + 1, 1 << 40):
        with pytest.raises(MemoryError, match=r"^(cannot|Unable to) allocate"):
            sizes("memory")(np.zeros((size, 0), np.float32))
