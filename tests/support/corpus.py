"""The modules of the test tree: whatever is valid among the inputs of FileCheck tests and the examples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from lowering.parsing import parse_module
from lowering.verify import verify_module

ROOT = Path(__file__).parents[2]


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Each text of a module in the tree, with a name: the path of its file, and its position if there are several."""
    files = sorted((*(ROOT / "tests" / "filecheck").rglob("*.mlir"), *(ROOT / "examples").glob("*.mlir")))
    return tuple(_texts(files))


def _texts(files: list[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        parts = file.read_text().split("// -----\n")
        for place, text in enumerate(parts):
            name = file.relative_to(ROOT).as_posix()
            yield (name if len(parts) == 1 else f"{name}#{place}"), text


def valid_module(name: str, text: str) -> ModuleOp | None:
    """The module of a text; `None` if the text is wrong, or the module is, as that of a test of messages."""
    try:
        module = parse_module(text, name)
        verify_module(module)
    except (ParseError, DiagnosticException, ValueError):
        return None
    return module
