"""What the interpreter has for tile registers: arrays of 32-bit groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tir_dialect.interpreter.errors import OutOfRangeError, fail_access
from tir_dialect.ops.tile_registers import LAST_COLUMNS, LAST_ROWS, TILE_SIZE


class TileRegisters:
    """The registers that `tir.configure_tiles` makes: `shape` gives the rows and groups of each."""

    def __init__(self, rest: int):
        if not 0 <= rest <= TILE_SIZE:
            raise OutOfRangeError(f"'tir.configure_tiles' expected at most {TILE_SIZE} groups, got {rest}")
        self._shapes = {LAST_ROWS: (TILE_SIZE, rest or TILE_SIZE), LAST_COLUMNS: (rest or TILE_SIZE, TILE_SIZE)}
        self._tiles: dict[int, np.ndarray] = {}

    def zero(self, tile: int) -> None:
        """Makes accumulators zero: the same bits for both dtypes."""
        self._tiles[tile] = np.zeros(self._shape(tile), np.int32)

    def load(self, tile: int, buffer: np.ndarray, name: str, indices: Sequence[int]) -> None:
        """Copies from memory."""
        self._tiles[tile] = self._memory(tile, "tir.load_tile", buffer, name, indices).view(np.int32).copy()

    def store(self, tile: int, buffer: np.ndarray, name: str, indices: Sequence[int]) -> None:
        """Copies to memory."""
        memory = self._memory(tile, "tir.store_tile", buffer, name, indices)
        memory[...] = self._tiles[tile].view(memory.dtype)

    def dot(self, acc: int, lhs: int, rhs: int, left: Any, right: Any) -> None:
        """Adds the dot products of the rows and columns of two registers, whose numbers have these dtypes."""
        is_float = np.dtype(left).kind != "i" and np.dtype(left).kind != "u"
        kind, total = (np.float32, np.float32) if is_float else (np.int64, np.int32)
        rows = np.ascontiguousarray(self._tiles[lhs]).view(left).astype(kind)
        columns = np.ascontiguousarray(self._tiles[rhs].T).view(right).astype(kind)
        sums = self._tiles[acc].view(total).astype(kind) + rows @ columns.T
        self._tiles[acc] = sums.astype(total).view(np.int32)

    def _shape(self, tile: int) -> tuple[int, int]:
        return self._shapes.get(tile, (TILE_SIZE, TILE_SIZE))

    def _memory(self, tile: int, op: str, buffer: np.ndarray, name: str, indices: Sequence[int]) -> np.ndarray:
        *outer, row, column = indices
        rows, groups = self._shape(tile)
        for corner in (indices, (*outer, row + rows - 1, column + groups - 1)):
            if not all(0 <= index < extent for index, extent in zip(corner, buffer.shape, strict=True)):
                fail_access(op, name, corner, buffer.shape)
        return buffer[(*outer, slice(row, row + rows), slice(column, column + groups))]
