"""What all tests share: quiet property tests that do the same on every run, and no cache of the user's."""

import gc
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support.sweeps import QUICK, THOROUGH

for _name, _examples in {"default": QUICK, "thorough": THOROUGH}.items():
    settings.register_profile(
        _name,
        deadline=None,
        derandomize=True,
        max_examples=_examples,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("default")

_STATES: dict[np.random.Generator, object] = {}
"""Of each generator of random numbers that a module of tests holds: its state when its first test began."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is `sampled`, all but one in so many are slow, besides those that are anyway."""
    seen = dict[str, int]()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and item.get_closest_marker("slow") is None:
            name = item.nodeid.partition("[")[0]
            if seen.setdefault(name, 0) % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[name] += 1


def pytest_collection_finish() -> None:
    gc.set_threshold(50_000, 20, 20)  # what a program of a test leaves behind is small
    _settle()


_LEFT = itertools.count(1)
"""Modules of tests whose tests have run."""


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """What some modules of tests have left behind is looked at no more."""
    yield
    if next(_LEFT) % 4 == 0:
        _settle()


@pytest.fixture(autouse=True)
def _numbers(request: pytest.FixtureRequest) -> None:
    """A module's random numbers start anew for each test: it sees the same ones whatever has run before it."""
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            state = _STATES.setdefault(value, value.bit_generator.state)
            value.bit_generator.state = state


def _settle() -> None:
    """Takes what is alive out of the collector's sight: among all tests and modules, a collection takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled code is kept for this session only, and shared by its workers: tests neither use nor fill the user's
    cache. Workers leave each other no processor, so builds start no process: each takes half a second of one.

    The console scripts are those of the interpreter that runs the tests.
    """
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "code-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAX_CACHE_DIR", str(directory))
        patch.setenv("RELAX_KEY_FILE", str(directory.with_name("key")))
        patch.setenv("RELAX_PROCESS", "0")
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        patch.delenv("RELAX_DEBUG", raising=False)
        yield directory
