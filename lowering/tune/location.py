"""Where the user's tuning database is, and whether it has changed: without reading what is in it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path


def default_path() -> Path | None:
    """The user's database; None if builds are to ignore it (`RELAX_TUNING=0`)."""
    if os.environ.get("RELAX_TUNING") == "0":
        return None
    if given := os.environ.get("RELAX_TUNING_FILE"):
        return Path(given)
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "xdsl-relax" / "tuning.json"


def tuning_stamp() -> str:
    """A text for cache keys that is another one whenever builds may find something else in the database."""
    path = default_path()
    if path is not None:
        try:
            return f"tuning {hashlib.sha256(path.read_bytes()).hexdigest()}"
        except OSError:
            return "tuning"
    # Kept in this process only.
    from lowering.tune.database import default_database

    records = default_database().records()
    return f"tuning {json.dumps({key: record.as_json() for key, record in sorted(records.items())})}"
