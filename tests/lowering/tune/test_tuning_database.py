"""What tuning found is kept in a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowering.compiler import tuning_database as databases
from lowering.compiler.kernel_maker import DEFAULT_OPTIONS
from lowering.compiler.kernels import plan_kernels
from lowering.compiler.tuning_database import Call, Choice, Record, TuningDatabase, kernel_key
from lowering.compiler.tuning_file import default_path
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.tune.tuner import kernels_of
from tests.lowering.tune.support import MAP, SQUARE, groups
from tir_dialect.schedule import Schedule
from tir_dialect.target import Target


def some_records() -> dict[str, Record]:
    (group, *_) = groups(SQUARE).values()
    schedule = Schedule(group[0].clone())
    schedule.get_blocks()
    traced = Record(Choice(schedule.trace), 1.0, 2.0, "a")
    return {"k1": traced, "k2": Record(Choice(facts=(("l1_bytes", 1024),)), 0.5, 1.5, "b")}


def test_records_survive_in_the_file(tmp_path: Path):
    path = tmp_path / "deep" / "t.json"
    TuningDatabase(path).add(some_records())
    again = TuningDatabase(path).records()
    assert {key: record.as_json() for key, record in again.items()} == {
        key: record.as_json() for key, record in some_records().items()
    }
    assert TuningDatabase(path).records()["k2"].choice == Choice(facts=(("l1_bytes", 1024),))


def test_what_another_process_adds_is_seen(tmp_path: Path):
    path = tmp_path / "t.json"
    first, second = TuningDatabase(path), TuningDatabase(path)
    records = some_records()
    first.add({"k1": records["k1"]})
    assert set(second.records()) == {"k1"}
    second.add({"k2": records["k2"]})
    assert set(first.records()) == {"k1", "k2"}


WRITER = """
import sys
from pathlib import Path
from lowering.compiler.tuning_database import Choice
from lowering.compiler.tuning_database import Record, TuningDatabase
for n in range(10):
    name = f"{sys.argv[2]}-{n}"
    TuningDatabase(Path(sys.argv[1])).add({name: Record(Choice(facts=(("l1_bytes", n),)), 1.0, 2.0)})
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / "t.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(TuningDatabase(path).records()) == 30


RECORD = '{"version": 1, "kernels": {"k": {"seconds": 1, "default_seconds": 2, "choice": {"facts": FACTS}}}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "\xff",
        100_000 * "[",
        "[]",
        '{"version": 9, "kernels": {}}',
        '{"version": 1}',
        '{"version": 1, "kernels": {"k": {}}}',
        *(
            RECORD.replace("FACTS", facts)
            for facts in (
                '{"triple": 1}',
                '{"cores": true}',
                '{"cores": -1}',
                '{"cores": 1.5}',
                f'{{"cores": {10**20}}}',
            )
        ),
    ],
)
def test_a_damaged_file_is_an_error_and_stays(tmp_path: Path, text: str):
    path = tmp_path / "t.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"t\.json is no tuning database"):
        TuningDatabase(path).records()
    with pytest.raises(ValueError, match=r"t\.json is no tuning database"):
        TuningDatabase(path).add(some_records())
    assert path.read_text(encoding="latin-1") == text


def test_builds_do_without_a_damaged_file(user_database: Path):
    user_database.write_text('{"version": 2, "kernels": {}}')
    with pytest.warns(UserWarning, match=r"expected version 1, got 2; move it away; .* default schedules"):
        plan = plan_kernels(kernels_of(parse_module(MAP)), Target.host(), NO_CACHE, DEFAULT_OPTIONS)
    assert [kernel.options for kernel in plan.kernels.values()] == [DEFAULT_OPTIONS]


def test_a_place_that_cannot_be_read(tmp_path: Path):
    """It may hold records, so it is not written either."""
    (tmp_path / "t.json").mkdir()
    with pytest.raises(
        ValueError, match=r"t\.json cannot be read: expected a regular file, got a folder; move it away"
    ):
        TuningDatabase(tmp_path / "t.json").add({})


def test_a_place_that_cannot_be_written(tmp_path: Path):
    path = tmp_path / "file" / "t.json"
    path.parent.write_text("")
    with pytest.raises(OSError, match=r"t\.json cannot be written \(.*\); set RELAX_TUNING_FILE to another path"):
        TuningDatabase(path).add({})


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_lock(tmp_path: Path, kind: str):
    """A pipe would have to be waited for; what a link leads to is somebody else's."""
    other = tmp_path / "other"
    other.write_text("kept")
    lock = tmp_path / "t.lock"
    os.mkfifo(lock) if kind == "pipe" else lock.symlink_to(other)
    with pytest.raises(OSError, match=r"t\.json cannot be written \(.*t\.lock: .*\); set RELAX_TUNING_FILE"):
        TuningDatabase(tmp_path / "t.json").add(some_records())
    assert other.read_text() == "kept"


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("RELAX_TUNING_FILE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "xdsl-relax" / "tuning.json"
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert default_path() == Path.home() / ".local" / "share" / "xdsl-relax" / "tuning.json"
    monkeypatch.setenv("RELAX_TUNING", "0")
    assert databases.default_database().path is None


def test_names_do_not_count_but_machines_do():
    (group, *_) = groups(SQUARE).values()
    renamed = group[0].clone()
    renamed.sym_name = type(renamed.sym_name)("other")
    v3, v4 = Target.parse("x86-64-v3"), Target.parse("x86-64-v4")
    assert kernel_key([renamed], v3) == kernel_key([group[0]], v3) != kernel_key([group[0]], v4)
    assert kernel_key([group[0]], v3) != kernel_key([group[0]], Target.parse("x86-64-v3 cores=2"))


@pytest.mark.parametrize("data", ["3", [["f32"]], [[1, []]], [["f32", [-1]]], [["f32", [True]]], [True], [None]])
def test_calls_that_are_none(data: object):
    with pytest.raises(ValueError, match="expected"):
        Call.from_json("k", data)


def test_a_call_survives_as_json():
    call = Call("k", (("float32", (1, 2)), 3, 2.5))
    assert Call.from_json("k", json.loads(json.dumps(call.as_json()))) == call


def test_calls_of_one_function_are_alike():
    call = Call("k", (("float32", (1, 2)), 3))
    assert call.is_alike(Call("j", (("float32", (7, 9)), 2.5)))
    for other in ((("float32", (1, 2)),), (("float16", (1, 2)), 3), (("float32", (1, 2, 3)), 3), (3, 3)):
        assert not call.is_alike(Call("k", other))


def test_a_call_is_a_key():
    assert Call("k", (("float32", (1, 2)), 3)) == Call("k", (("float32", (1, 2)), 3))
