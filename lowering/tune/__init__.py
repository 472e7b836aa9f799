"""Searching for faster schedules on the machine at hand.

::

    from lowering.tune import tune

    report = tune(module, [x, w])   # measures every kernel on the shapes that this call gives it
    exe = build(module)             # consults what was found
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from lowering.tune.tuner import Report, tune

__all__ = ["Report", "tune"]

_NAMES = LazyNames(
    __name__,
    {
        "Report": "lowering.tune.tuner:Report",
        "tune": "lowering.tune.tuner:tune",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
