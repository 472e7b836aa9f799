"""The location of the user's tuning database, and a stamp of it for cache keys, without the code that reads it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from lowering.debug import is_on
from vm_dialect.files import open_regular


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


def tuning_stamp() -> str:
    """A text for cache keys that changes whenever the records in the database do."""
    path = default_path()
    if path is not None:
        try:
            with open_regular(path) as file:
                return f"tuning {hashlib.sha256(file.read()).hexdigest()}"
        except OSError:
            return "tuning"
    # A database in memory only.
    from lowering.tune.database import default_database

    records = default_database().records()
    return f"tuning {json.dumps({key: record.as_json() for key, record in sorted(records.items())})}"
