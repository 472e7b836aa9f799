"""What a pass says of itself: which ops it is about, which it removes, and whether it depends on the machine.

`make index` collects these facts in `lowering/index.py`, so that a pipeline knows them before it loads a pass.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tir_dialect.target import Target


class Pass(ModulePass, ABC):
    """A pass that says more of itself than its name. Other passes are always run, and are the same for all machines."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Names of ops. The pass changes nothing in a module that has none of them; without names it is always run."""

    folds: ClassVar[bool] = False
    """Whether the pass is also about any other operator, if all of its operands are known."""

    removes: ClassVar[tuple[str, ...]] = ()
    """Names of ops that are gone after the pass: `verify-stage` names the pass where one is left."""

    def for_target(self, target: Target) -> ModulePass:
        """The same pass for a machine."""
        return self


def pass_target(description: str) -> Target:
    """The target in the syntax of `Target.parse`, this machine if it is empty; PassFailedException for another."""
    try:
        return Target.parse(description) if description else Target.host()
    except ValueError as error:
        raise PassFailedException(str(error)) from error
