"""The search for schedules: what it tries is right, what it finds is kept, and builds use it."""

import io
import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lowering import build
from lowering.compiler import kernels as kernels
from lowering.compiler.kernel_maker import DEFAULT_OPTIONS, lower_kernel
from lowering.compiler.kernels import plan_kernels
from lowering.compiler.tuning_database import Choice, Record, TuningDatabase, kernel_key
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.tune import tune
from lowering.tune.search import Search, candidates
from lowering.tune.tuner import Task, kernels_of, record_calls, run
from tests.lowering.tune.support import MAP, ONE, SQUARE, arrays, expected, groups, races
from tests.support.tir import parse_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Trace
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from xdsl_relax.cli.relax_translate import main as translate


def test_the_calls_of_a_program():
    calls = record_calls(parse_module(SQUARE), "main", arrays(5))
    tensor = ("float32", (5, 5))
    assert {call.kernel for call in calls} == set(groups(SQUARE))
    assert sum(calls.values()) >= 2
    assert all(each == tensor for call in calls for each in call.arguments if isinstance(each, tuple))


@pytest.mark.slow
def test_what_is_found_is_used_by_builds(user_database: Path, everything_is_faster: None):
    inputs = arrays(12)
    module = parse_module(SQUARE)
    before = symbols(module)
    report = tune(module, inputs, trials=1, progress=None)
    assert report.kernels == len(report.records) >= 2
    assert report.seconds < report.default_seconds
    assert symbols(module).isdisjoint(before)
    for m in (0, 1, 12, 31):
        a, b = arrays(m)
        result = VirtualMachine(build(module))["main"](a, b)
        np.testing.assert_allclose(np.from_dlpack(result), expected(a, b), rtol=1e-3, atol=1e-4)
    text = report.as_text()
    assert all(f"@{name}" in text for name in report.records)


def test_on_the_workers_of_a_pool(user_database: Path, everything_is_faster: None):
    """What they find is kept as what is found here, and no task holds what a process cannot send to another one."""

    class Pool(ThreadPoolExecutor):
        def submit(self, function, /, *arguments):
            return super().submit(function, *pickle.loads(pickle.dumps(arguments)))

    module = parse_module(MAP)
    before = symbols(module)
    with Pool(2) as pool:
        report = tune(module, arrays(12), trials=1, progress=None, pool=pool)
    assert report.kernels == len(report.records) == report.tried == 1
    assert symbols(module).isdisjoint(before)


def test_a_worker_on_another_machine():
    other = replace(Target.host(), cores=1 + Target.host().cores)
    with pytest.raises(ValueError, match="expected workers on machines like"):
        run(Task("", {}, other, None, trials=1, seed=0, opt_level=3))


def symbols(module) -> set[str]:
    return set(kernels.compile_prim_funcs(kernels_of(module)).symbols.values())


@pytest.mark.slow
def test_a_kernel_without_functions(user_database: Path, everything_is_faster: None):
    module = parse_module(KERNEL)
    before = symbols(module)
    (x, _), y = arrays(8), np.zeros((8, 8), np.float32)
    report = tune(module, [x, y], entry="double", trials=1, progress=None)
    assert len(report.records) == 1
    assert symbols(module).isdisjoint(before)
    VirtualMachine(build(module))["double"](x, y)
    np.testing.assert_array_equal(y, x + x)


KERNEL = """
tir.prim_func @double[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "B" (%v = spatial %i in %n, %w = spatial %j in %m) {
      %x = tir.load %X[%v, %w]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%v, %w]
    }
  }
}
"""


def test_builds_can_ignore_it(user_database: Path, everything_is_faster: None, monkeypatch: pytest.MonkeyPatch):
    module = parse_module(MAP)
    before = symbols(module)
    tune(module, arrays(4), trials=2, progress=None)
    assert symbols(module) != before
    monkeypatch.setenv("RELAX_TUNING", "0")
    assert symbols(module) == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "ratio",
    [
        lambda number: 1.0,
        lambda number: 0.98,
        lambda number: (0.9, 1.0)[number % 2],  # not when it is looked at longer
        lambda number: (0.9, 0.9, 1.0)[number % 3],  # not when it is compared with the default once more
    ],
)
def test_what_is_not_faster_beyond_noise_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratio: Callable[[int], float]
):
    races(monkeypatch, ratio)
    kept = TuningDatabase(tmp_path / "t.json")
    report = tune(parse_module(MAP), arrays(4), trials=1, database=kept, progress=None)
    assert not report.records
    assert report.tried == 1
    assert not kept.records()
    assert "nothing is faster than the default" in report.as_text()


