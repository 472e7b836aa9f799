"""Searching for faster schedules on the machine at hand.

::

    from lowering.tune import tune

    report = tune(module, [x, w])   # measures every kernel on the shapes that this call gives it
    exe = build(module)             # consults what was found
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowering.tune.tuner import Report, tune

__all__ = ["Report", "tune"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from lowering.tune import tuner

        return getattr(tuner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
