"""Names and prose are in the words of the field: those of MLIR, LLVM, BLAS, NumPy and TVM."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lowering.registry import DIALECTS, PASSES, load_dialect
from tests.support.rules import each

ROOT = Path(__file__).parents[1]
PACKAGES = ("relax_dialect", "tir_dialect", "vm_dialect", "lowering", "xdsl_relax")
NAMES = {
    "place": "index, offset, slot, position or insertion point",
    "places": "indices, offsets, slots or positions",
    "behind": "after",
    "afar": "memory, or the level of the cache",
    "exchanged": "swapped",
    "pays": "is profitable",
    "picture": "image",
    "pictures": "images",
    "borders": "padding, halo",
}
"""Words that no name has, and what is said instead."""

PROSE = {
    r"in front of": "before",
    r"from afar": "from memory, or from the level of the cache",
    r"(?<!a )few (rows|columns)(?! (may|of|at a|that|are|is|remain|in a))": "small M, small N, skinny",
    r"(known|said) of": "known about, said about",
    r"asked of": "required of",
    r"(?<!to be )the place of": "the index, offset, slot or position of",
    r"(?-i:places)": "indices, offsets, slots or positions",
    r"head, place": "head, position",
    r"(?<!linearly )exchanged": "swapped",
    r"it pays": "it is profitable",
    r"words? of (several|four|two) (numbers|parts)": "dot-product groups",
}
"""Phrases that are wrong in any docstring or comment, and what is said instead."""

ALLOWED = re.compile("in_?place|returned_behind", re.IGNORECASE)
"""Names, and the ends of names, that may have such a word: computed in the memory of an operand; TVM's own."""

FILES = [path.relative_to(ROOT) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def _words(name: str) -> list[str]:
    """The words of a name in snake, kebab or camel case, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def _denied(name: str) -> str | None:
    """What is wrong about a name."""
    words = _words(ALLOWED.sub("", name))
    return next((f"'{name}' has '{word}': say {NAMES[word]}" for word in words if word in NAMES), None)


@cache
def _text(path: Path) -> str:
    return (ROOT / path).read_text()


@cache
def _tokens(path: Path) -> tuple[tokenize.TokenInfo, ...]:
    return tuple(tokenize.generate_tokens(io.StringIO(_text(path)).readline))


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a file, with their lines; quoted code is left out."""
    expressions = (node for node in ast.walk(ast.parse(_text(path))) if isinstance(node, ast.Expr))
    docs = {node.value.lineno for node in expressions if isinstance(node.value, ast.Constant)}
    for token in _tokens(path):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] in docs):
            yield token.start[0], re.sub(r"`[^`]*`", "``", " ".join(token.string.split()))


@each(FILES)
def test_names_of_files(path: Path):
    assert (reason := _denied(path.stem)) is None, reason


@each(FILES)
def test_identifiers(path: Path):
    if not any(map(_denied, set(re.findall(r"[A-Za-z_]\w*", _text(path))))):
        return  # no word at all, so no identifier: tokens take much longer
    for token in _tokens(path):
        if token.type == tokenize.NAME and (reason := _denied(token.string)) is not None:
            raise AssertionError(f"line {token.start[0]}: {reason}")


@each(FILES)
def test_prose(path: Path):
    if not any(re.search(phrase, " ".join(_text(path).split()), re.IGNORECASE) for phrase in PROSE):
        return
    for line, text in _prose(path):
        for phrase, better in PROSE.items():
            found = re.search(rf"\b{phrase}\b", text, re.IGNORECASE)
            assert found is None, f"line {line}: '{found and found[0]}': say {better}"


@each([*PASSES, *(op.name for name in DIALECTS for op in load_dialect(name).operations)])
def test_passes_and_ops(name: str):
    if "in-place" not in name:
        assert (reason := _denied(name)) is None, reason


def test_words_of_a_name():
    assert _words("PlacedCheck") == ["placed", "check"]
    assert _words("lines-as-pictures") == ["lines", "as", "pictures"]
    assert _denied("else_place") == "'else_place' has 'place': say index, offset, slot, position or insertion point"
    assert _denied("in_place") is None
