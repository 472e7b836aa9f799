"""Conditions of primitives are numbered in their docstrings, and what refuses is met by a test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.rules import each
from tir_dialect.schedule.state import PRIMITIVES

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tir_dialect" / "schedule"
TESTS = (*Path(__file__).parent.glob("*.py"), *(ROOT / "tests/filecheck/lowering/kernels").glob("*.mlir"))

ALWAYS = {
    *("enter_postproc", "get_blocks", "get_loops", "get_child_blocks", "get_output_blocks", "get_producers"),
    *("get_consumers", "add_unit_loop", "can_decompose_padding"),
}
"""The primitives that refuse nothing but what all refuse."""


@each(sorted(PRIMITIVES))
def test_conditions_are_numbered(name: str):
    text = inspect.getdoc(PRIMITIVES[name]) or ""
    conditions = re.findall(r"^(\d+)\. .", text.partition("\nRefuses:\n")[2], flags=re.MULTILINE)
    assert [int(number) for number in conditions] == [*range(1, len(conditions) + 1)]
    assert bool(conditions) is (name not in ALWAYS)
    assert text.count("Refuses") == bool(conditions)


def _messages(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Where a file refuses, and the pieces of the message that are always the same."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RAISING:
            pieces = [piece.value for piece in ast.walk(node.args[0]) if isinstance(piece, ast.Constant)]
            texts = [piece for piece in pieces if isinstance(piece, str) and len(piece) >= LONG]
            if texts:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", texts


RAISING = ("error", "_refuse")
LONG = 12
REFUSALS = [found for path in sorted(PACKAGE.rglob("*.py")) for found in _messages(path)]
TEXT = "".join(path.read_text() for path in TESTS).replace('\\"', '"')


@each(REFUSALS, lambda pair: pair[0])
def test_messages_are_expected_by_a_test(place: str, message: list[str]):
    """At least one half of a piece of each."""
    halves = [half for piece in message for half in (piece[: len(piece) // 2], piece[len(piece) // 2 :])]
    assert any(half in TEXT for half in halves), f"no test expects {' ... '.join(message)!r} of {place}"


def test_messages_are_found():
    assert len(REFUSALS) > 200
