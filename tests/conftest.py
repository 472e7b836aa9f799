"""What all tests share: quiet property tests that do the same on every run, and no cache of the user's."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled code is kept for this session only: tests neither use nor fill the user's cache.

    The console scripts are those of the interpreter that runs the tests.
    """
    directory = tmp_path_factory.mktemp("code-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAX_CACHE_DIR", str(directory))
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        patch.delenv("RELAX_DEBUG", raising=False)
        yield directory
