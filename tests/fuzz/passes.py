"""Passes in a random order on modules of the test tree: the results are valid, and no value changes."""

from __future__ import annotations

import random
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.compiler.build import build_uncached
from lowering.compiler.validation import Validation, ValueChanged
from lowering.context import make_context
from lowering.registry import PASSES, load_pass
from lowering.verify import verify_module
from tests.fuzz.texts import MAKES_CODE, NEEDS_OPTIONS
from tests.support.corpus import texts, valid_module

NAME = "passes"

CHANGES_VALUES = {"to-mixed-precision", "poison-memory"}
"""Passes that are asked for other values."""

LENGTH = 6


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return texts()


def _module(rng: random.Random) -> ModuleOp:
    while True:
        module = valid_module(*rng.choice(_texts()))
        if module is not None:
            return module


def run(seed: int) -> None:
    """A module and a sequence of passes."""
    rng = random.Random(seed)
    module, validation, done = _module(rng), Validation(build_uncached, seed=seed), list[str]()
    validation.begin(module)
    names = [name for name in PASSES if name not in NEEDS_OPTIONS | MAKES_CODE | CHANGES_VALUES]
    for name in rng.choices(names, k=LENGTH):
        done.append(name)
        try:
            load_pass(name)().apply(make_context(), module)
        except DiagnosticException:
            return
        try:
            verify_module(module)
            validation.after(module, name)
        except ValueChanged:
            raise
        except DiagnosticException as error:
            raise AssertionError(f"{','.join(done)} made an invalid module: {error}") from error
