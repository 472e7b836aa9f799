"""The version of the distribution."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("xdsl-relax")
