"""Switches in the environment."""

from __future__ import annotations

import pytest

from lowering.debug import is_on


@pytest.mark.parametrize(
    ("text", "on"), [(None, True), ("", True), ("1", True), ("On", True), ("0", False), ("OFF", False), ("no", False)]
)
def test_switches(text: str | None, on: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RELAX_TEST", raising=False)
    if text is not None:
        monkeypatch.setenv("RELAX_TEST", text)
    assert is_on("RELAX_TEST") is on


def test_what_is_neither_on_nor_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAX_TEST", "maybe")
    with pytest.raises(ValueError, match='RELAX_TEST expected 0 or 1, got "maybe"'):
        is_on("RELAX_TEST")
