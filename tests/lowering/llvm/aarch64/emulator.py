"""Machine code for AArch64, run on any machine by Unicorn, with pages that are not mapped around its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc
from unicorn.arm64_const import (
    UC_ARM64_REG_CPACR_EL1,
    UC_ARM64_REG_PC,
    UC_ARM64_REG_SP,
    UC_ARM64_REG_W0,
    UC_ARM64_REG_X0,
    UC_ARM64_REG_X30,
    UC_CPU_ARM64_MAX,
)

from tests.lowering.llvm.aarch64.image import PAGE, Image, pages

_STACK = 0x2_0000_0000
_STACK_BYTES = 1 << 22
_ARRAYS = 0x4_0000_0000
_LIMIT = 60_000_000
"""Microseconds after which a call has gone astray."""


class Emulator:
    """A processor with NEON, f16 and the code of some objects in memory."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        image = Image()
        for data in objects:
            image.add(data)
        image.link()
        self._symbols = image.symbols
        self._uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self._uc.ctl_set_cpu_model(UC_CPU_ARM64_MAX)
        # Without it vector instructions trap.
        self._uc.reg_write(UC_ARM64_REG_CPACR_EL1, 3 << 20)
        for start, part in image.parts.items():
            self._uc.mem_map(start, pages(len(part)))
            self._uc.mem_write(start, bytes(part))
        self._uc.mem_map(_STACK, _STACK_BYTES)
        self._back = image.end
        self._uc.mem_map(self._back, PAGE)

    def call(self, name: str, sizes: Sequence[int], arrays: Sequence[NDArray[Any]], *, at_end: bool) -> list[bytes]:
        """What the arrays hold after `i32 name(sizes..., arrays...)`, which has to return 0.

        Each array ends where its pages end, or else begins where they begin; `UcError` for an access outside.
        """
        mapped: list[int] = []
        places: list[int] = []
        start = _ARRAYS
        for array in arrays:
            size = pages(array.nbytes)
            self._uc.mem_map(start, size)
            mapped.append(start)
            places.append(start + size - array.nbytes if at_end else start)
            self._uc.mem_write(places[-1], array.tobytes())
            start += size + PAGE
        try:
            self._run(name, [*sizes, *places])
            return [bytes(self._uc.mem_read(at, array.nbytes)) for at, array in zip(places, arrays, strict=True)]
        finally:
            for place, array in zip(mapped, arrays, strict=True):
                self._uc.mem_unmap(place, pages(array.nbytes))

    def _run(self, name: str, arguments: Sequence[int]) -> None:
        """Eight arguments go in registers, others on the stack."""
        stack = _STACK + _STACK_BYTES - PAGE
        for index, argument in enumerate(arguments):
            if index < 8:
                self._uc.reg_write(UC_ARM64_REG_X0 + index, argument)
            else:
                self._uc.mem_write(stack + 8 * (index - 8), argument.to_bytes(8, "little"))
        self._uc.reg_write(UC_ARM64_REG_SP, stack)
        self._uc.reg_write(UC_ARM64_REG_X30, self._back)
        self._uc.emu_start(self._symbols[name], self._back, timeout=_LIMIT)
        assert self._uc.reg_read(UC_ARM64_REG_PC) == self._back, f"{name} did not return"
        assert self._uc.reg_read(UC_ARM64_REG_W0) == 0, f"{name} failed"
