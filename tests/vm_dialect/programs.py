"""Programs and types that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vm_dialect import ExecBuilder

Run = Callable[..., Any]
"""The fixture `run`: runs `main`, or another function by `name=`."""


def sum_loop(ib: ExecBuilder) -> None:
    """`main(n)`: the sum of 0 .. n - 1, by a loop."""
    with ib.function("main", 1, ["n"]):
        ib.emit_call("vm.builtin.copy", [0], ib.r(1))
        ib.emit_call("vm.builtin.copy", [0], ib.r(2))
        ib.emit_call("vm.builtin.int_lt", [ib.r(1), ib.r(0)], ib.r(3))
        ib.emit_if(ib.r(3), 4)
        ib.emit_call("vm.builtin.int_add", [ib.r(2), ib.r(1)], ib.r(2), location="node sum")
        ib.emit_call("vm.builtin.int_add", [ib.r(1), 1], ib.r(1))
        ib.emit_goto(-4)
        ib.emit_ret(ib.r(2))


def depth(ib: ExecBuilder) -> None:
    """`depth(n)`, which is n, by n calls inside each other."""
    with ib.function("depth", 1, ["n"]):
        ib.emit_call("vm.builtin.int_le", [ib.r(0), 1], ib.r(1))
        ib.emit_if(ib.r(1), 2)
        ib.emit_ret(1)
        ib.emit_call("vm.builtin.int_sub", [ib.r(0), 1], ib.r(2))
        ib.emit_call("depth", [ib.r(2)], ib.r(3))
        ib.emit_call("vm.builtin.int_add", [1, ib.r(3)], ib.r(4))
        ib.emit_ret(ib.r(4))


def factorial(ib: ExecBuilder) -> None:
    """`fact(n)`, by recursion that is not a tail call."""
    with ib.function("fact", 1, ["n"]):
        ib.emit_call("vm.builtin.int_le", [ib.r(0), 1], ib.r(1))
        ib.emit_if(ib.r(1), 2)
        ib.emit_ret(1)
        ib.emit_call("vm.builtin.int_sub", [ib.r(0), 1], ib.r(2))
        ib.emit_call("fact", [ib.r(2)], ib.r(3))
        ib.emit_call("vm.builtin.int_mul", [ib.r(0), ib.r(3)], ib.r(4))
        ib.emit_ret(ib.r(4))
