"""Plain xDSL tools know our dialects and passes by the entry point alone."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from xdsl.universe import Universe

from lowering.registry import DIALECTS, PASSES
from xdsl_relax.universe import RELAX_UNIVERSE

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"


def _xdsl_opt(*arguments: str, text: str = "") -> str:
    result = subprocess.run([XDSL_OPT, *arguments], input=text, capture_output=True, text=True, check=True)
    return result.stdout


def test_the_entry_point_is_ours():
    (ours,) = (point for point in entry_points(group="xdsl.universe") if point.name == "relax")
    assert ours.load() is RELAX_UNIVERSE


def test_no_name_is_taken_twice():
    multiverse = Universe.get_multiverse()
    assert multiverse.all_dialects.keys() >= DIALECTS.keys()
    assert multiverse.all_passes.keys() >= PASSES.keys()


def test_xdsl_opt_lists_our_passes():
    shown = _xdsl_opt("--help").replace("\n", "").replace(" ", "")
    for name in PASSES:
        assert name in shown


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_loads(dialect: str):
    assert RELAX_UNIVERSE.all_dialects[dialect]().name == dialect


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_loads(name: str):
    assert RELAX_UNIVERSE.all_passes[name]().name == name


def test_xdsl_opt_runs_our_passes_on_our_ops():
    text = "relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { relax.return %x }"
    out = _xdsl_opt("-p", "verify-dominance,verify-stage{stage=relax}", text=text)
    assert "relax.func @f[%n]" in out
