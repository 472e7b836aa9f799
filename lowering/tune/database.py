"""The tuning database: a JSON file of schedules that builds consult.

The file is `$RELAX_TUNING_FILE`, or `xdsl-relax/tuning.json` in `$XDG_DATA_HOME` or `~/.local/share`. Processes that
write at the same time lose nothing: each reads the file again under a lock, adds what it found, and puts a whole new
file instead of it. `RELAX_TUNING=0` makes builds ignore it.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

from lowering.cache.code_cache import cache_key
from lowering.tune.call import Call
from lowering.tune.choice import Choice
from lowering.tune.location import default_path
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect.files import locked, open_regular

VERSION = 1


@dataclass(frozen=True)
class Record:
    """The best schedule found for one kernel, with its measurements."""

    choice: Choice
    seconds: float
    """The total time of the measured calls."""
    default_seconds: float
    """The total time of the same calls with the default schedule."""
    kernel: str = ""
    """The name of the kernel, for reports."""
    calls: tuple[Call, ...] = ()
    """The measured calls, which later searches must not make slower."""
    code: str = ""
    """`Choice.code` of the measured code: if it differs today, the record is obsolete."""

    def as_json(self) -> dict[str, object]:
        return {
            "choice": self.choice.as_json(),
            "seconds": self.seconds,
            "default_seconds": self.default_seconds,
            "kernel": self.kernel,
            "calls": [call.as_json() for call in self.calls],
            "code": self.code,
        }

    @staticmethod
    def from_json(data: object) -> Record:
        """`ValueError` for what `as_json` did not give."""
        fields = cast("dict[str, object]", data) if isinstance(data, dict) else {}
        seconds, default = fields.get("seconds"), fields.get("default_seconds")
        if not isinstance(seconds, int | float) or not isinstance(default, int | float):
            raise ValueError(f"expected a record with times, got {data}")
        kernel, calls = str(fields.get("kernel", "")), fields.get("calls", [])
        if not isinstance(calls, list):
            raise ValueError(f"expected a list of calls, got {calls}")
        known = tuple(Call.from_json(kernel, call) for call in cast("list[object]", calls))
        code = str(fields.get("code", ""))
        return Record(Choice.from_json(fields.get("choice")), seconds, default, kernel, known, code)


def kernel_key(group: Sequence[PrimFuncOp], target: Target) -> str:
    """The key of a record: a function with its callees, and the target; names are ignored."""
    fingerprint = Fingerprint()
    return cache_key([str(target), *(fingerprint(func, ("sym_name",)) for func in group)])


@dataclass
class TuningDatabase:
    """Records by kernel. A damaged file, or one of another version, is an error, and is never overwritten."""

    path: Path | None
    """`None` for a database in memory only."""

    _records: dict[str, Record] | None = field(default=None, init=False, repr=False)
    _stamp: tuple[int, int] | None = field(default=None, init=False, repr=False)

    def records_or_warn(self) -> Mapping[str, Record]:
        """As `records`, but with a warning instead of an error, for builds."""
        try:
            return self.records()
        except ValueError as error:
            warnings.warn(f"{error}; until then kernels have their default schedules", stacklevel=2)
            return {}

    def records(self) -> Mapping[str, Record]:
        """All records in the file; `ValueError` for a damaged file, or one of another version."""
        stamp = self._file_stamp()
        if self._records is None or (self.path is not None and stamp != self._stamp):
            self._records, self._stamp = self._read(), stamp
        return self._records

    def add(self, found: Mapping[str, Record]) -> None:
        """Adds records, replacing those of the same kernels; `OSError` if the file cannot be written."""
        self._change(lambda records: {**records, **found})

    def remove(self, key: str) -> None:
        """Removes the record of a kernel, if there is one; `OSError` if the file cannot be written."""
        if key in self.records():
            self._change(lambda records: {each: record for each, record in records.items() if each != key})

    def _change(self, change: Callable[[Mapping[str, Record]], dict[str, Record]]) -> None:
        if self.path is None:
            self._records = change(self.records())
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path.with_suffix(".lock")):
                records = change(self._read())
                data = {"version": VERSION, "kernels": {key: record.as_json() for key, record in records.items()}}
                _replace(self.path, json.dumps(data, indent=1, sort_keys=True))
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}" if error.filename is not None else str(error)
            raise OSError(
                f"the tuning database {self.path} cannot be written ({reason}); set RELAX_TUNING_FILE to another path"
            ) from error
        self._records = None

    def _file_stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _read(self) -> dict[str, Record]:
        if self.path is None:
            return {}
        try:
            with open_regular(self.path) as file:
                return _records_of(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ValueError(f"{self.path} cannot be read: {error.strerror or error}; move it away") from error
        except (KeyError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is no tuning database: {error}; move it away") from error


def _records_of(text: bytes) -> dict[str, Record]:
    data = json.loads(text)
    version = cast("dict[str, object]", data).get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise ValueError(f"expected version {VERSION}, got {version}")
    kernels = cast("dict[str, object]", data["kernels"])
    return {key: Record.from_json(record) for key, record in kernels.items()}


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def default_database() -> TuningDatabase:
    """The user's database; an empty one if `RELAX_TUNING=0`."""
    return _database(default_path())


@cache
def _database(path: Path | None) -> TuningDatabase:
    return TuningDatabase(path)
