"""`docs/reference/relax.md`: what is said to be impossible is refused, and what is said to be tested is."""

import re
from pathlib import Path

import pytest
from xdsl.utils.exceptions import DiagnosticException, ParseError

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "relax.md").read_text()
CRITERIA = [f"W{number}" for number in range(1, 23)] + [f"N{number}" for number in range(1, 5)]

ROWS = re.findall(r"^\| (\w+) \| (.*?) \| (.*?) \| (.*?) ?\|$", PAGE, flags=re.MULTILINE)
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
REFUSED = [
    (name, text, message)
    for name, section in SECTIONS.items()
    for text, message in re.findall(r"```mlir\n(.*?)```\n> ([^\n]*)\n", section + "\n", flags=re.DOTALL)
]
NAMED = sorted(set(re.findall(r"`(tests/[^`]*)`", PAGE)))


def test_every_criterion_has_a_row():
    assert [row[0] for row in ROWS if row[0] in CRITERIA] == CRITERIA


@pytest.mark.parametrize(("name", "holds", "tests"), [(row[0], row[2], row[3]) for row in ROWS if row[0] in CRITERIA])
def test_row_says_how(name: str, holds: str, tests: str):
    shown = {section for section, _, _ in REFUSED}
    assert holds.startswith(("by construction", "verified"))
    assert name in shown if holds.startswith("by construction") else tests


@pytest.mark.parametrize(("name", "text", "message"), REFUSED, ids=[f"{case[0]}-{i}" for i, case in enumerate(REFUSED)])
def test_text_is_refused(name: str, text: str, message: str):
    with pytest.raises((ParseError, DiagnosticException, InvalidModule)) as refusal:
        verify_module(parse_module(text))
    assert message in str(refusal.value), name


@pytest.mark.parametrize("test", NAMED)
def test_named_test_exists(test: str):
    """A file, `file::function`, or `file @symbol`."""
    path, function = [*test.split("::"), ""][:2]
    path, symbol = [*path.split(" "), ""][:2]
    text = (ROOT / path).read_text()
    assert not function or f"def {function}(" in text
    assert re.search(rf"{symbol}\b", text)
