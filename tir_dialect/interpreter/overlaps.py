"""Arguments whose memory overlaps although a function relies on it that they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tir_dialect.analysis.written import written_buffers
from tir_dialect.ops.function import PrimFuncOp

Pairs = Sequence[tuple[int, int]]
"""Positions of two parameters, the later one first."""


def pairs_apart(func: PrimFuncOp) -> Pairs:
    """The parameters of which one is written, so that the other one must be apart from it."""
    if func.may_alias is not None:
        return ()
    written = written_buffers(func)
    changes = [param in written for param in func.params]
    return [
        (index, other) for index in range(len(changes)) for other in range(index) if changes[index] or changes[other]
    ]


def check_apart(
    func: PrimFuncOp,
    pairs: Pairs,
    args: Sequence[np.ndarray | int | float | np.number[Any] | np.bool_],
    *,
    inner: bool = False,
) -> None:
    """Raises `ValueError` if such arguments overlap, as compiled functions do: from the first to the last byte.

    `inner` arguments are those of `tir.call`: views of one buffer, which may lie between each other's rows.
    """
    for index, other in pairs:
        one, two = args[index], args[other]
        if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) and _overlap(one, two, inner):
            subject = f"{func.sym_name.data}: {_describe(func, index)}"
            raise ValueError(f"{subject}: overlaps {_describe(func, other)}: pass a copy")


def _overlap(one: np.ndarray, two: np.ndarray, inner: bool) -> bool:
    if not np.may_share_memory(one, two):
        return False
    return not inner or np.shares_memory(one, two)


def _describe(func: PrimFuncOp, index: int) -> str:
    name = func.params[index].name_hint
    return f"argument #{index} ({name})" if name else f"argument #{index}"
