"""The error of schedule primitives."""

from __future__ import annotations


class ScheduleError(ValueError):
    """A primitive is not applicable; the message says what it expected and what it got. The function is unchanged."""

    def __init__(self, primitive: str, message: str):
        super().__init__(f"{primitive}: {message}")
        self.primitive = primitive
