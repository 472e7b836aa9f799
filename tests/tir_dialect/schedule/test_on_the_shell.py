"""Every primitive runs from the shell: one trace for each, replayed by `relax-opt -p "apply-schedule{file=...}"`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from lowering.parsing import parse_module
from lowering.tir.apply_schedule import MARK, ApplySchedulePass
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import blur, elementwise, m, matmul, n, row_sum, run
from tests.tir_dialect.schedule.test_padding import padded
from tests.tir_dialect.schedule.test_reductions import product_with_epilogue
from tir_dialect import te
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Schedule, trace
from tir_dialect.schedule.primitives import tensorizing
from tir_dialect.schedule.state import PRIMITIVES
from xdsl_relax.cli.relax_opt import main as optimize

Steps = Callable[[Schedule], object]

INTRINSIC = """
from tir_dialect import te
from tir_dialect.schedule.primitives.tensorizing import TensorIntrin, register_tensor_intrin

def double():
    a = te.placeholder((4,), "i32", "a")
    return te.create_prim_func([a, te.compute((4,), lambda i: a[i] * 2, name="double")], name="double")

register_tensor_intrin(TensorIntrin("double_4", double(), double()))
"""
"""A Python file for `--load`."""


def update() -> PrimFuncOp:
    """A buffer that is read and written."""
    return parse_prim_func("""
