"""Pipelines from Python."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from xdsl.dialects.builtin import ModuleOp

import xdsl_relax as xr

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""


def test_a_pipeline_leaves_its_module_as_it_is():
    module = xr.parse(TEXT)
    result = xr.run_passes(module, "legalize-ops,verify-stage{stage=relax-legal}")
    assert "relax.call_tir @exp" in str(result)
    assert str(module) == str(xr.parse(TEXT))
    assert str(xr.run_passes(module, ["legalize-ops"])) == str(result)


def test_instruments_and_options():
    seen: list[str] = []

    class Seen:
        def before_pass(self, name: str, module: ModuleOp) -> None:
            seen.append(f"before {name}")

        def after_pass(self, name: str, module: ModuleOp) -> None:
            seen.append(f"after {name}")

    printed, timing = io.StringIO(), xr.PassTiming()
    with xr.PassContext([Seen(), timing, xr.PrintIR(["legalize-ops"], printed)], disabled=["fuse-ops"]):
        xr.run_passes(xr.parse(TEXT), "legalize-ops,fuse-ops,fuse-tir")
    assert seen == ["before legalize-ops", "after legalize-ops", "before fuse-tir", "after fuse-tir"]
    assert [name for name, _ in timing.seconds] == ["legalize-ops", "fuse-tir"]
    assert timing.as_text().endswith("total")
    assert printed.getvalue().startswith("// -----// IR after legalize-ops //----- //\nbuiltin.module {")
    xr.run_passes(xr.parse(TEXT), "legalize-ops")
    assert len(seen) == 4, "the context has ended"


def test_a_pass_that_there_is_not_cannot_be_disabled():
    with (
        pytest.raises(ValueError, match="unknown pass 'fuse-opz', did you mean 'fuse-ops'"),
        xr.PassContext(disabled=["fuse-opz"]),
    ):
        pass
    assert xr.PassContext.current().disabled == ()


def test_pipelines_are_taken_apart():
    timing = xr.PassTiming()
    with xr.PassContext([timing], target="x86-64-v3"):
        xr.run_passes(xr.parse(TEXT), "relax-to-vm")
    names = [name for name, _ in timing.seconds]
    assert "optimize-graph" not in names
    assert {"fold-constants", "legalize-ops", "plan-memory"} <= set(names)


MULTIPLY = """
relax.func @main(%x: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[4, 4], f32> {
  %0 = relax.matmul %x, %x
  %1 = relax.nn.relu %0
  relax.return %1
}
"""


def test_a_context_holds_for_compile():
    module, x = xr.parse(MULTIPLY), np.eye(4, dtype="f4")
    for disabled in ([], ["fuse-ops", "schedule-cpu"]):
        with xr.PassContext([timing := xr.PassTiming()], disabled=disabled, verify=not disabled):
            model = xr.compile(module)
        names = {name for name, _ in timing.seconds}
        assert ("fuse-ops" in names) == (not disabled)
        assert "legalize-ops" in names
        assert_array_equal(model(x), x)
    with xr.PassContext(target="x86-64-v3"):
        assert xr.compile(module).executable.metadata.target.split()[1] == "x86-64-v3"


@pytest.mark.parametrize(
    ("passes", "error", "message"),
    [
        ("legalise-ops", xr.PassError, "unknown pass 'legalise-ops'\nhint: did you mean 'legalize-ops'"),
        (
            "StaticPlanBlockMemory",
            xr.PassError,
            "unknown pass 'StaticPlanBlockMemory'\nhint: here it is plan-memory, one arena over all blocks; ",
        ),
        (
            "relax.transform.FuseTIR",
            xr.PassError,
            "unknown pass 'FuseTIR'\nhint: here it is fuse-tir",
        ),
        ("FuseOpz", xr.PassError, "unknown pass 'FuseOpz'\nhint: did you mean TVM's FuseOps? here it is fuse-ops"),
        ("Normalize", xr.PassError, "hint: nothing stands for it, nothing to do: types and names are checked when "),
        ("verify-stage{stages=vm}", xr.PassError, "hint: its options are stage: str"),
        ("fuse-ops{", ValueError, "cannot read the pipeline 'fuse-ops{': "),
        ("page.html", ValueError, "expected passes, got a path, 'page.html'"),
        ("verify-stage{stage=vm}", xr.PassError, "pass 'verify-stage' failed\n"),
    ],
)
def test_errors_name_the_pass(passes: str, error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        xr.run_passes(xr.parse(TEXT), passes)
    assert message in str(caught.value)


def test_all_passes_are_listed():
    assert {"relax-to-vm", "legalize-ops"} <= set(xr.list_passes())
