"""The search for schedules: what it tries is right, what it finds is kept, and builds use it."""

import io
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from lowering import build
from lowering.codegen import kernels
from lowering.parsing import parse_module
from lowering.tune import database as databases
from lowering.tune import tune
from lowering.tune.choice import Choice
from lowering.tune.database import Record, TuningDatabase, default_path, kernel_key
from lowering.tune.measure import Bench, agree
from lowering.tune.space import candidates
from lowering.tune.workload import Call, kernels_of, record_calls
from tir_dialect.schedule import Schedule
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(7)
PROGRAM = """
relax.func @main[%m, %k, %n](%a: !relax.tensor<[m, k], f32>, %b: !relax.tensor<[k, n], f32>)
    -> !relax.tensor<[m, n], f32> {
  %0 = relax.matmul %a, %b
  %1 = relax.matmul %0, %b
  %2 = relax.exp %1
  relax.return %2
}
"""
SQUARE = PROGRAM.replace("[m, k]", "[m, m]").replace("[k, n]", "[m, m]").replace("[m, n]", "[m, m]").replace(
    "[%m, %k, %n]", "[%m]"
)  # fmt: skip


def arrays(m: int) -> list[np.ndarray]:
    return [RNG.standard_normal((m, m), dtype=np.float32) / 4 for _ in range(2)]


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(a @ b @ b)


@pytest.fixture
def user_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("RELAX_TUNING_FILE", str(path))
    return path


@pytest.fixture
def everything_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement takes half of the one before, so that the last choice tried is the best."""
    seconds = iter(2.0**-n for n in range(10_000))
    monkeypatch.setattr(Bench, "seconds", lambda self, function: next(seconds))


def groups(text: str):
    return {group[0].sym_name.data: group for group in kernels.kernel_groups(kernels_of(parse_module(text)))}


def test_the_calls_of_a_program():
    calls = record_calls(parse_module(SQUARE), "main", arrays(5))
    tensor = ("float32", (5, 5))
    assert {call.kernel for call in calls} == set(groups(SQUARE))
    assert sum(calls.values()) >= 2
    assert all(each == tensor for call in calls for each in call.arguments if isinstance(each, tuple))


def test_whatever_is_tried_gives_the_same_values():
    target = Target.host()
    calls = {call: 1 for m in (7, 33) for call in record_calls(parse_module(SQUARE), "main", arrays(m))}
    for name, group in groups(SQUARE).items():
        mine = {call: count for call, count in calls.items() if call.kernel == name}
        bench = Bench(group, mine, target)
        want = bench.results(bench.compile(None))
        tried = list(islice(candidates(group[0], target, seed=7), 8))
        assert tried
        for choice in tried:
            assert agree(bench.results(bench.compile(choice)), want), choice.describe()


def test_candidates_depend_on_the_seed_only():
    (group, *_) = groups(SQUARE).values()
    first = [choice.text() for choice in candidates(group[0], Target.host(), seed=1)]
    assert first[:8] == [choice.text() for choice in islice(candidates(group[0], Target.host(), seed=1), 8)]
    assert len(set(first)) == len(first)
    assert sorted(first) != first or len(first) < 3


def test_what_is_found_is_used_by_builds(user_database: Path, everything_is_faster: None):
    inputs = arrays(12)
    module = parse_module(SQUARE)
    before = symbols(module)
    report = tune(module, inputs, trials=3, progress=None)
    assert report.kernels == len(report.records) >= 2
    assert report.seconds < report.default_seconds
    assert symbols(module).isdisjoint(before)
    for m in (0, 1, 12, 31):
        a, b = arrays(m)
        result = VirtualMachine(build(module))["main"](a, b)
        np.testing.assert_allclose(np.from_dlpack(result), expected(a, b), rtol=1e-3, atol=1e-4)
    text = report.as_text()
    assert all(f"@{name}" in text for name in report.records)


def symbols(module) -> set[str]:
    return set(kernels.compile_prim_funcs(kernels_of(module)).symbols.values())


def test_builds_can_ignore_it(user_database: Path, everything_is_faster: None, monkeypatch: pytest.MonkeyPatch):
    module = parse_module(SQUARE)
    before = symbols(module)
    tune(module, arrays(4), trials=2, progress=None)
    assert symbols(module) != before
    monkeypatch.setenv("RELAX_TUNING", "0")
    assert symbols(module) == before


def test_what_is_not_faster_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "seconds", lambda self, function: 1.0)
    kept = TuningDatabase(tmp_path / "t.json")
    report = tune(parse_module(SQUARE), arrays(4), trials=2, database=kept, progress=None)
    assert not report.records
    assert report.tried > 0
    assert not kept.records()


def test_an_interrupted_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was found for the kernels before is kept, and what is found later is measured against it."""
    path, seconds = tmp_path / "t.json", iter([1.0, *(2.0**-n for n in range(6))])

    def measured(self: Bench, function: object) -> float:
        value = next(seconds, None)
        if value is None:
            raise KeyboardInterrupt
        return value

    monkeypatch.setattr(Bench, "seconds", measured)
    with pytest.raises(KeyboardInterrupt):
        tune(parse_module(SQUARE), arrays(4), trials=2, database=TuningDatabase(path), progress=None)
    (kept,) = TuningDatabase(path).records().values()
    turns = iter([1.0, 1.0, 0.25] + [1.0] * 100)
    monkeypatch.setattr(Bench, "seconds", lambda self, function: next(turns))
    tune(parse_module(SQUARE), arrays(4), trials=2, database=TuningDatabase(path), progress=None)
    (again,) = TuningDatabase(path).records().values()
    assert again.choice == kept.choice
    assert again.seconds == 0.25


