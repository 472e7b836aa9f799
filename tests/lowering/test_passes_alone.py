"""Every registered pass, alone, on every valid module of the test tree: the result is valid, or the module is refused.

A quick run sees a sample of the modules for each pass, another one for each.
"""

from __future__ import annotations

from functools import cache

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import DiagnosticException

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.pipelines import expand
from lowering.registry import PASSES, pass_factories
from lowering.verify import verify_module
from relax_dialect.ops.structure import ReturnOp
from tests.support.corpus import texts, valid_module

OPTIONS = {
    "bind-symbolic-vars": "{func=main n=4}",
    "cut-constants": "{rank=0}",
    "fuse-ops-by-pattern": "{backend=blas}",
    "verify-stage": "{stage=relax}",
}
"""What passes that need options are given; the others run with their defaults."""

TAKES_A_FILE = {"apply-schedule"}
"""Passes whose options name a file, which has to fit the module: their own tests run them."""

SAMPLE, SAMPLE_OF_LONG = 24, 240
"""A quick run has one in so many modules for a pass; fewer for pipelines that make code."""

LONG = {"relax-to-llvm-plain", "relax-to-llvm", "relax-to-vm-plain", "relax-to-vm", "tir-to-llvm"}


@cache
def modules(first: int = 0, step: int = 1) -> list[tuple[str, ModuleOp]]:
    """The valid modules of the tree, or of one text in so many."""
    sample = texts()[first::step]
    return [(name, module) for name, text in sample if (module := valid_module(name, text)) is not None]


@pytest.mark.slow
def test_the_tree_has_modules():
    assert len(modules()) > 300


def test_every_pass_is_run():
    without_defaults = {name for name in PASSES if name not in OPTIONS and not _has_defaults(name)}
    assert without_defaults == TAKES_A_FILE


def _has_defaults(name: str) -> bool:
    try:
        PassPipeline.parse_spec(pass_factories(), name)
    except Exception:
        return False
    return True


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [name for name in PASSES if name not in TAKES_A_FILE])
def test_a_sample_of_modules(name: str):
    step = SAMPLE_OF_LONG if name in LONG else SAMPLE
    first = list(PASSES).index(name) % step
    _check(name, modules(first, step))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PASSES if name not in TAKES_A_FILE])
def test_all_modules(name: str):
    _check(name, modules())


@pytest.mark.parametrize("name", ["fuse-tir", "schedule-cpu", "tir-to-llvm"])
def test_kernels_that_store_nothing(name: str):
    text = """
        tir.prim_func @empty[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {}
        tir.prim_func @declares[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
          tir.for (%i) in (%n) {
            tir.block "opaque" (%vi = spatial %i in %n) {
              tir.reads %X[%vi]
              tir.writes %Y[%vi]
            }
          }
        }
        relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
          %0 = relax.fused {
            %1 = relax.call_tir @empty(%x) : !relax.tensor<[n], f32>
            relax.yield %1
          }
          relax.return %0
        }
    """
    _check(name, [("kernels that store nothing", parse_module(text))])


def _check(name: str, subjects: list[tuple[str, ModuleOp]]) -> None:
    (each,) = PassPipeline.parse_spec(pass_factories(), name + OPTIONS.get(name, "")).passes
    wrong = [f"{where}: {fault}" for where, module in subjects if (fault := _fault(each, module.clone())) is not None]
    assert not wrong, "\n".join(wrong)


def _fault(each: ModulePass, module: ModuleOp) -> str | None:
    """What is wrong with what a pass, or one of a pipeline, does to a module."""
    context = make_context()
    for step in expand(each):
        try:
            step.apply(context, module)
        except DiagnosticException as error:
            return None if "'" in str(error) else f"{step.name} refuses without a reason: {error}"
        except Exception as error:
            return f"{step.name}: {type(error).__name__}: {error}"
        try:
            verify_module(module)
        except DiagnosticException as error:
            return f"{step.name} made an invalid module: {error}"
    return None


class FailsInside(ModulePass):
    name = "fails-inside"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("symbol")


class LeavesNoReturn(ModulePass):
    name = "leaves-no-return"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [inner for inner in op.walk() if isinstance(inner, ReturnOp)]:
            Rewriter.erase_op(inner)


@pytest.mark.parametrize(("wrong", "said"), [(FailsInside(), "KeyError"), (LeavesNoReturn(), "made an invalid module")])
def test_what_a_pass_does_wrong_is_found(wrong: ModulePass, said: str):
    module = parse_module("relax.func @main(%x: !relax.object) -> !relax.object { relax.return %x }")
    assert said in (_fault(wrong, module) or "")
