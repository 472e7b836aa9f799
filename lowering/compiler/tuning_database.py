"""The tuning database: a JSON file of schedules that builds consult, with the arguments of the kernel calls that they
were measured on.

The file is `$RELAX_TUNING_FILE`, or `xdsl-relax/tuning.json` in `$XDG_DATA_HOME` or `~/.local/share`. Processes that
write at the same time lose nothing: each reads the file again under a lock, adds what it found, and puts a whole new
file instead of it. `RELAX_TUNING=0` makes builds ignore it.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.compiler.tuning_file import default_path
from lowering.llvm.code_cache import cache_key
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.dims import MatchError, match
from tir_dialect.dtypes import MOST_BYTES
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.trace import Trace
from tir_dialect.target import NUMERIC_SETTINGS, Target
from tir_dialect.types import BufferType
from vm_dialect.files import locked, open_regular


@dataclass(frozen=True)
class Choice:
    """A trace of schedule primitives, or the default rules for a changed target."""

    trace: Trace | None = None
    facts: tuple[tuple[str, int], ...] = ()
    """The changed target settings, sorted by name."""

    def schedule(self, func: PrimFuncOp, target: Target) -> None:
        """Schedules a function; `ScheduleError` for a trace that is not applicable, or an invalid target."""
        if self.trace is not None:
            from tir_dialect.schedule.schedule import Schedule

            self.trace.replay(Schedule(func))
            return
        from lowering.kernels.schedule_cpu import schedule

        schedule(func, self._machine(target))

    def _machine(self, target: Target) -> Target:
        try:
            return target.with_settings(dict(self.facts))
        except ValueError as error:
            from tir_dialect.schedule.handles import ScheduleError

            raise ScheduleError("schedule-cpu", str(error)) from error

    def code(self, func: PrimFuncOp, target: Target) -> str | None:
        """A fingerprint of the code that the choice generates for a function; `None` if it is not applicable."""
        from lowering.kernels.emit.kernel import outside_modules
        from tir_dialect.schedule.handles import ScheduleError

        copy = func.clone()
        ModuleOp([copy])  # in which routines have names, which say everything
        try:
            with outside_modules():
                self.schedule(copy, target)
        except (ScheduleError, DiagnosticException):
            return None
        return _code(copy)

    def schedule_as_measured(self, func: PrimFuncOp, target: Target, code: str, name: str) -> None:
        """Schedules a function; by default, with a warning that calls it `name`, if `code` is not what comes out."""
        from tir_dialect.schedule.handles import ScheduleError

        before = func.clone()
        try:
            self.schedule(func, target)
            reason = "the rules of schedule-cpu have changed since" if _code(func) != code else None
        except ScheduleError as error:
            reason = str(error)
        if reason is not None:
            found = f"the schedule that tuning found for @{name} is not used ({reason})"
            warnings.warn(f"{found}; it has the default one, tune again", stacklevel=2)
            func.detach_region(func.body)
            func.add_region(before.detach_region(before.body))
            Choice().schedule(func, target)

    def as_json(self) -> dict[str, object]:
        """The choice as JSON data."""
        return {"facts": dict(self.facts)} if self.trace is None else {"trace": self.trace.as_json()}

    @staticmethod
    def from_json(data: object) -> Choice:
        """The choice that `as_json` gave; `ValueError` for anything else."""
        if not isinstance(data, dict):
            raise ValueError(f"expected a choice, got {data}")
        fields = cast("dict[str, object]", data)
        if "trace" in fields:
            return Choice(Trace.from_json(fields["trace"]))
        facts = fields.get("facts")
        if not isinstance(facts, dict) or not all(
            name in NUMERIC_SETTINGS and is_size(value) for name, value in cast("dict[object, object]", facts).items()
        ):
            raise ValueError(f"expected a trace or facts of a machine, got {data}")
        return Choice(facts=tuple(sorted(cast("dict[str, int]", facts).items())))

    def text(self) -> str:
        """A complete one-line text: equal choices have equal texts."""
        return json.dumps(self.as_json(), sort_keys=True)

    def describe(self) -> str:
        """A text for reports: the changed settings, or the steps of the trace."""
        if self.trace is None:
            return ", ".join(f"{name}={value}" for name, value in self.facts)
        return "; ".join(line for line in self.trace.as_python().splitlines() if "get_" not in line)


def _code(func: PrimFuncOp) -> str:
    from tir_dialect.analysis.fingerprint import Fingerprint

    return cache_key([Fingerprint()(func, ("sym_name",))])


def is_size(value: object) -> bool:
    """Whether a value from a file is a possible extent, or number of bits, bytes, registers or cores."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES


