import numpy as np
import pytest

from lowering import build
from lowering.compiler.debug import Debug, debug_level
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""
SHOWN = ("IR after legalize-ops", "optimised LLVM IR", "assembly")


@pytest.mark.parametrize(
    ("level", "expected"), [("", ()), ("0", ()), ("1", SHOWN[:1]), ("2", SHOWN[:1]), ("3", SHOWN[:2]), ("4", SHOWN)]
)
def test_each_level_shows_what_those_below_show(
    level: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RELAX_DEBUG", level)
    executable = build(parse_module(TEXT), cache=False)
    assert np.from_dlpack(VirtualMachine(executable)["main"](np.zeros(1, np.float32))).tolist() == [1]
    out, err = capsys.readouterr()
    assert out == ""
    assert tuple(title for title in SHOWN if f"// -----// {title} //" in err) == expected


@pytest.mark.parametrize("text", ["5", "-1", "one", "1.0"])
def test_other_levels_are_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAX_DEBUG", text)
    with pytest.raises(ValueError, match=f"RELAX_DEBUG expected a level from 0 to 4, got {text}"):
        debug_level()


def test_levels_are_ordered():
    assert sorted(Debug) == [Debug.NOTHING, Debug.STAGES, Debug.SCHEDULES, Debug.LLVM, Debug.MACHINE]
