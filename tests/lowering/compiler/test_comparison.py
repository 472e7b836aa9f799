"""What finds the first wrong value and the first wrong pass: faults are planted at every level, and found."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowering.compiler.build import build_uncached
from lowering.compiler.comparison import bisect, check
from lowering.kernels.schedule_cpu import ScheduleCPUPass
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToLLVMPass
from lowering.relax.fusion.fuse_tir import FuseTIRPass
from lowering.relax.rewrites.simplify_arithmetic import SimplifyArithmeticPass
from lowering.tir_to_llvm.convert_tir_to_llvm import ConvertTIRToLLVMPass
from relax_dialect.ops.binary import AddOp, SubtractOp
from xdsl_relax.cli.relax_run import main

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.dataflow {
    %a = relax.exp %x
    %b = relax.add %a, %x
    %c = relax.tanh %b
    %d = relax.sum %c axes = [1]
    relax.output %d
  }
  relax.return %0
}
"""
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def plant(monkeypatch: pytest.MonkeyPatch, kind: type[ModulePass], old: type, new: type) -> None:
    """After the pass, ops of one class are of another."""
    right = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for found in [inner for inner in op.walk() if isinstance(inner, old)]:
            Rewriter.replace_op(found, new(*found.operands))

    monkeypatch.setattr(kind, "apply", wrong)


def test_right_values_are_listed():
    report = check(parse_module(TEXT, "m.mlir"), "main", [X], build_uncached, {})
    assert (report.first, report.result) == (None, None)
    assert [value.name.partition(" ")[0] for value in report.values] == ["%a", "%b", "%c", "%d"]
    assert all(value.error is not None and value.error < 1e-4 for value in report.values)
    line = r"^ok    %b = relax.add at m.mlir:5:5  !relax.tensor<\[n, 4\], f32>  greatest difference "
    assert re.search(line, report.as_text(), re.MULTILINE)
    assert report.as_text().endswith("the results agree, and 4 values on the way")


def test_the_first_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, SimplifyArithmeticPass, AddOp, SubtractOp)
    report = check(parse_module(TEXT, "m.mlir"), "main", [X], build_uncached, {})
    assert report.first is not None
    assert report.first.name == "%b = relax.add at m.mlir:5:5"
    assert [value.wrong is None for value in report.values] == [True, False, False, False]
    assert "the first value that differs is %b = relax.add at m.mlir:5:5: it element [0, 0] is" in report.as_text()


def test_a_fault_of_fused_kernels_is_found_though_each_value_alone_is_right(monkeypatch: pytest.MonkeyPatch):
    """It needs a kernel in which a sum follows a function: a program that gives every value has none."""
    right = FuseTIRPass.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for func in op.ops:
            name = getattr(func, "sym_name", None)
            if name is None or "fused" not in name.data or "add" not in name.data:
                continue
            if sum(isinstance(inner, arith.AddfOp) for inner in func.walk()) and "exp_add" in name.data:
                for add in [inner for inner in func.walk() if isinstance(inner, arith.AddfOp)][:1]:
                    Rewriter.replace_op(add, arith.SubfOp(*add.operands))

    monkeypatch.setattr(FuseTIRPass, "apply", wrong)
    report = check(parse_module(TEXT), "main", [X], build_uncached, {})
    assert report.result is not None
    assert report.first is not None
    assert report.first.name.startswith("%b = relax.add")


FAULTS = [
    pytest.param(SimplifyArithmeticPass, AddOp, SubtractOp, "simplify-arithmetic", id="graph"),
    pytest.param(ScheduleCPUPass, arith.AddfOp, arith.SubfOp, "schedule-cpu", id="loops"),
    pytest.param(ConvertTIRToLLVMPass, llvm.FAddOp, llvm.FSubOp, "convert-tir-to-llvm", id="llvm"),
]


@pytest.mark.parametrize(("kind", "old", "new", "name"), FAULTS)
def test_the_first_wrong_pass_is_named(
    kind: type[ModulePass], old: type, new: type, name: str, monkeypatch: pytest.MonkeyPatch
):
    plant(monkeypatch, kind, old, new)
    found = bisect(parse_module(TEXT), "main", [X], build_uncached, {})
    assert found.name == name
    assert found.runs < 12
    assert [each.name for each in RelaxToLLVMPass.passes()][found.number - 1] == name
    assert found.as_text().startswith(f"pass '{name}' (number {found.number}) is the first that changes the result: ")


def test_right_passes_are_said_to_be_right():
    found = bisect(parse_module(TEXT), "main", [X], build_uncached, {})
    assert found.as_text() == f"no pass changes the result, and native code gives it, too ({found.runs} runs)"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    return str(path)


def test_relax_run_checks_and_bisects(file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert main([file, "--random", "f32[3,4]", "--check"]) == 0
    assert "the results agree, and 4 values on the way" in capsys.readouterr().out
    plant(monkeypatch, SimplifyArithmeticPass, AddOp, SubtractOp)
    assert main([file, "--random", "f32[3,4]", "--check", "--bisect"]) == 1
    out, err = capsys.readouterr()
    assert "WRONG %b = relax.add" in out
    assert "pass 'simplify-arithmetic' (number " in out
    assert "relax-run: error: the program computes something else than it means" in err


def test_what_cannot_be_checked_is_said(file: str, capsys: pytest.CaptureFixture[str]):
    assert main([file, "--random", "f32[3,5]", "--check"]) == 1
    assert "the interpreter cannot run @main: ValueError: main: argument #0 (x) dimension 1" in capsys.readouterr().err
    assert main([file, "--entry", "other", "--random", "f32[3,4]", "--bisect"]) == 1
    assert "expected --entry to be one of main, got other" in capsys.readouterr().err
