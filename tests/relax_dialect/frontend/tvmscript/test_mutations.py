"""Texts with random damage: a module that verifies, or `TVMScriptError`; nothing else."""

import ast
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.sweeps import examples

EXAMPLES = Path(__file__).parent / "examples"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.txt"))]
TEXTS += [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "programs").glob("*.txt"))]


def read_or_refuse(text: str) -> None:
    try:
        module = parse(text)
    except TVMScriptError as error:
        place = error.line, error.column
    else:
        module.verify()
        place = 1, 1
    assert min(place) >= 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
def test_damaged_text(text: str, seed: int):
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text))
        end = min(len(text), start + dice.randint(0, 6))
        text = (
            text[:start] + dice.choice(["", "(", ")", "[", "0", "x", "n", ",", ".", "'", "-", " ", "\n"]) + text[end:]
        )
    read_or_refuse(text)


@examples(80)
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
def test_exchanged_parts(text: str, seed: int):
    """Python of another meaning: expressions and statements in each other's positions."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    dice = random.Random(seed)
    expressions = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    for _ in range(dice.randint(1, 2)):
        _exchange(tree, dice.choice(expressions), dice.choice(expressions))
    try:
        mutated = ast.unparse(tree)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return
    read_or_refuse(mutated)


def _exchange(tree: ast.AST, old: ast.expr, new: ast.expr) -> None:
    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else super().generic_visit(node)

    if not any(node is old for node in ast.walk(new)) and not any(node is new for node in ast.walk(old)):
        Exchange().visit(tree)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_prefix_by_lines(text: str):
    lines = text.splitlines(keepends=True)
    for end in range(0, len(lines), max(2, len(lines) // 20)):
        read_or_refuse("".join(lines[:end]))
