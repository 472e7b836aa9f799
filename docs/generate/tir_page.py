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

The loop level: functions over buffers that consist of loops, blocks (units of computation with iterators), and scalar
or vector code in `arith`, `math` and `vector`. [kernels.md](../tutorials/kernels.md) shows how such functions are
written, scheduled and run; section 4 of [design.md](../design.md) is an overview.

The verifier checks the constraints `C1`, `C2`, ... of each operation. The interpreter, `tir_dialect.interpreter`,
defines the semantics that every schedule and lowering preserves.
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
