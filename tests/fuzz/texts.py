"""Texts of the test tree with some tokens changed: a tool says what is wrong, or rewrites the module to a valid one."""

from __future__ import annotations

import random
import re
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.registry import PASSES, load_pass
from lowering.verify import verify_module
from tests.support.corpus import texts

NAME = "texts"

_TOKEN = re.compile(r'"[^"\n]*"|[%@!#^]?[\w.$]+|->|\s+|.', re.DOTALL)

NUMBERS = ("0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "1.0e30", "99999999999999999999")
DTYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64", "ui8", "index", "f8E4M3FN")

REFUSALS = (DiagnosticException, ParseError, ValueError)
"""What says that a text or module is wrong."""

MOST_CHARACTERS = 6000

NEEDS_OPTIONS = {"apply-schedule", "cut-constants", "fuse-ops-by-pattern", "verify-stage"}
MAKES_CODE = {"relax-to-llvm", "relax-to-llvm-plain", "tir-to-llvm"}
"""Pipelines that take long on large texts; their passes run alone."""


@cache
def _corpus() -> tuple[str, ...]:
    return tuple(text for _, text in texts() if len(text) < MOST_CHARACTERS)


def mutated(rng: random.Random, text: str) -> str:
    """The text with one to four tokens left out, doubled, swapped or replaced by another of the kind."""
    tokens = _TOKEN.findall(re.sub(r"//.*", "", text))
    words = [index for index, token in enumerate(tokens) if token.strip()]
    for _ in range(rng.randint(1, 4)):
        here, there = rng.choice(words), rng.choice(words)
        match rng.randrange(6):
            case 0:
                tokens[here] = ""
            case 1:
                tokens[here] += f" {tokens[here]}"
            case 2:
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case 3:
                tokens[here] = tokens[there]
            case _:
                tokens[here] = _other(rng, tokens[here], tokens)
    return "".join(tokens)


def _other(rng: random.Random, token: str, tokens: list[str]) -> str:
    if re.fullmatch(r"-?\d[\w.]*", token):
        return rng.choice(NUMBERS)
    if token in DTYPES:
        return rng.choice(DTYPES)
    same = [each for each in tokens if each[:1] == token[:1] and each.strip()]
    return rng.choice(same or [token])


def run(seed: int) -> None:
    """Reads a mutated text, and if it is valid runs some passes, after each of which it has to be valid still."""
    rng = random.Random(seed)
    text = mutated(rng, rng.choice(_corpus()))
    try:
        module = parse_module(text)
        verify_module(module)
    except REFUSALS:
        return
    names = [name for name in PASSES if name not in NEEDS_OPTIONS | MAKES_CODE]
    _rewrite(module, rng.choices(names, k=3))


def _rewrite(module: ModuleOp, names: list[str]) -> None:
    for name in names:
        try:
            load_pass(name)().apply(make_context(), module)
        except DiagnosticException:
            return
        except Exception as error:
            error.add_note(f"in {name}")
            raise
        try:
            verify_module(module)
        except DiagnosticException as error:
            raise AssertionError(f"{name} made an invalid module: {error}") from error
        text = str(module)
        assert str(parse_module(text)) == text, f"the text after {name} is read as another module"
