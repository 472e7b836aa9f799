"""Every test of operators, with less and less known of their operands."""

from collections.abc import Iterator

import pytest

from tests.operators.erasure import LEVELS
from tests.operators.support import Knowledge

QUICK = {"test_manipulation"}
"""Files that also run with nothing known when long sweeps are left out."""

WRITTEN_ONLY = {"test_fewer_heads_of_keys"}
"""What cannot be said with less: that there are fewer heads of keys than of queries has to be provable."""

OF_WORKERS = {"test_collective", "test_distributed"}
"""Files whose programs say themselves how many workers there are."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The values of a file hold at all levels; those below what is written are a long sweep, run where `-m` asks."""
    asked = metafunc.config.getoption("markexpr")
    quick = ["written", "unknown"] if metafunc.module.__name__.rpartition(".")[2] in QUICK else ["written"]
    levels = {"": ["written"], "not slow": quick}.get(asked, list(LEVELS))
    if metafunc.module.__name__.rpartition(".")[2] in OF_WORKERS:
        levels = [level for level in levels if level != "sharded"]
    if metafunc.function.__name__ in WRITTEN_ONLY or not hasattr(metafunc.module, "PROGRAMS"):
        levels = ["written"]
    marks = {level: () if level in quick else (pytest.mark.slow,) for level in levels}
    metafunc.parametrize(
        "_knowledge", [pytest.param(level, marks=marks[level]) for level in levels], indirect=True, ids=str
    )


@pytest.fixture(autouse=True)
def _knowledge(request: pytest.FixtureRequest) -> Iterator[None]:
    Knowledge.level = request.param
    yield
    Knowledge.level = "written"
