"""The fuzzers of this folder: modules with a `NAME` and a `run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Fuzzer:
    """What makes an input of a seed and raises if it finds a fault."""

    name: str
    run: Callable[[int], None]


def fuzzers() -> list[Fuzzer]:
    """In the order of their files."""
    found: list[Fuzzer] = []
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem.startswith(("_", "test_")):
            continue
        module = import_module(f"tests.fuzz.{file.stem}")
        name, run = getattr(module, "NAME", None), getattr(module, "run", None)
        if isinstance(name, str) and callable(run):
            found.append(Fuzzer(name, run))
    return found
