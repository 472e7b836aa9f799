"""The version of the distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("xdsl-relax")
    except PackageNotFoundError:  # what only runs compiled code
        return version("xdsl-relax-server")


VERSION = _version()
