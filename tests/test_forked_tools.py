"""RUN lines whose tools run in a fork: what passes and what fails is what a shell would say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = f"""
import os
lit_config.load_config(config, {str(ROOT / "tests" / "filecheck" / "lit.cfg.py")!r})
config.test_source_root = os.path.dirname(__file__)
"""
MODULE = """
relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
// CHECK: relax.func @f
// ELSE: relax.func @g
"""
PASS = {
    "plain": ["relax-opt %s | filecheck %s"],
    "two_lines": ["relax-opt %s", "relax-opt %s | relax-opt | filecheck %s"],
    "by_the_shell": ["relax-opt %s > %t && filecheck %s < %t"],
}
FAIL = {
    "other_text": ["relax-opt %s | filecheck %s --check-prefix ELSE"],
    "the_second_line": ["relax-opt %s | filecheck %s", "relax-opt %s | filecheck %s --check-prefix ELSE"],
    "before_the_pipe": ["relax-opt %s --no-such-option | relax-opt %s | filecheck %s"],
    "no_such_pass": ["relax-opt %s -p no-such-pass"],
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lit")
    (folder / "lit.cfg.py").write_text(CONFIG)
    for name, lines in (PASS | FAIL).items():
        (folder / f"{name}.mlir").write_text("".join(f"// RUN: {line}\n" for line in lines) + MODULE)
    lit = Path(sys.executable).with_name("lit")
    return subprocess.run([lit, "-j1", "-v", folder], capture_output=True, text=True, check=False).stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PASS)
def test_passes(report: str, name: str):
    assert f"PASS: xdsl-relax :: {name}.mlir" in report


@pytest.mark.parametrize("name", FAIL)
def test_fails(report: str, name: str):
    assert f"FAIL: xdsl-relax :: {name}.mlir" in report


def test_failures_are_explained_by_the_shell(report: str):
    assert "unknown pass 'no-such-pass'" in report
    assert "unrecognized arguments: --no-such-option" in report
