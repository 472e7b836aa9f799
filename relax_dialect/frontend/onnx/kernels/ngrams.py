"""Counts of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tir_dialect import te


@dataclass(frozen=True)
class Grams:
    """How n-grams are counted: in how many columns, with how many places skipped between items, and how many."""

    columns: int
    skips: int
    count: int


def count_grams(x: te.Tensor, table: te.Tensor, kind: Grams) -> te.Tensor:
    """How often each n-gram occurs in each row; rows of the table are column, length, and items of an n-gram."""

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        data, grams = ins
        with b.block("count_grams", ("spatial", x.shape[0], "row")) as (row,):
            found = b.alloc((), "i64", "found")
            with b.for_range(0, kind.columns, "c") as c:
                b.store(outs[0], (row, c), te.const(0.0, "f32"))
            with (
                b.for_range(0, kind.count, "g") as g,
                b.for_range(1, kind.skips + 2, "skip") as skip,
                b.for_range(0, x.shape[1], "start") as start,
            ):
                size = b.let(te.cast(grams[g, 1], "index"), "size")
                fits = start + skip * (size - 1) < x.shape[1]
                counts = te.logical_or(size > 1, skip < 2)
                with b.if_(te.logical_and(fits, counts)):
                    b.store(found, (), 1)
                    with b.for_range(0, size, "j") as j, b.if_(data[row, start + j * skip] != grams[g, j + 2]):
                        b.store(found, (), 0)
                    column = b.let(te.cast(grams[g, 0], "index"), "column")
                    b.store(outs[0], (row, column), outs[0][row, column] + te.cast(found[()], "f32"))

    return te.extern([((x.shape[0], kind.columns), "f32")], [x, table], body, name="count_grams")[0]
