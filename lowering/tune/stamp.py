"""A stamp of the user's tuning database for cache keys, without loading the code that reads it."""

from __future__ import annotations

import hashlib
import json

from lowering.tune.location import default_path
from vm_dialect.files import open_regular


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
