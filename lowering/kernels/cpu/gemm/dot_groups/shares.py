"""How a product in words is shared out among threads: each task has an equal run of tiles.

Tiles are numbered panel by panel or, where there are many more strips of rows than panels, strip by strip. A task packs
the rows and columns of its tiles for itself, into the memory that it used in the call before, so threads neither wait
for each other nor fetch packed lines from each other's caches.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum

STRIPS_PER_PANEL = 4
"""With more strips than that for each panel, tasks have strips of their own and all panels: else packing rows again, by
copying them, takes less time than packing columns again."""
MANY = 1 << 20
"""More strips than a task has."""

Range = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


@dataclass(frozen=True)
class Share:
    """A task's tiles, the strips and the panels of which it has some."""

    tiles: Range
    strips: Range
    panels: Range


class Shares:
    """All tiles of a product with so many strips and panels."""

    def __init__(self, code: Code, strips: Dim, panels: Dim, tasks: Dim):
        self.tasks = tasks
        self._code, self._all_strips, self._all_panels = code, strips, panels
        self._strips, self._panels = maximum(strips, constant(1)), maximum(panels, constant(1))
        self._surplus = strips - STRIPS_PER_PANEL * panels
        """By how many strips there are too many for tasks with panels of their own."""

    @property
    def is_alone(self) -> bool:
        """Whether there is one task, known when the code is made."""
        return self.tasks.constant_value == 1

    @property
    def strips(self) -> Dim:
        """No task has tiles of more strips."""
        if self.is_alone:
            return self._strips
        few = ceildiv(self._strips, self.tasks) + 1
        return minimum(maximum(few, -MANY * self._surplus), self._strips)

    @property
    def panels(self) -> Dim:
        """No task has tiles of more panels."""
        if self.is_alone:
            return self._panels
        few = ceildiv(self._panels, self.tasks) + 1
        return minimum(maximum(few, MANY * (self._surplus + 1)), self._panels)

    @property
    def _is_by_strips(self) -> SSAValue:
        return self._code.compare("sge", self._code.dim(self._surplus), 0)

    def of(self, task: SSAValue) -> Share:
        """The tiles of a task."""
        code, none = self._code, self._code.index(0)
        strips, panels = code.dim(self._all_strips), code.dim(self._all_panels)
        total = code.mul(strips, panels)
        if self.is_alone:
            return Share((none, total), (none, strips), (none, panels))
        lower, upper = (code.divide(code.mul(each, total), code.dim(self.tasks)) for each in (task, code.add(task, 1)))
        by_strips = self._is_by_strips
        line = code.select(by_strips, code.dim(self._panels), code.dim(self._strips))
        lines = code.divide(lower, line), code.divide(code.add(upper, code.sub(line, 1)), line)
        start = code.mul(lines[0], line)
        is_one = code.compare("sle", upper, code.add(start, line))
        within = tuple(
            code.select(is_one, code.sub(part, start), all_) for part, all_ in ((lower, none), (upper, line))
        )
        own, others = (
            tuple(code.select(by_strips, a, b) for a, b in zip(*pair, strict=True))
            for pair in ((lines, within), (within, lines))
        )
        return Share((lower, upper), (own[0], own[1]), (others[0], others[1]))

    def strips_of(self, share: Share, panel: SSAValue) -> Range:
        """The strips of a task's tiles of a panel."""
        if self.is_alone:
            return share.strips
        code, none, by_strips = self._code, self._code.index(0), self._is_by_strips
        step = code.select(by_strips, code.dim(self._panels), code.index(1))
        before = code.select(by_strips, panel, code.mul(panel, code.dim(self._strips)))
        first, end = (
            code.divide(code.add(code.maximum(code.sub(tile, before), none), code.sub(step, 1)), step)
            for tile in share.tiles
        )
        return first, code.minimum(end, code.dim(self._strips))
