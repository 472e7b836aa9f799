"""The refusal of a schedule primitive."""

from __future__ import annotations


class ScheduleError(ValueError):
    """A primitive that cannot be applied, with what it expected and what it got. The function is unchanged."""

    def __init__(self, primitive: str, message: str):
        super().__init__(f"{primitive}: {message}")
        self.primitive = primitive
