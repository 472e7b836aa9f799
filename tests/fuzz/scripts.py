"""Texts of TVMScript with random damage: a valid module, or a `TVMScriptError` that points into the text, soon."""

from __future__ import annotations

import ast
import random
from functools import cache
from pathlib import Path

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.fuzz.texts import mutated

NAME = "scripts"

FOLDER = Path(__file__).parents[1] / "relax_dialect" / "frontend" / "tvmscript"

PIECES = ["", "(", ")", "[", "0", "x", "n", ",", ".", "'", "-", " ", "\n"]


@cache
def scripts() -> list[str]:
    """The texts that are damaged."""
    files = [file for folder in ("examples", "programs") for file in sorted((FOLDER / folder).glob("*.txt"))]
    return [file.read_text(encoding="utf-8") for file in files]


def read_or_refuse(text: str) -> None:
    """Reads a text to a valid module, or to an error with a place."""
    try:
        module = parse(text)
    except TVMScriptError as error:
        place = error.line, error.column
    else:
        module.verify()
        place = 1, 1
    assert min(place) >= 1


def with_other_letters(dice: random.Random, text: str) -> str:
    """The text with one to three short pieces replaced."""
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text))
        end = min(len(text), start + dice.randint(0, 6))
        text = text[:start] + dice.choice(PIECES) + text[end:]
    return text


def with_exchanged_parts(dice: random.Random, text: str) -> str | None:
    """Python of another meaning: one or two expressions in the positions of others; `None` if it has no text."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    expressions = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    for _ in range(dice.randint(1, 2)):
        _exchange(tree, dice.choice(expressions), dice.choice(expressions))
    try:
        return ast.unparse(tree)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return None


def _exchange(tree: ast.AST, old: ast.expr, new: ast.expr) -> None:
    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else super().generic_visit(node)

    if not any(node is old for node in ast.walk(new)) and not any(node is new for node in ast.walk(old)):
        Exchange().visit(tree)


def run(seed: int) -> None:
    """A few damaged texts: one is read in milliseconds."""
    dice = random.Random(seed)
    for _ in range(10):
        text = dice.choice(scripts())
        changed = [with_other_letters(dice, text), mutated(dice, text), with_exchanged_parts(dice, text)]
        for each in changed:
            if each is not None:
                read_or_refuse(each)
