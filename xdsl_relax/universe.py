"""The `xdsl.universe` entry point: with it, plain `xdsl-opt` knows our dialects and passes."""

from __future__ import annotations

from xdsl.universe import Universe

from lowering.registry import dialect_factories, pass_factories

RELAX_UNIVERSE = Universe(all_dialects=dialect_factories(), all_passes=pass_factories())
