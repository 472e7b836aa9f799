"""Every test of operators, with less and less known of their operands."""

from collections.abc import Iterator

import pytest

from tests.operators.erasure import LEVELS
from tests.operators.support import Knowledge


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The values of a file hold at all levels; those below what is written are a long sweep, run where `-m` asks."""
    levels = LEVELS if metafunc.config.getoption("markexpr") and hasattr(metafunc.module, "PROGRAMS") else ["written"]
    marks = {level: () if level == "written" else (pytest.mark.slow,) for level in levels}
    metafunc.parametrize(
        "_knowledge", [pytest.param(level, marks=marks[level]) for level in levels], indirect=True, ids=str
    )


@pytest.fixture(autouse=True)
def _knowledge(request: pytest.FixtureRequest) -> Iterator[None]:
    Knowledge.level = request.param
    yield
    Knowledge.level = "written"
