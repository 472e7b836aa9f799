"""How the tools begin and end."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from xdsl_relax.cli.diagnostics import run_tool

ROOT = Path(__file__).parents[2]
MODULE = "relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {\n  relax.return %x\n}\n"

END = """
import atexit, gc, sys
frozen, before = gc.get_freeze_count() + 1000, gc.get_threshold()  # Python 3.12 freezes some objects itself
atexit.register(lambda: print(gc.get_freeze_count() > frozen, gc.get_threshold() == before))
from xdsl_relax.cli.{tool} import main
given, sys.argv = sys.argv[2:], ["tool", *sys.argv[2:]]
status = main() if {own} else main(given)
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tool", ["relax_opt", "relax_run", "relax_translate"])
@pytest.mark.parametrize("own", [True, False])
def test_only_a_process_of_its_own_ends_without_garbage_collection(tool: str, own: bool, tmp_path: Path):
    (tmp_path / "m.mlir").write_text(MODULE)
    rest = {
        "relax_opt": [],
        "relax_run": ["--entry", "f", "--random", "f32[3]", "--mode", "interpret"],
        "relax_translate": ["--emit", "llvmir"],
    }[tool]
    command = [sys.executable, "-c", END.format(tool=tool, own=own), "-", str(tmp_path / "m.mlir"), *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == f"{own} True"
    assert len(done.stdout.splitlines()) > 3


def test_an_interruption_is_a_line(capsys: pytest.CaptureFixture[str]):
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert run_tool("relax-opt", interrupted, own_process=False) == 130
    assert capsys.readouterr().err == "relax-opt: interrupted\n"


def test_collections_are_as_before_after_a_failure():
    from xdsl_relax.cli.relax_opt import main

    before = gc.get_threshold()
    assert main(["no such file.mlir"]) == 1
    assert gc.get_threshold() == before


def test_every_wrong_number_of_names_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Each at its line with a caret."""
    from xdsl_relax.cli.relax_opt import main

    path = tmp_path / "m.mlir"
    lines = ["relax.func @f(%x: !relax.object) -> !relax.object {", "%a, %b = relax.null", "%c:2 = relax.null"]
    path.write_text("\n".join([*lines, "relax.return %a", "}"]))
    assert main([str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:2:1: error: 'relax.null' op has 1 result, expected as many names, got 2: %a, %b\n%a, %b" in shown
    assert f"{path}:3:1: error: 'relax.null' op has 1 result, expected as many names, got 2: %c:2\n%c:2" in shown
