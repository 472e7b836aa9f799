"""How much of a sweep a quick run sees: some examples of many, some machines for each case, in turn.

`make test-all` sees all pairs, and has the profile `thorough` for the rest.
"""

import os
import platform
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest
from hypothesis import Phase, settings

from tir_dialect.target import HOST_VARIABLE

QUICK, THOROUGH = 30, 300
"""Examples of a property test that names no number, by profile."""


def examples(count: int) -> settings:
    """Settings of a property test whose examples take long: `count` of them, in proportion more in a thorough run.

    A failing one is not made smaller.
    """
    return settings(max_examples=count * _thoroughness(), phases=(Phase.explicit, Phase.reuse, Phase.generate))


def _thoroughness() -> int:
    default = settings.default
    return 1 if default is None else max(1, default.max_examples // QUICK)


LESSER = ("x86-64-v3", "x86-64")
"""Machines whose code one with AVX-512 runs: with AVX2, and with SSE2, which has no multiply-adds."""


def lesser_machines(program: str, every: int) -> tuple[str, ...]:
    """Machines with fewer instructions whose native code is to compute the same: for one program in `every` each, in a
    thorough run for ten times as many. By the text, so that it is the same ones each time.
    """
    if platform.machine() != "x86_64" or HOST_VARIABLE in os.environ:
        return ()
    place = crc32(program.encode())
    return tuple(each for turn, each in enumerate(LESSER) if (place + turn) % every < _thoroughness())


def compiled_modes(program: str) -> tuple[str, ...]:
    """The modes in which a program is compiled: native code for two programs in three, or else bytecode; in a thorough
    run both. By the text, so that it is the same one each time.
    """
    if _thoroughness() > 1:
        return ("bytecode", "native")
    return ("native" if crc32(program.encode()) % 3 else "bytecode",)


def turns(names: Iterable[str], machines: Sequence[str], every: int | None = None) -> list[tuple[str, str, bool]]:
    """Pairs of a name and a machine, and whether it is the machine's turn.

    Each name has one machine in turn, or one in `every` of them.
    """
    period = every or len(machines)
    return [
        (name, machine, (place - turn) % period == 0)
        for turn, name in enumerate(names)
        for place, machine in enumerate(machines)
    ]


def in_turn(names: Iterable[str], machines: Sequence[str], every: int | None = None) -> list[object]:
    """The pairs of `turns` for `parametrize`: those of machines whose turn it is not are slow."""
    return [
        pytest.param(name, machine, marks=() if quick else pytest.mark.slow)
        for name, machine, quick in turns(names, machines, every)
    ]
