"""The page that lists the backend tests which are not supported."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import onnx

from tests.onnx_backend.cases import Case
from tests.onnx_backend.outcome import ROUNDING, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "onnx-unsupported.md"

_HEAD = """# Backend tests of ONNX that are not supported

Written by `python -m tests.onnx_backend --list` with onnx {version}: {imported} of {total} tests are imported; `make
test-onnx` runs them and compares their values. The others are refused while importing, for these reasons.
See [onnx.md](../howto/onnx.md) for what is supported.

| tests | reason | names |
|---|---|---|
"""

_ROUNDING = """
`{names}` are imported, but expect the rounding errors of one
algorithm, 2e-7 where the exact value and ours is 0; their tolerance is 1e-7.
"""


def report(found: Sequence[tuple[Case, Outcome]]) -> str:
    """The text of the page."""
    groups: dict[str, list[str]] = defaultdict(list)
    for case, outcome in found:
        if outcome.status == "unsupported":
            groups[_general(outcome.reason)].append(case.name.removeprefix("test_"))
    imported = sum(outcome.status != "unsupported" for _, outcome in found)
    lines = [
        f"| {len(names)} | {reason} | {_names(names)} |"
        for reason, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return (
        _HEAD.format(version=onnx.__version__, imported=imported, total=len(found))
        + "\n".join(lines)
        + "\n"
        + _ROUNDING.format(names="`, `".join(sorted(ROUNDING)))
    )


def _general(reason: str) -> str:
    """A reason without what differs from test to test."""
    plain = re.sub(r"^\w+: (?=elements of type)", "", reason)
    return plain.replace("\n", " ").replace("|", "\\|")[:160]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown}, ... ({len(names)})"
