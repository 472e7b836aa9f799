"""What an op does with data that has no meaning for it: the same in every mode, and after the passes on graphs.

Indices outside of their axis, divisors that are 0, strides of 0 and shapes that do not fit raise an error or have a
value. Which one is the definition of the op; here nothing but that all agree is tested, at the ends of `i64` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from tests.support.programs import EXACT, as_arguments, as_plain, assert_same, run_pipeline
from vm_dialect import VirtualMachine

PROGRAM = """
relax.func @take[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.take %x, %i axis = 0
  %1 = relax.expand_dims %i axes = [1]
  %2 = relax.gather_nd %x, %1
  %3 = relax.tuple(%0, %2)
  relax.return %3
}
relax.func @gather[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.expand_dims %i axes = [1]
  %1 = relax.gather_elements %x, %0 axis = 0
  relax.return %1
}
relax.func @scatter[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.expand_dims %i axes = [1]
  %1 = relax.astype %0 dtype = f32
  %2 = relax.scatter_elements %x, %0, %1 axis = 0
  %3 = relax.take %x, %i axis = 0 mode = "clip"
  %4 = relax.scatter_nd %x, %0, %3
  %on = relax.prim 1
  %off = relax.prim 0
  %5 = relax.one_hot %i, %on, %off depth = 3
  %6 = relax.tuple(%2, %4, %5)
  relax.return %6
}
relax.func @divide[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.flip %i axis = 0
  %1 = relax.divide %i, %0
  %2 = relax.floor_divide %i, %0
  %3 = relax.mod %i, %0
  %4 = relax.floor_mod %i, %0
  %5 = relax.tuple(%1, %2, %3, %4)
  relax.return %5
}
relax.func @slice[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.match_cast %i : !relax.tensor<[2], i64>
  %1 = relax.flip %0 axis = 0
  %2 = relax.dynamic_strided_slice %x, %0, %1, %0
  relax.return %2
}
relax.func @reshape[%n, %k](%x: !relax.tensor<[n, 3], f32>, %i: !relax.tensor<[k], i64>) -> !relax.object {
  %0 = relax.tensor_to_shape %i
  %1 = relax.reshape %x, %0
  relax.return %1
}
"""
LEAST, MOST = -(2**63), 2**63 - 1
INDICES: tuple[list[int], ...] = (
    [0, 1],
    [-1, -2],
    [2, 0],
    [-3, 1],
    [MOST, 3],
    [LEAST, -1],
    [-1, LEAST],
    [3, 2],
    [2, 3],
    [6, 1],
    [5, 5],
    [],
)
"""Of an axis of two elements; the pairs are also positions and strides of a slice, and a shape."""
SIZES = (2, 0)

FUNCTIONS = ("take", "gather", "scatter", "divide", "slice", "reshape")

Outcome = Callable[[str, np.ndarray, np.ndarray], object]


@pytest.fixture(scope="module")
def ways() -> Mapping[str, Outcome]:
    """What a function of the program gives in each way of running it, or the kind of its error."""
    module = parse_module(PROGRAM)
    optimized = module.clone()
    run_pipeline(optimized, "optimize-graph")
    machines = {mode: VirtualMachine(build(module.clone(), mode=mode)) for mode in ("bytecode", "native")}

    def called(mode: str, name: str, *args: np.ndarray) -> object:
        arguments = as_arguments([each.copy() for each in args])
        try:
            if mode in machines:
                return as_plain(machines[mode][name](*arguments))
            return as_plain(run(optimized if mode == "optimized" else module, name, arguments))
        except ValueError:
            return "ValueError"

    return {mode: partial(called, mode) for mode in ("interpret", "optimized", *machines)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_data_without_meaning_is_the_same_everywhere(ways: Mapping[str, Outcome], name: str) -> None:
    for size in SIZES:
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        for numbers in INDICES:
            indices = np.array(numbers, np.int64)
            expected, *others = (of(name, x, indices) for of in ways.values())
            for way, value in zip([*ways][1:], others, strict=True):
                assert_same(value, expected, EXACT, f"{way}: @{name} of {size} rows and {numbers}")


def test_what_raises_without_meaning(ways: Mapping[str, Outcome]) -> None:
    """Shapes that do not fit and strides of 0 are among the data; indices count as the nearest one that there is."""
    x = np.zeros((2, 3), np.float32)
    raising = {
        name
        for name in FUNCTIONS
        for numbers in INDICES
        if isinstance(ways["native"](name, x, np.array(numbers, np.int64)), str)
    }
    assert raising == {"reshape", "slice"}