tir.prim_func @update[%n](%A: !tir.buffer<[n], i32>) {
  tir.for (%i) in (%n) {
    tir.block "A" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %b = arith.addi %a, %a : i32
      tir.store %b, %A[%vi]
    }
  }
}""")


def doubled() -> PrimFuncOp:
    """Of constant size, in two steps."""
    a = te.placeholder((24, 64), "i32", "A")
    b = te.compute((24, 64), lambda i, j: a[i, j] * 2, name="B")
    return te.create_prim_func([a, te.compute((24, 64), lambda i, j: b[i, j] + 1, name="C")])


def spread() -> PrimFuncOp:
    """Two results, with an index that is computed."""
    a = te.placeholder((n + m, m), "i32", "A")
    b = te.compute((n, m), lambda i, j: a[i // 2 + j // 3, j], name="B")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: a[i, j] * 3, name="C")])


def _rolling(sch: Schedule) -> None:
    i, j = sch.get_loops("C")
    sch.compute_at("B", sch.tile(i, j, [4, 8])[1])
    sch.rolling_buffer("B", 0)


def _epilogue(sch: Schedule) -> None:
    sch.fuse_reduction_epilogue("T", "D")


STEPS: dict[str, tuple[Callable[[], PrimFuncOp], Steps]] = {
    "add_unit_loop": (elementwise, lambda sch: sch.add_unit_loop(sch.get_loops("B")[1])),
    "annotate": (elementwise, lambda sch: sch.annotate("B", "note", {"a": [1, "b"]})),
    "annotate_buffer_access": (
        elementwise,
        lambda sch: sch.annotate_buffer_access("B", 0, "write", "(vi, vj) -> (vi, vi + 1, 0, m)"),
    ),
    "bind": (elementwise, lambda sch: sch.bind(sch.get_loops("B")[0], "threadIdx.x")),
    "blockize": (elementwise, lambda sch: sch.blockize(sch.get_loops("B")[1])),
    "cache_index": (spread, lambda sch: sch.cache_index("B", "global")),
    "cache_inplace": (update, lambda sch: sch.cache_inplace("A", 0)),
    "cache_read": (elementwise, lambda sch: sch.cache_read("B", 0, "local", ["B"])),
    "cache_write": (elementwise, lambda sch: sch.cache_write("C", 0)),
    "can_decompose_padding": (padded, lambda sch: sch.can_decompose_padding("P", sch.get_loops("P")[0])),
    "compute_at": (elementwise, lambda sch: sch.compute_at("B", sch.get_loops("C")[0])),
    "compute_inline": (elementwise, lambda sch: sch.compute_inline("B")),
    "decompose_padding": (padded, lambda sch: sch.decompose_padding("P", sch.get_loops("P")[0])),
    "decompose_reduction": (matmul, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[2])),
    "enter_postproc": (elementwise, lambda sch: sch.enter_postproc()),
    "fuse": (elementwise, lambda sch: sch.fuse(*sch.get_loops("B"))),
    "fuse_reduction_epilogue": (product_with_epilogue, _epilogue),
    "get_block": (elementwise, lambda sch: sch.parallel(sch.get_loops(sch.get_block("B"))[0])),
    "get_blocks": (elementwise, lambda sch: sch.compute_inline(sch.get_blocks()[0])),
    "get_child_blocks": (elementwise, lambda sch: sch.compute_inline(sch.get_child_blocks()[0])),
    "get_consumers": (elementwise, lambda sch: sch.reverse_compute_inline(*sch.get_consumers("B"))),
    "get_loops": (elementwise, lambda sch: sch.parallel(sch.get_loops("C")[0])),
    "get_output_blocks": (elementwise, lambda sch: sch.reverse_compute_inline(*sch.get_output_blocks())),
    "get_producers": (elementwise, lambda sch: sch.compute_inline(*sch.get_producers("C"))),
    "loop_partition": (elementwise, lambda sch: sch.loop_partition(sch.get_loops("B")[0], ["floordiv(n, 2)", None])),
    "merge": (spread, lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])),
    "pad_einsum": (matmul, lambda sch: sch.pad_einsum("C", [4, 8, 2])),
    "parallel": (elementwise, lambda sch: sch.parallel(sch.get_loops("B")[0])),
    "read_at": (elementwise, lambda sch: sch.read_at(sch.get_loops("B")[0], "B", 0, "local")),
    "reindex": (matmul, lambda sch: sch.reindex("C", ("read", 1))),
    "reindex_cache_read": (matmul, lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i, j, r: (r, i))),
    "reindex_cache_write": (elementwise, lambda sch: sch.reindex_cache_write("C", 0, "local", lambda i, j: (j, i))),
    "reorder": (matmul, lambda sch: sch.reorder(*sch.get_loops("C")[::-1])),
    "reorder_block_iter_var": (matmul, lambda sch: sch.reorder_block_iter_var("C", [2, 0, 1])),
    "reverse_compute_at": (elementwise, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])),
    "reverse_compute_inline": (elementwise, lambda sch: sch.reverse_compute_inline("C")),
    "rfactor": (row_sum, lambda sch: sch.rfactor(sch.split(sch.get_loops("B")[1], [None, 4])[1], 1)),
    "rolling_buffer": (blur, _rolling),
    "sample_categorical": (elementwise, lambda sch: sch.annotate("B", "a", sch.sample_categorical([3, 5], [0.5, 0.5]))),
    "sample_compute_location": (doubled, lambda sch: sch.compute_at("B", sch.sample_compute_location("B"))),
    "sample_partitioned_tile": (
        doubled,
        lambda sch: sch.split(loop := sch.get_loops("B")[0], sch.sample_partitioned_tile(loop, 3, 1, 2)),
    ),
    "sample_perfect_tile": (
        doubled,
        lambda sch: sch.split(loop := sch.get_loops("B")[0], sch.sample_perfect_tile(loop, 3)),
    ),
    "set_scope": (elementwise, lambda sch: sch.set_scope("B", 0, "local")),
    "split": (elementwise, lambda sch: sch.split(sch.get_loops("B")[1], ["floordiv(m + 3, 4)", 4])),
    "storage_align": (doubled, lambda sch: sch.storage_align("B", 0, 0, 32, 8)),
    "tensorize": (doubled, lambda sch: sch.tensorize(sch.split(sch.get_loops("B")[1], [None, 4])[1], "double_4")),
    "tile": (elementwise, lambda sch: sch.tile(*sch.get_loops("B"), [4, 8])),
    "transform_block_layout": (elementwise, lambda sch: sch.transform_block_layout("B", lambda i, j: (j, i))),
    "transform_layout": (
        elementwise,
        lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0),
    ),
    "unannotate": (elementwise, lambda sch: (sch.annotate("B", "a", 1), sch.unannotate("B", "a"))),
    "unroll": (doubled, lambda sch: sch.unroll(sch.get_loops("B")[0])),
    "unsafe_set_dtype": (elementwise, lambda sch: sch.unsafe_set_dtype("B", 0, "i64")),
    "vectorize": (doubled, lambda sch: sch.vectorize(sch.get_loops("B")[1])),
    "write_at": (elementwise, lambda sch: sch.write_at(sch.get_loops("C")[0], "C", 0, "local")),
}
"""A program, and a schedule of it with the primitive (`work_on` is in traces of modules)."""

UNCHANGED = {"can_decompose_padding", "enter_postproc", "unannotate"}


@pytest.fixture(scope="module")
def schedules() -> dict[str, Schedule]:
    """Each schedule, made in Python."""
    made: dict[str, Schedule] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorizing, "_INTRINS", {})
        exec(INTRINSIC, {})
        for name, (program, steps) in STEPS.items():
            func = program().clone()
            func.sym_name = StringAttr(name)
            made[name] = Schedule(func, seed=3)
            steps(made[name])
    return made


@pytest.fixture(scope="module")
def printed(schedules: dict[str, Schedule], tmp_path_factory: pytest.TempPathFactory) -> dict[str, PrimFuncOp]:
    """The functions that the shell prints after one command with all traces, by name."""
    place = tmp_path_factory.mktemp("shell")
    programs: dict[str, PrimFuncOp] = {}
    for name, (program, _) in STEPS.items():
        programs[name] = program().clone()
        programs[name].sym_name = StringAttr(name)
    module = ModuleOp([*programs.values()])
    (place / "in.mlir").write_text(str(module))
    (place / "intrinsic.py").write_text(INTRINSIC)
    (place / "steps.json").write_text(trace.save({name: sch.trace for name, sch in schedules.items()}))
    command = ["relax-opt", "in.mlir", "--load", "intrinsic.py", "-p", 'apply-schedule{file="steps.json"}']
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert done.returncode == 0, done.stderr
    funcs = [op for op in parse_module(done.stdout).ops if isinstance(op, PrimFuncOp)]
    for func in funcs:
        func.attributes.pop(MARK, None)
    return {func.sym_name.data: func for func in funcs}


def test_there_is_a_row_for_every_primitive():
    assert {*STEPS, "work_on"} == PRIMITIVES.keys()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", STEPS)
def test_the_shell_does_what_python_does(name: str, schedules: dict[str, Schedule], printed: dict[str, PrimFuncOp]):
    sch, before = schedules[name], STEPS[name][0]().clone()
    assert f"sch.{name}(" in sch.trace.as_python()
    assert Fingerprint()(printed[name]) == Fingerprint()(sch.func), f"{printed[name]}\n{sch.func}"
    assert (body(before) == body(sch.func)) is (name in UNCHANGED)
    sizes = {"n": 5, "m": 7, "k": 3}
    for want, have in zip(run(before, sizes), run(sch.func, sizes), strict=True):
        np.testing.assert_array_equal(have, want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STEPS)
def test_every_primitive_may_be_validated(name: str, schedules: dict[str, Schedule], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tensorizing, "_INTRINS", {})
    exec(INTRINSIC, {})
    program, steps = STEPS[name]
    sch = Schedule(program().clone(), seed=3, validate=True)
    steps(sch)
    assert body(sch.func) == body(schedules[name].func)


@pytest.mark.slow
def test_the_shell_validates(tmp_path: Path):
    wrong = INTRINSIC.replace("double(), double()", "double(2), double(3)")
    (tmp_path / "intrinsic.py").write_text(wrong.replace("* 2", "* factor").replace("double():", "double(factor):"))
    (tmp_path / "in.mlir").write_text(str(ModuleOp([func := doubled()])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorizing, "_INTRINS", {})
        exec(INTRINSIC, {})
        sch = Schedule(func)
        STEPS["tensorize"][1](sch)
    (tmp_path / "steps.json").write_text(trace.save({"main": sch.trace}))
    command = ["relax-opt", "in.mlir", "--load", "intrinsic.py", "-p"]
    trusting = [*command, 'apply-schedule{file="steps.json"}']
    assert subprocess.run(trusting, capture_output=True, cwd=tmp_path).returncode == 0
    validating = [*command, 'apply-schedule{file="steps.json" validate=true}']
    done = subprocess.run(validating, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "cannot be scheduled: tensorize: after this step C[0, 0] becomes" in done.stderr


def test_functions_of_a_module_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`work_on`, in the trace of a module."""
    funcs = [elementwise(), elementwise()]
    for func, name in zip(funcs, ("f", "g"), strict=True):
        func.sym_name = StringAttr(name)
    module = ModuleOp(funcs)
    (tmp_path / "in.mlir").write_text(str(module))
    sch = Schedule(module)
    sch.work_on("g")
    sch.compute_inline("B")
    (tmp_path / "steps.json").write_text(trace.save({}, sch.trace))
    assert optimize([str(tmp_path / "in.mlir"), "-p", f'apply-schedule{{file="{tmp_path}/steps.json"}}']) == 0
    shown = parse_module(capsys.readouterr().out)
    assert [Fingerprint()(op) for op in shown.ops] == [Fingerprint()(op) for op in module.ops]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "steps.json: no such file or directory"),
        (b"\xff", "steps.json: expected JSON, got no text"),
        (b"steps", "steps.json: expected JSON, got other text in line 1, column 1"),
    ],
)
def test_files_that_have_no_traces(tmp_path: Path, content: bytes | None, message: str):
    path = tmp_path / "steps.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PassFailedException, match=f"expected a file of schedule traces, got .*{message}"):
        ApplySchedulePass(str(path)).apply(Context(), ModuleOp([]))


def body(func: PrimFuncOp) -> str:
    """Everything but the name."""
    return str(func).partition("\n")[2]
