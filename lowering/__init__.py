"""Everything between two levels: passes, pipelines and `build`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowering.driver import build

__all__ = ["build"]


def __getattr__(name: str) -> object:
    if name == "build":
        from tir_dialect.garbage import importing

        with importing():
            from lowering.driver import build

        return build
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
