"""What the orders in which a kernel may go through rows have in common.

Rows are taken in one of four orders: several short ones side by side, each in lanes of its own or one after the other
in each pass (`row_blocks.py`); by twos in each pass (`row_pairs.py`); each one's last pass with the next one's first
(`row_pipeline.py`); or one after the other (`rows.py`, which chooses).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.stages import Stage

At: TypeAlias = Mapping[int, SSAValue]
"""Values of axes."""

Pass: TypeAlias = Callable[[Sequence[Stage], int, At, Mapping[Stage, At]], None]
"""Emits stages together, which have so many axes for rows, at a row; some of them at another."""


class RowOrder(Protocol):
    """Code for the rows along the innermost of their axes."""

    def emit(self, at: At, low: SSAValue | None, high: SSAValue) -> None:
        """The rows from `low` to before `high`, for given values of the axes around."""
