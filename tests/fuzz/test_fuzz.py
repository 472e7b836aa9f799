"""The search for faults itself: what is found, what is isolated, and a few inputs of each kind."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.fuzz import __main__ as driver
from tests.fuzz.isolation import outcome
from tests.fuzz.registry import Fuzzer, fuzzers
from tests.fuzz.texts import mutated


def test_fuzzers_are_found_by_their_interface():
    assert {"texts", "programs", "passes"} <= {each.name for each in fuzzers()}


def test_a_fault_is_said_with_its_place():
    said = outcome(lambda: {}["key"], 60)
    assert said is not None
    assert said.startswith("KeyError: 'key' (")
    assert "test_fuzz.py" in said


def test_nothing_is_said_of_what_returns():
    assert outcome(lambda: 3, 60) is None


def test_a_crash_is_a_find():
    assert outcome(lambda: os.kill(os.getpid(), signal.SIGSEGV), 60) == "ended by SIGSEGV"


def test_what_takes_too_long_is_a_find():
    assert outcome(lambda: time.sleep(60), 0.2) == "takes more than 0 seconds"


def test_finds_are_recorded_and_run_first(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(driver, "SEEDS", tmp_path)
    seen: list[int] = []

    def run(seed: int) -> None:
        if seed % 2:
            raise AssertionError("odd")

    fuzzer = Fuzzer("odd", run)
    assert driver.search([fuzzer], 0.3, 3, 60) > 0
    assert 3 in driver.known_seeds("odd")
    assert 4 not in driver.known_seeds("odd")
    monkeypatch.setattr(driver, "outcome", lambda action, limit: seen.append(1) or None)
    driver.search([fuzzer], 0.01, 100, 60)
    assert seen


def test_the_same_seed_makes_the_same_text():
    text = "relax.func @f(%x: !relax.object) -> !relax.object { relax.return %x }"
    made = {mutated(random.Random(number), text) for number in range(20)}
    assert mutated(random.Random(1), text) == mutated(random.Random(1), text)
    assert len(made) > 10


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("texts", 6),
        ("passes", 2),
        ("arguments", 3),
        ("onnx_graphs", 3),
        ("convolutions", 1),
        ("effects", 1),
        ("schedules", 1),
        ("names", 1),
        ("scripts", 1),
    ],
)
def test_a_few_inputs(name: str, count: int):
    (fuzzer,) = [each for each in fuzzers() if each.name == name]
    for seed in range(count):
        fuzzer.run(seed)
