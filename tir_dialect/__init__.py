"""The tir dialect: loop-level programs over buffers, tensor expressions and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from tir_dialect import te
    from tir_dialect.dialect import TIR
    from tir_dialect.schedule import Schedule
    from tir_dialect.specialization import specialize

__all__ = ["TIR", "Schedule", "specialize", "te"]

# Loaded on first use: importing the package must stay cheap.
_NAMES = LazyNames(
    __name__,
    {
        "TIR": "tir_dialect.dialect:TIR",
        "Schedule": "tir_dialect.schedule:Schedule",
        "specialize": "tir_dialect.specialization:specialize",
        "te": "tir_dialect.te",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