@dataclass(frozen=True)
class Call:
    """Arguments of a kernel: the dtype and shape of a tensor, or a number."""

    kernel: str
    arguments: tuple[tuple[str, tuple[int, ...]] | float, ...]

    @property
    def is_empty(self) -> bool:
        """Whether a tensor has no elements, so that timing the call is meaningless."""
        return any(isinstance(each, tuple) and 0 in each[1] for each in self.arguments)

    def is_alike(self, other: Call) -> bool:
        """Whether both can be calls of one function: equally many arguments of the same kinds."""
        return [_kind(each) for each in self.arguments] == [_kind(each) for each in other.arguments]

    def as_json(self) -> list[object]:
        """The arguments as JSON data, without the name of the kernel."""
        return [list(each) if isinstance(each, tuple) else each for each in self.arguments]

    @staticmethod
    def from_json(kernel: str, data: object) -> Call:
        """The call that `as_json` gave; `ValueError` for anything else."""
        if not isinstance(data, list):
            raise ValueError(f"expected the arguments of a call, got {data}")
        return Call(kernel, tuple(_argument_of(each) for each in cast("list[object]", data)))


def _argument_of(data: object) -> tuple[str, tuple[int, ...]] | float:
    if isinstance(data, int | float) and not isinstance(data, bool):
        return data
    if isinstance(data, list) and len(pair := cast("list[object]", data)) == 2:
        dtype, shape = pair
        if isinstance(dtype, str) and isinstance(shape, list) and all(map(is_size, cast("list[object]", shape))):
            return dtype, tuple(cast("list[int]", shape))
    raise ValueError(f"expected a number, or the dtype and the shape of a tensor, got {data}")


def _kind(argument: tuple[str, tuple[int, ...]] | float) -> tuple[str, int] | str:
    return (argument[0], len(argument[1])) if isinstance(argument, tuple) else "number"


LEAST_SIZE, MOST_ELEMENTS = 4, 1 << 22
"""Sizes below this stay as they are, for which times say nothing; calls of more elements take too long."""


def nearby(func: PrimFuncOp, calls: Iterable[Call]) -> list[Call]:
    """The calls with half and with twice the sizes, without recorded and very large ones."""
    known = {call.arguments for call in calls}
    found = dict.fromkeys(other for call in calls for other in _scaled(func, call))
    return [
        call
        for call in found
        if call.arguments not in known
        and sum(prod(each[1]) for each in call.arguments if isinstance(each, tuple)) < MOST_ELEMENTS
    ]


def _scaled(func: PrimFuncOp, call: Call) -> Iterator[Call]:
    sizes = _sizes(func, call)
    count = len(call.arguments) - len(func.params)  # the values of symbols come before the parameters
    for double in (False, True):
        other = {name: _other(size, double) for name, size in sizes.items()}
        if other == sizes or not all(_is_allowed(func, name, size) for name, size in other.items()):
            continue
        numbers = [other[name] for name in func.symbol_names[:count]]
        arguments = [
            (argument[0], tuple(dim.evaluate(other) for dim in param.type.shape))
            if isinstance(param.type, BufferType) and isinstance(argument, tuple)
            else argument
            for param, argument in zip(func.params, call.arguments[count:], strict=True)
        ]
        yield Call(call.kernel, (*numbers, *arguments))


def _sizes(func: PrimFuncOp, call: Call) -> dict[str, int]:
    """The values of all symbols in a call; none if it does not tell them."""
    count = len(call.arguments) - len(func.params)
    numbers = zip(func.symbol_names, call.arguments[:count], strict=False)
    given = {name: int(number) for name, number in numbers if not isinstance(number, tuple)}
    pairs = [
        pair
        for param, argument in zip(func.params, call.arguments[count:], strict=True)
        if isinstance(param.type, BufferType) and isinstance(argument, tuple)
        for pair in zip(param.type.shape, argument[1], strict=True)
    ]
    try:
        found = match([dim for dim, _ in pairs], [size for _, size in pairs], given)
    except MatchError:
        return {}
    return found if found.keys() == set(func.symbol_names) else {}


def _other(size: int, double: bool) -> int:
    return size if size < LEAST_SIZE else 2 * size if double else size // 2


def _is_allowed(func: PrimFuncOp, name: str, size: int) -> bool:
    low, high = next(symbol.interval for symbol in func.symbols if symbol.symbol.data == name)
    return low <= size and (high is None or size <= high)


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
                data = json.loads(file.read())
                version = cast("dict[str, object]", data).get("version") if isinstance(data, dict) else None
                if version != VERSION:
                    raise ValueError(f"expected version {VERSION}, got {version}")
                kernels = cast("dict[str, object]", data["kernels"])
                return {key: Record.from_json(record) for key, record in kernels.items()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ValueError(f"{self.path} cannot be read: {error.strerror or error}; move it away") from error
        except (KeyError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is no tuning database: {error}; move it away") from error


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
