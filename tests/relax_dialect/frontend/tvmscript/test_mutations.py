"""Texts with random damage: a module that verifies, or `TVMScriptError`; nothing else."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.scripts import read_or_refuse, scripts, with_exchanged_parts, with_other_letters
from tests.support.sweeps import examples

TEXTS = scripts()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
def test_damaged_text(text: str, seed: int):
    read_or_refuse(with_other_letters(random.Random(seed), text))


@examples(80)
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
def test_exchanged_parts(text: str, seed: int):
    changed = with_exchanged_parts(random.Random(seed), text)
    if changed is not None:
        read_or_refuse(changed)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_prefix_by_lines(text: str):
    lines = text.splitlines(keepends=True)
    for end in range(0, len(lines), max(2, len(lines) // 20)):
        read_or_refuse("".join(lines[:end]))
