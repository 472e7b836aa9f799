"""Whether the user's tuning database has changed, without the code that reads what is in it."""

from __future__ import annotations

import hashlib
import json

from lowering.tune.location import default_path


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
