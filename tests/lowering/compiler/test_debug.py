import re
from pathlib import Path

import numpy as np
import pytest

from lowering import build
from lowering.debug import Debug, debug_level
from lowering.llvm.code_cache import CodeCache
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder
from vm_dialect import VirtualMachine

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""
SHOWN = ("IR after legalize-ops", "schedule of @exp", "optimised LLVM IR", "assembly")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("level", ["", "0", "1", "2", "3", "4"])
@pytest.mark.parametrize("is_cached", [False, True])
def test_each_level_shows_what_those_below_show(
    level: str,
    is_cached: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Also of kernels that an earlier build has left in the cache."""
    cache = CodeCache(tmp_path)
    if is_cached:
        build(parse_module(TEXT), cache=cache)
    monkeypatch.setenv("RELAX_DEBUG", level)
    executable = build(parse_module(TEXT), cache=cache)
    assert np.from_dlpack(VirtualMachine(executable)["main"](np.zeros(1, np.float32))).tolist() == [1]
    out, err = capsys.readouterr()
    assert out == ""
    assert tuple(title for title in SHOWN if f"// -----// {title}" in err) == SHOWN[: int(level or 0)]
    assert ("@relax_" in err.partition("optimised LLVM IR")[2]) == (level in ("3", "4"))


def test_the_schedule_of_a_product_says_which_generator_made_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 64), "w": (64, 64)}) as (x, w):
        bb.emit_func_output(x @ w)
    monkeypatch.setenv("RELAX_DEBUG", "2")
    build(bb.get())
    (title,) = re.findall(r"// -----// schedule of @matmul(.*)//----- //", capsys.readouterr().err)
    assert title.startswith(": ")


@pytest.mark.parametrize("text", ["5", "-1", "one", "1.0"])
def test_other_levels_are_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAX_DEBUG", text)
    with pytest.raises(ValueError, match=f"RELAX_DEBUG expected a level from 0 to 4, got {text}"):
        debug_level()


def test_levels_are_ordered():
    assert sorted(Debug) == [Debug.NOTHING, Debug.STAGES, Debug.SCHEDULES, Debug.LLVM, Debug.MACHINE]