@pytest.mark.slow
def test_sizes_of_earlier_searches_are_measured_again(tmp_path: Path, everything_is_faster: None, monkeypatch):
    kept = TuningDatabase(tmp_path / "t.json")
    tune(parse_module(MAP), arrays(4), trials=1, database=kept, progress=None)
    tune(parse_module(MAP), arrays(9), trials=1, database=TuningDatabase(kept.path), progress=None)
    (record,) = kept.records().values()
    shapes = [[argument[1] for argument in call.arguments if isinstance(argument, tuple)] for call in record.calls]
    assert shapes == [[(4, 4)] * 3, [(9, 9)] * 3]
    races(monkeypatch, lambda number: 1.0)
    report = tune(parse_module(MAP), arrays(9), trials=1, database=kept, progress=None)
    assert not report.records
    assert not kept.records(), "what has lost its advantage is forgotten"


def test_calls_without_elements_are_not_measured():
    report = tune(parse_module(MAP), arrays(0), trials=1, database=TuningDatabase(None), progress=None)
    assert (report.kernels, report.tried) == (0, 0)
    assert "no kernel is called with tensors that have elements" in report.as_text()


@pytest.mark.slow
def test_an_interrupted_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was found until then is kept, and tried first the next time."""
    path = tmp_path / "t.json"

    def interrupted(number: int) -> float:
        if number == 2:  # the second choice is raced, the first was found to be faster
            raise KeyboardInterrupt
        return 0.5

    races(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(parse_module(MAP), arrays(4), trials=2, database=TuningDatabase(path), progress=None)
    (kept,) = TuningDatabase(path).records().values()
    races(monkeypatch, lambda number: 0.25 if number in (0, 1, 3) else 1.0)
    tune(parse_module(MAP), arrays(4), trials=1, database=TuningDatabase(path), progress=None)
    (again,) = TuningDatabase(path).records().values()
    assert again.choice == kept.choice
    assert again.seconds == 0.25


@pytest.mark.slow
def test_an_interruption_forgets_nothing(tmp_path: Path, everything_is_faster: None, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "t.json"
    tune(parse_module(MAP), arrays(4), trials=1, database=TuningDatabase(path), progress=None)
    before = path.read_text()

    def interrupted(number: int) -> float:
        raise KeyboardInterrupt

    races(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(parse_module(MAP), arrays(4), trials=1, database=TuningDatabase(path), progress=None)
    assert path.read_text() == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (Choice(Trace.from_json([{"call": "get_block", "args": ["another"]}])), 'got "another"'),
        (Choice(facts=(("tile_rows", 99),)), "tile"),
        (Choice(facts=(("cores", 1),)), "the rules of schedule-cpu have changed since"),
    ],
    ids=["trace", "tile", "rules"],
)
def test_a_choice_that_is_not_what_was_measured_any_more(choice: Choice, reason: str, user_database: Path):
    module = parse_module(ONE)
    (group,) = groups(ONE).values()
    record = Record(choice, 1.0, 2.0, "mine", code="of other rules")
    TuningDatabase(user_database).add({kernel_key(group, Target.host()): record})
    a, b = arrays(5)
    with pytest.warns(UserWarning, match=rf"tuning found for @mine is not used \(.*{reason}.*\); .* tune again"):
        made = build(module, cache=NO_CACHE)
    np.testing.assert_allclose(np.from_dlpack(VirtualMachine(made)["main"](a, b)), a @ b, rtol=1e-4, atol=1e-5)


def test_a_record_changes_the_code_for_its_machine_only(user_database: Path):
    module = kernels_of(parse_module(MAP))
    (group,) = groups(MAP).values()
    mine, other = Target.parse("x86-64-v3 cores=2"), Target.parse("x86-64-v3 cores=3")
    before = {target: texts(module, target) for target in (mine, other)}
    choice = Choice(facts=(("cores", 1),))
    record = Record(choice, 1.0, 2.0, "mine", code=choice.code(group[0], mine) or "")
    TuningDatabase(user_database).add({kernel_key(group, mine): record})
    assert "relax_parallel" in str(before[mine])
    assert "relax_parallel" not in str(texts(module, mine))
    assert texts(module, other) == before[other]


def trace_of(func: PrimFuncOp, target: Target) -> Choice:
    """Tiles, vectors and threads, as a trace."""
    return next(choice for choice in candidates(func, target) if choice.trace is not None)


def test_a_recorded_trace_is_what_builds_compile(user_database: Path):
    """For all sizes, though few are measured; a kernel that has changed is another one, for which nothing is known."""
    host = Target.host()
    module, changed = parse_module(MAP), parse_module(MAP.replace("relax.exp", "relax.negative"))
    ((func, *_),) = groups(MAP).values()
    before, of_changed = texts(kernels_of(module), host), texts(kernels_of(changed), host)
    choice = trace_of(func, host)
    code = choice.code(func, host)
    record = Record(choice, 1.0, 2.0, "mine", code=code or "")
    TuningDatabase(user_database).add({kernel_key([func], host): record})
    assert set(texts(kernels_of(module), host).values()).isdisjoint(before.values())
    assert texts(kernels_of(changed), host) == of_changed
    machine = VirtualMachine(build(module, cache=NO_CACHE))
    for m in (0, 1, 7, 33):
        a, b = arrays(m)
        np.testing.assert_allclose(np.from_dlpack(machine["main"](a, b)), np.exp(a) + b, rtol=1e-5, atol=1e-6)


def test_a_recorded_trace_that_makes_other_code_now(user_database: Path):
    host = Target.host()
    ((func, *_),) = groups(MAP).values()
    choice = trace_of(func, host)
    record = Record(choice, 1.0, 2.0, "mine", code="of other primitives")
    module = kernels_of(parse_module(MAP))
    before = [*texts(module, host).values()]
    TuningDatabase(user_database).add({kernel_key([func], host): record})
    with pytest.warns(UserWarning, match="tuning found for @mine is not used .* tune again"):
        (text,) = texts(module, host).values()
    assert without_symbols(text) == without_symbols(before[0])


def without_symbols(text: str) -> str:
    return re.sub(r"relax_[0-9a-f]{32}", "kernel", text)


def test_what_is_emitted_for_others_is_what_builds_compile(user_database: Path, tmp_path: Path):
    """`relax-translate` consults the database, and leaves it with the same variable as builds."""
    target = Target.parse("x86-64-v3 cores=2")
    ((func, *_),) = groups(MAP).values()
    (tmp_path / "p.mlir").write_text(MAP)
    command = [str(tmp_path / "p.mlir"), "--emit", "llvmir", "--target", "x86-64-v3 cores=2", "-o"]

    def emitted(name: str) -> str:
        assert translate([*command, str(tmp_path / name)]) == 0
        return (tmp_path / name).read_text()

    assert "relax_parallel" in emitted("default.ll")
    choice = Choice(facts=(("cores", 1),))
    record = Record(choice, 1.0, 2.0, "mine", code=choice.code(func, target) or "")
    TuningDatabase(user_database).add({kernel_key([func], target): record})
    assert "relax_parallel" not in emitted("tuned.ll")
    record = replace(record, code="of other rules")
    TuningDatabase(user_database).add({kernel_key([func], target): record})
    with pytest.warns(UserWarning, match="tuning found for @mine is not used"):
        assert emitted("default.ll") == emitted("default.ll")
    assert "relax_parallel" in (tmp_path / "default.ll").read_text()


def texts(module, target: Target) -> dict[str, str]:
    plan = plan_kernels(module, target, NO_CACHE, DEFAULT_OPTIONS)
    return {name: lower_kernel(each.group, name, target, each.options).text for name, each in plan.kernels.items()}


def test_records_are_of_the_kernels_that_a_level_makes(tmp_path: Path, everything_is_faster: None):
    """Without optimisation of the graph they are not fused."""
    kept = TuningDatabase(tmp_path / "t.json")
    report = tune(parse_module(MAP), arrays(4), trials=1, opt_level=0, database=kept, progress=None)
    assert set(report.records) == {"exp", "add"}


def test_an_entry_that_is_not_there():
    with pytest.raises(ValueError, match="expected entry to be one of main, got f"):
        tune(parse_module(MAP), arrays(4), entry="f", database=TuningDatabase(None), progress=None)


def test_what_cannot_be_searched():
    with pytest.raises(TypeError, match=r"tune expected a module \(builtin.module\), got PrimFuncOp; put it into one"):
        tune(parse_prim_func("tir.prim_func @f() {}"), arrays(4))
    with pytest.raises(ValueError, match="trials expected a positive number, got 0"):
        tune(parse_module(MAP), arrays(4), trials=0, database=TuningDatabase(None), progress=None)


def test_threads_are_not_compared_where_others_compute(monkeypatch: pytest.MonkeyPatch, everything_is_faster: None):
    seen: list[bool] = []

    def run(search: Search, trials: int, seed: int, *, threads: bool) -> Iterator[Choice]:
        seen.append(threads)
        return iter(())

    monkeypatch.setattr(Search, "run", run)
    for load in (0.0, 99.0):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, load, load))
        report = tune(parse_module(MAP), arrays(4), database=TuningDatabase(None), progress=None)
        assert ("numbers of threads were not compared" in report.as_text()) is (load > 0)
    assert seen == [True, False]


def test_what_gives_other_values_is_not_kept(
    tmp_path: Path, everything_is_faster: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lowering.tune.search.agree", lambda results, expected: False)
    report = tune(parse_module(MAP), arrays(4), trials=2, database=TuningDatabase(None), progress=None)
    assert not report.records


@pytest.mark.slow
def test_without_a_cache_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything_is_faster: None):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    tune(parse_module(MAP), arrays(3), trials=1, database=TuningDatabase(None), cache=False, progress=None)
    assert not (tmp_path / "cache").exists()
    tune(parse_module(MAP), arrays(3), trials=1, database=TuningDatabase(None), progress=None)
    assert any((tmp_path / "cache").rglob("*"))


@pytest.mark.slow
def test_ctrl_c_is_a_line_and_ends_by_the_signal(user_database: Path, tmp_path: Path):
    """Which shells show as 130, and by which they know that a loop around the command is to end."""
    (tmp_path / "p.mlir").write_text(MAP)
    script = "import sys; from xdsl_relax.cli.relax_run import main; from lowering.tune.search import Search\n"
    script += "def run(*args, **keywords): raise KeyboardInterrupt\nSearch.run = run; sys.exit(main())"
    command = [
        sys.executable,
        "-c",
        script,
        str(tmp_path / "p.mlir"),
        "--random",
        "f32[3,3]",
        "f32[3,3]",
        "--tune",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    last = done.stderr.splitlines()[-1]
    assert last == f"relax-run: interrupted; what the search has found until now is kept in {user_database}"


def test_progress(everything_is_faster: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lowering.debug.PATIENCE", 0)
    bar = io.StringIO()
    tune(parse_module(MAP), arrays(3), trials=1, database=TuningDatabase(None), progress=bar)
    assert "kernels" in bar.getvalue()
    assert bar.getvalue().endswith("\n")


@pytest.mark.slow
def test_on_the_shell(user_database: Path, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(SQUARE)
    command = ["relax-run", str(path), "--random", "f32[9,9]", "f32[9,9]", "--tune", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "schedules of" in done.stdout
    kept = bool(json.loads(user_database.read_text())["kernels"])
    assert (f"kept in {user_database}" in done.stdout) is kept
    assert "kernels" in done.stderr


@pytest.mark.slow
def test_a_damaged_database_is_a_line_on_the_shell(user_database: Path, tmp_path: Path):
    user_database.write_text("{")
    (tmp_path / "p.mlir").write_text(MAP)
    command = ["relax-run", str(tmp_path / "p.mlir"), "--random", "f32[9,9]", "f32[9,9]", "--mode", "bytecode"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0].startswith(f"relax-run: warning: {user_database} is no tuning database")
    assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([*command, "--tune", "1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"relax-run: error: {user_database} is no tuning database")


def test_other_machines_cannot_be_searched_for(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(MAP)
    command = ["relax-run", str(path), "--random", "f32[9,9]", "f32[9,9]", "--tune", "1", "--target", "cortex-a53"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--tune measures on this machine, and cannot search for another one; leave out --target" in done.stderr