def test_what_gives_other_values_is_not_kept(
    tmp_path: Path, everything_is_faster: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lowering.tune.tuner.agree", lambda results, expected: False)
    report = tune(parse_module(SQUARE), arrays(4), trials=2, database=TuningDatabase(None), progress=None)
    assert not report.records


def test_progress(everything_is_faster: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lowering.progress.PATIENCE", 0)
    bar = io.StringIO()
    tune(parse_module(SQUARE), arrays(3), trials=1, database=TuningDatabase(None), progress=bar)
    assert "kernels" in bar.getvalue()
    assert bar.getvalue().endswith("\n")


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
    assert TuningDatabase(path).lookup("k2") == Choice(facts=(("l1_bytes", 1024),))
    assert TuningDatabase(path).lookup("k3") is None


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
from lowering.tune.choice import Choice
from lowering.tune.database import Record, TuningDatabase
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
    path.write_text(text)
    with pytest.raises(ValueError, match="is no tuning database"):
        TuningDatabase(path).records()
    with pytest.raises(ValueError, match="is no tuning database"):
        TuningDatabase(path).add(some_records())
    assert path.read_text() == text


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("RELAX_TUNING_FILE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "xdsl-relax" / "tuning.json"
    monkeypatch.setenv("RELAX_TUNING", "0")
    assert databases.default_database().path is None


def test_names_do_not_count_but_machines_do():
    (group, *_) = groups(SQUARE).values()
    renamed = group[0].clone()
    renamed.sym_name = type(renamed.sym_name)("other")
    v3, v4 = Target.parse("x86-64-v3"), Target.parse("x86-64-v4")
    assert kernel_key([renamed], v3) == kernel_key([group[0]], v3) != kernel_key([group[0]], v4)


def test_on_the_shell(user_database: Path, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(SQUARE)
    command = ["relax-run", str(path), "--random", "f32[9,9]", "f32[9,9]", "--tune", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "schedules of" in done.stdout
    assert "kernels" in done.stderr
    assert json.loads(user_database.read_text())["version"] == 1


def test_a_call_is_a_key():
    assert Call("k", (("float32", (1, 2)), 3)) == Call("k", (("float32", (1, 2)), 3))
