"""Which way rows of windows are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.reduce.window import Window
from lowering.kernels.cpu.reduce.window_reduction import WindowReduction
from lowering.kernels.cpu.reduce.window_registers import WindowRegisters
from lowering.kernels.cpu.structure.stages import Stage


@dataclass
class Windows:
    """The code of windows, of which at least one way is there; if both are, a call chooses."""

    short: WindowRegisters | None
    """The way for rows of one iteration in registers."""
    long: WindowRegisters | WindowReduction | None

    @property
    def are_in_registers(self) -> bool:
        """Whether short rows are not stored before their columns are combined."""
        return self.short is not None or isinstance(self.long, WindowRegisters)

    def prepare(self) -> None:
        """What comes before all loops."""
        for way in (self.long, self.short):
            if way is not None:
                way.prepare()

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        ways = [way for way in (self.short, self.long) if way is not None]
        if self.short is None or len(ways) == 1:
            ways[0].emit(at)
            return
        code = self.short.code
        with code.when(self.short.is_one_iteration) as is_short:
            ways[0].emit(at)
        with code.otherwise(is_short):
            ways[1].emit(at)

    def follow(self, stage: Stage) -> None:
        """Has a map of all results computed with them."""
        for way in (self.short, self.long):
            if way is not None:
                way.following = stage

    def take_short(self, stage: Stage) -> Windows:
        """The code for short rows by itself, with a map of their results."""
        short = self.short
        if short is None:
            assert self.long is not None  # one of them is
            short = WindowRegisters(self.long.kernel, self.long.stage, self.long.window, one_iteration=True)
        short.following, self.short = stage, None
        return Windows(short, None)


def windows_of(kernel: Kernel, stage: Stage, window: Window) -> Windows:
    """The code of a window."""
    registers, memory = WindowRegisters(kernel, stage, window), WindowReduction(kernel, stage, window)
    if not registers.is_possible:
        return Windows(None, memory)
    if registers.suits_long_rows:
        return Windows(None, registers)
    return Windows(WindowRegisters(kernel, stage, window, one_iteration=True), memory)
