"""What fusion knows about a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lowering.relax.fusion.fuse_ops import KernelFacts
from tir_dialect import te


@pytest.mark.parametrize(
    ("rank", "element", "moves"),
    [
        pytest.param(2, lambda x, i, j: x[j, i], True, id="other order"),
        pytest.param(2, lambda x, i, j: x[i, i], False, id="diagonal"),
        pytest.param(1, lambda x, i, j: x[j], False, id="broadcast"),
        pytest.param(2, lambda x, i, j: x[j, 3 - i], False, id="reversed"),
    ],
)
def test_only_another_order_of_the_dimensions_moves(rank: int, element: Callable[..., te.Expr], moves: bool):
    x = te.placeholder((4,) * rank, "f32", "x")
    y = te.compute((4, 4), lambda i, j: element(x, i, j), name="y")
    assert KernelFacts.of(te.create_prim_func([x, y], name="kernel")).moves is moves


def test_the_diagonal_has_fewer_dimensions():
    x = te.placeholder((4, 4), "f32", "x")
    y = te.compute((4,), lambda i: x[i, i], name="y")
    assert not KernelFacts.of(te.create_prim_func([x, y], name="kernel")).moves
