"""Searching for faster schedules on the machine at hand.

::

    from lowering.tune import tune

    report = tune(module, [x, w])   # measures every kernel on the shapes that this call gives it
    exe = build(module)             # consults what was found
"""

from lowering.tune.tuner import Report, tune

__all__ = ["Report", "tune"]
