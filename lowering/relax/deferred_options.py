"""How deferred functions are compiled: with the target and level of the program that they belong to.

The first line of their text says it, as a comment, unless it is what `build` does by default.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tir_dialect.target import Target
from vm_dialect.ops.calls import CallPackedOp
from vm_dialect.ops.values import StrOp

RUN = "vm.builtin.run_deferred"
"""The function that is called with the text of a deferred function and its arguments."""

_HEAD = "// built with "


@dataclass(frozen=True)
class Options:
    """What `build` is given."""

    target: Target | None = None
    """The host unless it is named."""
    opt_level: int = 3

    @staticmethod
    def of(text: str) -> Options:
        """Those that a text names. Code for a machine of another kind than ours is made for ours."""
        if not text.startswith(_HEAD):
            return Options()
        level, _, machine = text.partition("\n")[0].removeprefix(_HEAD).partition(" ")
        target = Target.parse(machine)
        return Options(target if target.arch == Target.host().arch else None, int(level.removeprefix("O")))


def set_options(module: ModuleOp, target: Target, opt_level: int) -> None:
    """Writes into the texts of deferred functions how the program is built."""
    if target == Target.host() and opt_level == Options.opt_level:
        return
    settings = " ".join(f"{name}={value}" for name, value in target.settings().items())
    head = f"{_HEAD}O{opt_level} host {settings}\n"
    for op in module.walk():
        text = op.operands[0].owner if isinstance(op, CallPackedOp) and op.function.data == RUN else None
        if isinstance(text, StrOp) and not text.value.data.startswith(_HEAD):
            text.properties["value"] = StringAttr(head + text.value.data)
