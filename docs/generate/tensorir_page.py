"""The page of TVM's TensorIR, tensor expressions and schedules: the counterpart of each name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path

from tvm_tensorir import ATTRIBUTES, BUFFERS, EXPRESSIONS, LOOPS, SCHEDULE, STATEMENTS, TE, TE_NAMES, TYPES

from tir_dialect import te
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.schedule import ELSEWHERE
from tir_dialect.schedule.state import PRIMITIVES

INTRINSICS = Path(__file__).parents[2] / "tests/relax_dialect/frontend/tvmscript/intrinsics_of_tvm.txt"

TITLE = """# TensorIR, tensor expressions and schedules of TVM

The counterpart of each name of TVM 0.27; a dash marks names without one, with the reason. The texts are statements of

```python
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32")): ...
```

`tests/relax_dialect/frontend/tvmscript/test_nodes_of_tvm.py` parses each of them, looks for the operations named beside
it, and runs it in all three execution modes. `make docs` generates this page, and fails for a missing name."""

INTRINSICS_TITLE = """## Intrinsics

Intrinsics in TVMScript, with the call that is tested (`test_intrinsics_of_tvm.py`). Those of GPUs and other
accelerators are rejected by name."""

TE_TITLE = """## Tensor expressions

Functions of TVM's `te`, and their names here."""

SCHEDULE_TITLE = """## Schedules

Methods of `Schedule`. Those marked x are recorded in traces, so that `relax-opt -p 'apply-schedule{file=...}'` can
replay them. [kernels.md](../tutorials/kernels.md#primitives) shows the rewrite of each."""


def tensorir_page() -> str:
    """The page; KeyError for a name of TVM without an entry."""
    parts = [TITLE]
    nodes_of = {"Statements": STATEMENTS, "Loops and iterators": LOOPS, "Expressions": EXPRESSIONS, "Buffers": BUFFERS}
    for title, nodes in nodes_of.items():
        rows = ((name, here, _code(text)) for name, (here, text) in nodes.items())
        parts += [f"## {title}", _table(("TVM", "here", "text"), rows)]
    parts += ["## Functions and others", _table(("TVM", "here"), TYPES.items())]
    parts += [INTRINSICS_TITLE, _intrinsics()]
    parts += [TE_TITLE, _table(("TVM", "here"), _functions(TE_NAMES.split(), TE))]
    parts += [SCHEDULE_TITLE, _table(("TVM", "traced", "here"), _primitives())]
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    return "<br>".join(f"`{line.replace('|', chr(92) + '|')}`" for line in text.split("\n"))


def _intrinsics() -> str:
    rows = [line.split(" ", 1) for line in INTRINSICS.read_text().splitlines()]
    read = _table(("intrinsic", "read as"), ((name, _code(call)) for name, call in rows if call != "gpu"))
    return f"{read}\n\nRefused: {', '.join(f'`{name}`' for name, call in rows if call == 'gpu')}."


def _functions(names: Iterable[str], others: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name in names:
        yield name, others[name] if name in others else f"`{getattr(te, name).__name__}`"


def _primitives() -> Iterable[tuple[str, str, str]]:
    for name in SCHEDULE.split():
        if hasattr(Schedule, name):
            text = inspect.getdoc(getattr(Schedule, name)) or ""
            yield (
                name,
                "x" if getattr(getattr(Schedule, name), "__name__", "") in PRIMITIVES else "",
                " ".join(text.split("\n\n")[0].split()),
            )
        else:
            yield name, "", f"- {ELSEWHERE[name]}"
    for name, here in ATTRIBUTES.items():
        yield name, "", here
