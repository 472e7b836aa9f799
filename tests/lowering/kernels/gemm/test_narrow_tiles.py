"""Tiles for the columns of the last panel."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.gemm.micro_kernel import MicroKernel, Prefetch, emit_narrow_tiles
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from tests.lowering.kernels.gemm.support import Sum, check_guarded, kernel, known
from tir_dialect.dims import symbol
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

EMPTY = "tir.prim_func @f[%n](%columns: !tir.buffer<[n], f32>, %widths: !tir.buffer<[64], f32>) {}"


def scheduled(text: str) -> str:
    """The code of a kernel."""
    func = kernel(text)
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    return str(func)


def tiles(vectors: int, lanes: int, count: int) -> list[int]:
    """How wide the tile is that has each of the columns, which no other one may have."""
    (func,) = (op for op in parse_module(EMPTY).walk() if isinstance(op, PrimFuncOp))
    code, widths = Code(func.body.block, func.location), func.params[-1]

    def emit(kind: MicroKernel, first: SSAValue) -> None:
        assert bool(kind.prefetches) is ((kind.vectors, kind.lanes) == (vectors, lanes))
        for column in range(kind.vectors * kind.lanes):
            place = [code.add(first, column)]
            width = code.number(kind.vectors * kind.lanes, f32)
            code.store(code.add_floats(code.load(widths, place), width), widths, place)

    whole = MicroKernel(f32, 8, vectors, lanes, prefetches=(Prefetch(0, 0, 1),))
    emit_narrow_tiles(code, whole, code.dim(symbol("n")), emit)
    found = np.zeros(64, np.float32)
    run_prim_func(func, [np.zeros(count, np.float32), found])
    return [int(width) for width in found if width]


@pytest.mark.parametrize(
    ("vectors", "lanes", "count", "expected"),
    [
        *((2, 8, count, 8 * [8]) for count in (1, 8)),
        *((2, 8, count, 16 * [16]) for count in (9, 16, 50)),
        *((2, 16, count, 8 * [8]) for count in (1, 8)),  # halves of a vector that is a cache line
        *((2, 16, count, 16 * [16]) for count in (9, 16)),
        *((2, 16, count, 16 * [16] + 8 * [8]) for count in (17, 24)),
        *((2, 16, count, 32 * [32]) for count in (25, 32, 64)),
        *((3, 16, count, 48 * [48]) for count in (33, 40, 48)),
        (3, 16, 32, 32 * [32]),
        *((1, 16, count, 16 * [16]) for count in (9, 50)),
        (3, 4, 5, 8 * [8]),
    ],
)
def test_no_more_columns_are_multiplied_than_need_be(vectors: int, lanes: int, count: int, expected: list[int]) -> None:
    assert tiles(vectors, lanes, count) == expected


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 12, 24, 40, 56])
def test_lengths_that_decide_how_few_columns_are_multiplied(n: int) -> None:
    for m, k in ((1, 3), (40, 7), (40, 15), (40, 33), (70, 64), (9, 300)):
        check_guarded(Sum("mk,kn->mn"), {"m": m, "n": n, "k": k})


def test_very_few_columns_of_short_k_are_no_dot_products() -> None:
    code = {k: scheduled(known(400, k, 3)) for k in (23, 24)}
    assert "routine.streamed" in code[23]
    assert "routine.streamed" not in code[24]
