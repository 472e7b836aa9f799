"""Mutation testing itself: a fault that a test sees is caught, and one that it does not see is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.fuzz.mutate_passes import ROOT, is_caught, mutants, own_tests, related_tests

SOURCE = """
def least(a: int, b: int) -> int:
    if a < b and b > 0:
        return a
    return b + 1
"""


def test_each_kind_of_fault_is_planted():
    said = [text for text, _ in mutants(SOURCE)]
    assert "line 3: a < b -> a <= b" in said
    assert "line 3: a < b and b > 0 -> a < b or b > 0" in said
    assert "line 3: a < b and b > 0 -> a < b and a < b" in said
    assert any(text.endswith("-> if True") for text in said)
    assert "line 5: 1 -> 2" in said


def test_one_fault_is_planted_at_a_time():
    original = ast.unparse(ast.parse(SOURCE))
    for _, tree in mutants(SOURCE):
        pairs = zip(original.splitlines(), ast.unparse(tree).splitlines(), strict=True)
        assert sum(a != b for a, b in pairs) == 1


@pytest.mark.slow
def test_the_tests_decide(tmp_path: Path):
    file = tmp_path / "subject_of_mutation.py"
    file.write_text("def is_small(n: int) -> bool:\n    return n < 10\n")
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(tmp_path)!r})",
        "from subject_of_mutation import is_small",
        "def test():",
    ]
    strict, lax = tmp_path / "test_strict.py", tmp_path / "test_lax.py"
    strict.write_text("\n".join([*lines, "    assert not is_small(10)"]))
    lax.write_text("\n".join([*lines, "    assert is_small(3)"]))
    (turned,) = [number for number, (said, _) in enumerate(mutants(file.read_text())) if "<=" in said]
    assert is_caught(file, turned, [str(strict)], 120)
    assert not is_caught(file, turned, [str(lax)], 120)


def test_a_file_has_the_tests_of_its_folder():
    assert own_tests(ROOT / "lowering" / "compiler" / "validation.py") == [
        str(ROOT / "tests" / "lowering" / "compiler" / "test_validation.py")
    ]


def test_other_tests_are_about_a_file_that_has_their_passes_and_ops():
    related = related_tests(ROOT / "lowering" / "relax" / "layout" / "pack_weights.py")
    assert str(ROOT / "tests" / "filecheck" / "lowering" / "relax" / "layout" / "pack_bytes.mlir") in related
    assert not {*related} & {*own_tests(ROOT / "lowering" / "relax" / "layout" / "pack_weights.py")}
