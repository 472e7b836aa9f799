"""Validation of passes: a wrong one is named, with the call and the element; a right one is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowering import build
from lowering.compiler.build import build_uncached
from lowering.compiler.validation import Validation, ValueChanged, difference
from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToLLVMPass
from lowering.relax.rewrites.simplify_arithmetic import SimplifyArithmeticPass
from lowering.tir.lower_blocks import LowerBlocksPass
from relax_dialect.ops.binary import AddOp, SubtractOp
from tests.support.programs import run_pipeline
from vm_dialect.ops.structure import ReturnOp
from xdsl_relax.cli.relax_opt import main

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>, %k: !relax.prim<i64>) -> !relax.object {
  %c = relax.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %0 = relax.exp %x
  %1 = relax.add %0, %c
  %2 = relax.tuple(%0, %1, %k)
  relax.return %2
}
"""

KERNEL = """
tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "double" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
"""


STAGES = ("fold-constants", "lower-call-tir", "convert-relax-to-vm", "convert-tir-to-llvm", "verify-stage")


def _subtracts(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
    """A sum becomes a difference."""
    for add in [inner for inner in op.walk() if isinstance(inner, AddOp)]:
        Rewriter.replace_op(add, SubtractOp(*add.operands))


@pytest.fixture
def wrong_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimplifyArithmeticPass, "apply", _subtracts)


@pytest.mark.usefixtures("wrong_pass")
def test_build_names_the_pass():
    said = r"pass 'simplify-arithmetic' changes a value: @main with n = 3: result\[1\] element \[0, 0\] is .*, was "
    with pytest.raises(ValueChanged, match=said):
        build(parse_module(TEXT), validate=True)


@pytest.mark.usefixtures("wrong_pass")
def test_relax_opt_names_the_first_of_the_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "text.mlir"
    file.write_text(TEXT)
    assert main([str(file), "-p", "fold-constants,simplify-arithmetic,legalize-ops", "--validate-each"]) == 1
    err = capsys.readouterr().err
    assert "validated 1 passes by 4 calls of 1 functions" in err
    assert "pass 'simplify-arithmetic' changes a value: @main with n = 3: result[1] element [0, 0] is" in err


def test_a_right_pass_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "text.mlir"
    file.write_text(TEXT)
    assert main([str(file), "-p", "simplify-arithmetic,legalize-ops", "--validate-each"]) == 0
    assert "validated 2 passes by 4 calls of 1 functions\n" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_build_is_validated_to_the_end(mode: str):
    assert build(parse_module(TEXT), mode="native" if mode == "native" else "bytecode", validate=True).entries == (
        "main",
    )


def test_each_stage_is_run():
    module = parse_module(TEXT)
    validation = Validation(build_uncached)
    validation.begin(module)
    for each in RelaxToLLVMPass.passes():
        each.apply(make_context(), module)
        if each.name in (
            "fold-constants",
            "lower-call-tir",
            "convert-relax-to-vm",
            "convert-tir-to-llvm",
            "verify-stage",
        ):
            validation.after(module, each.name)
    assert validation.notes == []
    assert validation.validated > 4


def test_what_is_deferred_is_run():
    text = """
relax.func @main(%x: !relax.tensor<*, _>) -> !relax.object {
  %0 = relax.exp %x
  relax.return %0
}
"""
    validation, module = Validation(build_uncached), parse_module(text)
    validation.begin(module)
    run_pipeline(module, "bind-unknown-dims,defer-unknown-types")
    assert "run_deferred" in str(module)
    validation.after(module, "defer-unknown-types")
    assert validation.report() == "validated 1 passes by 1 calls of 1 functions"


def test_a_wrong_function_of_the_machine_is_found():
    """What the machine runs is run by the machine."""
    module = parse_module(TEXT)
    validation = Validation(build_uncached)
    validation.begin(module)
    run_pipeline(module, "relax-to-vm")
    (func,) = [op for op in module.ops if op.name == "vm.func"]
    (ret,) = [op for op in func.walk() if isinstance(op, ReturnOp)]
    ret.operands[0] = func.regions[0].block.args[0]
    with pytest.raises(
        ValueChanged, match=r"pass 'wrong' changes a value: @main with n = 3: the result is float32\[3, 2\]"
    ):
        validation.after(module, "wrong")


