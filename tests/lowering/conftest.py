"""Fixtures of tests of the compiler."""

import pytest


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds may start a process, as they do outside of tests."""
    monkeypatch.delenv("RELAX_PROCESS", raising=False)
