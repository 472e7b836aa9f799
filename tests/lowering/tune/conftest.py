"""A database of its own for a test, and a search that always finds something."""

from pathlib import Path

import pytest

from tests.lowering.tune.support import races


@pytest.fixture
def user_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("RELAX_TUNING_FILE", str(path))
    return path


@pytest.fixture
def everything_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last choice tried is the best."""
    races(monkeypatch, lambda number: 0.5)
