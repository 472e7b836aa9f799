"""Sample values of the symbols, to refute a claim before a proof is searched for."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from tir_dialect.dims.bounds import Bounds, End
from tir_dialect.dims.expr import Dim

COUNT = 6
"""Number of samples: two that contradict each other in the order of the symbols, the ends, and some others."""

_SPREAD = 1009


class Sample(dict[str, int]):
    """One value for every symbol, within its bounds; chosen from the name when it is asked for."""

    def __init__(self, bounds: Bounds, index: int) -> None:
        super().__init__()
        self._bounds = bounds
        self._index = index

    def __missing__(self, name: str) -> int:
        low, high = (self._end(end) for end in self._bounds[name])
        if low is None and high is None:
            low = -(_SPREAD // 2)
        if low is None:
            low = (high or 0) - _SPREAD
        span = _SPREAD if high is None else high - low
        if span < 0:
            raise ValueError(f"no value of '{name}' lies within its bounds")
        offset = crc32(f"{name} {self._index // 2}".encode()) % (min(span, _SPREAD) + 1)
        if self._index == COUNT - 2:
            offset = 0
        self[name] = low + offset if self._index % 2 == 0 else low + span - offset
        return self[name]

    def _end(self, end: End) -> int | None:
        return end.evaluate(self) if isinstance(end, Dim) else end


class Samples:
    """The samples of one set of bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._samples = [Sample(bounds, index) for index in range(COUNT)]

    def values(self, dim: Dim) -> Iterator[int]:
        """The values of `dim` for the samples for which it has one."""
        for sample in self._samples:
            try:
                value = dim.evaluate(sample)
            except (ZeroDivisionError, ValueError):
                continue
            yield value
