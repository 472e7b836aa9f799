"""What a search may set for one kernel and the rules of `schedule-cpu` decide otherwise."""

from __future__ import annotations

from dataclasses import dataclass, fields

MAX_TILE_STEPS = 64
"""The code of each step is written out."""


@dataclass(frozen=True)
class ScheduleOptions:
    """Numbers that replace those the rules would choose; 0 leaves a number to the rules.

    Raises `ValueError` for what is no integer or out of range.
    """

    tile_rows: int = 0
    """Rows of the register tile of a product."""

    tile_vectors: int = 0
    """Vectors in a row of that tile."""

    tile_steps: int = 0
    """Unrolled steps of the reduction around that tile."""

    unpacked_rows: int = 0
    """Up to so many rows a product reads its operands in place; above, it packs them into panels."""

    map_vectors: int = 0
    """Vectors that an iteration of the innermost loop of a map computes."""

    task_percent: int = 100
    """The least work for which a thread is woken, in percent of what the rules choose."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_integer(field.name, getattr(self, field.name), 0 if field.default == 0 else 1)
        if self.tile_steps > MAX_TILE_STEPS:
            raise ValueError(
                f'target setting "tile_steps" expects an integer of at most {MAX_TILE_STEPS}, got {self.tile_steps}'
            )


def check_integer(name: str, value: object, least: int) -> None:
    """Refuses a setting that is no integer, or less than `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f'target setting "{name}" expects an integer of at least {least}, got {value!r}')
