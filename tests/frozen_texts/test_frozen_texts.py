"""Texts of an earlier version are read, and printed as they were written.

The files have the printed modules of the dialects' lit tests and of the examples. They change only if the syntax does.
"""

import re
from io import StringIO
from pathlib import Path

from xdsl.printer import Printer

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.registry import DIALECTS, load_dialect
from tests.support.rules import each

TEXTS = sorted(Path(__file__).parent.glob("*.mlir"))
SEPARATOR = "\n// -----\n"
OURS = tuple(DIALECTS)[:3]
CONTEXT = make_context()


def modules(path: Path) -> list[str]:
    """The modules of a file."""
    return path.read_text().removesuffix("\n").split(SEPARATOR)


@each(TEXTS, lambda path: path.stem)
def test_text_is_stable(path: Path):
    for text in modules(path):
        module = parse_module(text, ctx=CONTEXT)
        module.verify()
        printed = StringIO()
        Printer(printed).print_op(module)
        assert printed.getvalue() == text


@each(OURS)
def test_every_op_is_there(dialect: str):
    texts = "\n".join(path.read_text() for path in TEXTS)
    written = set(re.findall(rf"{dialect}[.][a-z0-9_.]+", texts))
    assert [op.name for op in load_dialect(dialect).operations if op.name not in written] == []
