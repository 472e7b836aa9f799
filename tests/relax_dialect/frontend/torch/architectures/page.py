"""The page of the architectures that are right, and of those that are not: `docs/reference/torch-architectures.md`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.relax_dialect.frontend.torch.architectures.known import NOT_RIGHT

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "torch-architectures.md"
_ROW = re.compile(r"^\| ([\w-]+) \| (`.*`) \|$", re.MULTILINE)


def right(page: str) -> set[str]:
    """The names of the architectures that a page says are right."""
    return {f"{package}/{name}" for package, row in _ROW.findall(page) for name in re.findall(r"`([^`]+)`", row)}


def recorded(page: str, outcomes: Mapping[str, str]) -> str:
    """The page with what became of some architectures, and with the reasons of those that are not right."""
    names = right(page) - set(outcomes) | {name for name, outcome in outcomes.items() if outcome == "right"}
    head, rest = page.split("| | |\n|---|---|\n")
    tail = rest[rest.index("\n## Not right") :]
    reasons = "".join(f"* `{name}`: {reason}\n" for name, reason in sorted(NOT_RIGHT.items()))
    note = tail[tail.index("\n\n") :].split("\n* ")[0].rstrip("\n")
    return f"{head}| | |\n|---|---|\n{''.join(_rows(names))}\n## Not right{note}\n\n{reasons}"


def _rows(names: Iterable[str]) -> Iterable[str]:
    packages = dict[str, list[str]]()
    for name in sorted(names):
        package, own = name.split("/")
        packages.setdefault(package, []).append(own)
    return (f"| {package} | {' '.join(f'`{own}`' for own in each)} |\n" for package, each in sorted(packages.items()))
