"""Sums of products of operands without elements."""

import numpy as np
import pytest

from relax_dialect.interpreter.operators import einsum


@pytest.mark.parametrize("filters", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [0, 1])
def test_an_empty_sum_is_zero(filters: int, step: int):
    """Whatever lies where the elements of the operands would be: here what is no number."""
    memory = np.full(8, np.nan, np.float32)
    x = np.lib.stride_tricks.as_strided(memory, (1, 1, 0, 1, 1), (0,) * 5)
    w = np.lib.stride_tricks.as_strided(memory, (1, filters, 0), (8, 4 * step, 4))
    assert einsum("ngc...,goc->ngo...", x, w).tolist() == np.zeros((1, 1, filters, 1, 1)).tolist()
