"""The code that kernels call is there before they are."""

from pathlib import Path

import pytest

from lowering import build
from lowering.parsing import parse_module
from lowering.runtime import support

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.negative %x
  relax.return %0
}
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The code that was made since, by its text, as in a new process."""
    made: dict[str, bytes] = {}
    monkeypatch.setattr(support, "_MADE", made)
    return made


def test_a_build_compiles_what_its_kernels_may_call(made: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    """Loading the program, for which everybody waits, has nothing to compile."""
    build(parse_module(PROGRAM), cache=False)
    assert set(made) == {each.text() for each in support.SUPPORT}

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled late")

    monkeypatch.setattr(support, "compile_cached", refuse)
    for each in support.SUPPORT:
        assert support.support_object(each.text()) == made[each.text()]


def test_a_build_without_a_cache_leaves_none(made: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path))
    build(parse_module(PROGRAM), cache=False)
    assert made
    assert list(tmp_path.iterdir()) == []


def test_code_for_another_machine_needs_nothing_of_this_one(made: dict[str, bytes]):
    build(parse_module(PROGRAM), cache=False, target="x86-64-v2")
    assert made == {}
