"""Overrides of decisions of `schedule-cpu` for one kernel, which tuning searches over."""

from __future__ import annotations

from dataclasses import dataclass, fields

MAX_TILE_STEPS = 64
"""The code of each step is written out."""
ACTIVATION_BITS = (0, 8, 16, 24, 32)
"""What `activation_bits` may be."""


@dataclass(frozen=True)
class ScheduleOptions:
    """Parameters that override the decisions of the rules; 0 leaves a parameter to the rules.

    Raises `ValueError` for values that are no integers or out of range.
    """

    tile_rows: int = 0
    """Rows of the register tile of a matrix product."""

    tile_vectors: int = 0
    """Vectors per row of that tile."""

    tile_steps: int = 0
    """Unrolled steps of the reduction loop of that tile."""

    unpacked_rows: int = 0
    """The most rows of a product that reads its operands in place; operands of larger ones are packed into panels."""

    map_vectors: int = 0
    """Vectors computed by an iteration of the innermost loop of an elementwise kernel."""

    activation_bits: int = 0
    """Bits to which the rows of a product with block-quantised weights are rounded: 8, 16 or 24, or 32 for none."""

    task_percent: int = 100
    """The minimum work per thread, in percent of what the rules choose."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_integer(field.name, getattr(self, field.name), 0 if field.default == 0 else 1)
        if self.activation_bits not in ACTIVATION_BITS:
            known = ", ".join(map(str, ACTIVATION_BITS))
            raise ValueError(f'target setting "activation_bits" expects one of {known}, got {self.activation_bits}')
        if self.tile_steps > MAX_TILE_STEPS:
            raise ValueError(
                f'target setting "tile_steps" expects an integer of at most {MAX_TILE_STEPS}, got {self.tile_steps}'
            )


def check_integer(name: str, value: object, least: int) -> None:
    """ValueError for a setting that is no integer, or less than `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f'target setting "{name}" expects an integer of at least {least}, got {value!r}')
