"""How each op of the vm dialect is lowered: a table from op class to the function that emits its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from lowering.vm_to_llvm.ops import calls, checks, constants, containers, control, integers, memory, shapes
from lowering.vm_to_llvm.state import FunctionState

LOWERINGS: dict[type[Operation], Callable[[FunctionState, Any], None]] = {
    **constants.LOWERINGS,
    **integers.LOWERINGS,
    **checks.LOWERINGS,
    **shapes.LOWERINGS,
    **memory.LOWERINGS,
    **containers.LOWERINGS,
    **calls.LOWERINGS,
    **control.LOWERINGS,
}
"""Every op that stands in a `vm.func`."""