def test_kernels_alone_are_validated(monkeypatch: pytest.MonkeyPatch):
    """What a kernel writes is part of what it computes."""
    original = LowerBlocksPass.apply

    def multiplies(self: LowerBlocksPass, ctx: Context, op: ModuleOp) -> None:
        original(self, ctx, op)
        for add in [inner for inner in op.walk() if inner.name == "arith.addf"]:
            add.operands[1] = add.operands[0]
            Rewriter.replace_op(add, [], [add.operands[0]])

    validation, module = Validation(build_uncached), parse_module(KERNEL)
    validation.begin(module)
    LowerBlocksPass().apply(make_context(), module)
    validation.after(module, "lower-blocks")
    monkeypatch.setattr(LowerBlocksPass, "apply", multiplies)
    module = parse_module(KERNEL)
    LowerBlocksPass().apply(make_context(), module)
    with pytest.raises(ValueChanged, match=r"@double with n = 3: argument #1 after the call element \[0\]"):
        validation.after(module, "lower-blocks")


def test_a_new_signature_is_said_and_becomes_the_reference():
    module = parse_module(TEXT)
    validation = Validation(build_uncached)
    validation.begin(module)
    run_pipeline(module, "bind-symbolic-vars{n=4}")
    validation.after(module, "bind-symbolic-vars")
    assert validation.notes == ["bind-symbolic-vars is not validated: it changes the signatures of functions"]
    run_pipeline(module, "legalize-ops")
    validation.after(module, "legalize-ops")
    assert validation.report().startswith("validated 1 passes by 1 calls of 1 functions")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("relax.func @main(%x: !relax.object) -> !relax.object { relax.return %x }", "no inputs can be drawn"),
        (
            "relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.object {\n"
            '  %0 = relax.call_pure_packed "is.nowhere"(%x) : !relax.object\n  relax.return %0\n}',
            "fails on all inputs drawn",
        ),
        (
            "relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {\n"
            "  %0 = relax.call @main(%x) : !relax.object\n  relax.return %0\n}",
            "main: has not ended after 5000 calls and iterations of loops",
        ),
    ],
)
def test_what_is_not_validated_is_said(text: str, reason: str):
    validation = Validation(build_uncached)
    validation.begin(parse_module(text))
    assert reason in validation.report()


def test_inputs_are_drawn_for_all_kinds_of_parameters():
    """The result is a fact of the seed: the same inputs each time."""
    text = """
relax.func @main[%n, %m](%t: !relax.tuple<!relax.tensor<[n, m + 1], bf16>, !relax.prim<f32>>, %s: !relax.shape<[m]>,
                         %u: !relax.tensor<[_, n], ui8>, %v: !relax.tensor<*, _>, %b: !relax.prim<i1>)
    -> !relax.object {
  %0 = relax.tuple(%t, %s, %u, %v, %b)
  relax.return %0
}
"""
    first, second = Validation(build_uncached), Validation(build_uncached)
    for each in (first, second):
        each.begin(parse_module(text))
        run = parse_module(text)
        each.after(run, "nothing")
    assert first.report() == "validated 1 passes by 4 calls of 1 functions"
    assert str(first) == str(second)


def test_floats_agree_up_to_rounding_and_integers_exactly():
    one = np.float32([1, np.nan, np.inf])
    assert difference(one * np.float32(1 + 1e-6), one, "the result") is None
    assert (
        difference(one * np.float32(1.01), one, "the result") == "the result element [0] is 1.0099999904632568, was 1.0"
    )
    assert difference(np.int64([1, 2]), np.int64([1, 3]), "the result") == "the result element [1] is 2, was 3"
    assert difference(np.int64([1]), np.int32([1]), "the result") == "the result is int64[1], was int32[1]"
