"""The location of the user's tuning database."""

from __future__ import annotations

import os
from pathlib import Path

from lowering.debug import is_on


def default_path() -> Path | None:
    """The path of the user's database; None if builds have to ignore it (`RELAX_TUNING=0`).

    Raises `ValueError` if that is neither 0 nor 1.
    """
    if not is_on("RELAX_TUNING"):
        return None
    if given := os.environ.get("RELAX_TUNING_FILE"):
        return Path(given)
    home = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not home.is_absolute():  # such a path is invalid, by its standard
        home = Path.home() / ".local" / "share"
    return home / "xdsl-relax" / "tuning.json"


def nothing_is_tuned() -> bool:
    """Whether the user's database is enabled but does not exist yet."""
    path = default_path()
    return path is not None and not path.exists()
