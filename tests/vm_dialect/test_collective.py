"""Collectives as bytecode of anybody may call them: results that do not fit are errors, and nothing is written."""

from collections.abc import Callable

import numpy as np
import pytest

from vm_dialect.builtins.collective import (
    all_to_all,
    allgather,
    allreduce,
    broadcast,
    own_tile,
    reduce_scatter,
    scatter,
    start_allgather,
    start_reduce_scatter,
)
from vm_dialect.tensors import from_numpy
from vm_dialect.workers import group, join

CALLS: dict[str, tuple[Callable[..., None], tuple[object, ...]]] = {
    "allreduce": (allreduce, ("sum",)),
    "allgather": (allgather, (0,)),
    "reduce_scatter": (reduce_scatter, ("sum", 0)),
    "all_to_all": (all_to_all, (0, 1)),
    "broadcast": (broadcast, ()),
    "scatter": (scatter, (0,)),
    "own_tile": (own_tile, (0,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_that_do_not_fit(name: str):
    function, arguments = CALLS[name]
    x = np.ones((2, 3, 2), np.float32)
    for wrong in (np.zeros((2, 3, 4), np.float32), np.zeros((2, 3), np.float32), np.zeros((2, 3, 2), np.int32)):
        with pytest.raises(ValueError, match=r"expected a result like float32\[2, 3, 2\], got"):
            function("", 1, *arguments, from_numpy(x), from_numpy(wrong))
        assert not wrong.any()
    right = np.zeros_like(x)
    function("", 1, *arguments, from_numpy(x), from_numpy(right))
    np.testing.assert_array_equal(right, x)


@pytest.mark.parametrize("axis", [3, -1])
def test_axes_that_there_are_not(axis: int):
    x, out = np.ones((2, 3, 2), np.float32), np.zeros(0, np.float32)
    with pytest.raises(ValueError, match=f"allgather: expected an axis of 3 dimensions, got {axis}"):
        start_allgather("", 1, axis, from_numpy(x), 2, from_numpy(out))
    with pytest.raises(ValueError, match=f"reduce_scatter: expected an axis of 3 dimensions, got {axis}"):
        start_reduce_scatter("", 1, "sum", axis, from_numpy(x), from_numpy(out))


def test_a_process_is_alone_until_it_joins_others():
    assert group("x").size == 1
    with pytest.raises(ValueError, match='expected 2 workers along axis "x", got 1: run the program with as many'):
        group("x", 2)
    join({"": group("")})
    try:
        with pytest.raises(ValueError, match='no axis "x" in the mesh'):
            group("x")
    finally:
        join({})
