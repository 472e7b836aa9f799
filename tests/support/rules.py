"""Rules that are required of many subjects by one test, which names all that break them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(
    subjects: Iterable[Any], name: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Makes a test of a rule: a function that fails for a subject which breaks it. Tuples are several arguments.

    Thousands of parameters would cost more than what they ask.
    """
    everyone = list(subjects)

    def decorate(rule: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            broken: list[str] = []
            for subject in everyone:
                try:
                    rule(*(subject if isinstance(subject, tuple) else (subject,)))
                except (AssertionError, pytest.fail.Exception) as failure:
                    broken.append(f"{name(subject)}: {failure}")
            if broken:
                pytest.fail("\n".join(broken), pytrace=False)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return decorate
