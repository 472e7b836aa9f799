"""The page of the tir dialect, made from the docstrings of its types, attributes and operations."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable

from xdsl.ir import Attribute, Operation

from tir_dialect.dialect import TIR

INTRODUCTION = """\
# The tir dialect

Functions over buffers: loops, blocks that say what is computed, and scalar or vector code inside, which is `arith`,
`math` and `vector`. `docs/kernels.md` shows how such functions are made, scheduled and run; section 4 of
`docs/design.md` says how the parts belong together.

The constraints `C1`, `C2`, ... are checked by the verifier; the functions of a module are interpreted by
`tir_dialect.interpreter`, which is the reference for what each operation means.
"""


def tir_page() -> str:
    """Types and attributes, then the operations by the file that they are in."""
    parts = [INTRODUCTION, "## Types and attributes\n", *_entries(TIR.attributes)]
    families: dict[str, list[type[Operation]]] = {}
    for op in TIR.operations:
        families.setdefault(op.__module__, []).append(op)
    for module, ops in families.items():
        title = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")[0]
        parts += [f"## {' '.join(title.split()).removesuffix('.')}\n", *_entries(ops)]
    return "\n".join(parts)


def _entries(classes: Iterable[type[Attribute | Operation]]) -> list[str]:
    return [f"### `{cls.name}`\n\n{_text(cls)}\n" for cls in classes]


def _text(cls: type[Attribute | Operation]) -> str:
    """The docstring, with the constraints as a list."""
    return re.sub(r"^(C\d+): ", r"- \1: ", inspect.getdoc(cls) or "", flags=re.MULTILINE)
