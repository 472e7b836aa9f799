"""Changed files of language models are read or refused (`tests/fuzz/model_files.py`)."""

import random
from collections import Counter

import pytest

from tests.fuzz import model_files


def _no_failures(seeds: list[int]) -> None:
    found = list(model_files.failures(seeds))
    assert not found, f"{len(found)} failures, among them\n" + "\n".join(found[:20])


def test_a_few_files():
    """All kinds of changes; of one model the module."""
    _no_failures([seed for seed in range(160) if seed % 10 or not seed])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_files(part: int):
    _no_failures(list(range(1000 + 1000 * part, 2000 + 1000 * part)))


def test_every_file_is_changed():
    counts = Counter[str]()
    for seed in range(120):
        files = model_files.samples()[seed % len(model_files.samples())]
        changed = model_files.changed(files, random.Random(seed))
        counts.update(name for name in files if files[name] != changed[name])
    assert counts.keys() == {name for files in model_files.samples() for name in files}
