"""Switches that variables of the environment set."""

from __future__ import annotations

import os

_ON, _OFF = ("", "1", "on", "true", "yes"), ("0", "off", "false", "no")


def is_on(name: str) -> bool:
    """Whether a switch is on, as it is unless the variable says otherwise; `ValueError` if that says neither."""
    text = os.environ.get(name, "")
    if text.lower() not in (*_ON, *_OFF):
        raise ValueError(f'{name} expected 0 or 1, got "{text}"')
    return text.lower() in _ON
