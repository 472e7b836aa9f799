"""The debugger of bytecode, driven by commands as somebody types them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tests.vm_dialect.programs import factorial, sum_loop
from vm_dialect import ExecBuilder
from vm_dialect.debugger import Debugger, describe
from vm_dialect.tensors import from_numpy


def session(ib: ExecBuilder, function: str, arguments: list[object], *commands: str) -> str:
    """What the debugger says to commands."""
    out = io.StringIO()
    debugger = Debugger(ib.get(), function, arguments, stdin=io.StringIO("\n".join([*commands, ""])), stdout=out)
    debugger.prompt = ""
    debugger.cmdloop()
    return out.getvalue()


def test_steps_show_the_next_instruction(ib: ExecBuilder):
    sum_loop(ib)
    lines = session(ib, "main", [3], "s", "step 2", "", "quit").splitlines()
    assert lines[0].startswith("step, next, continue")
    assert [line.partition("->")[2].split()[0] for line in lines[1:]] == ["0", "1", "3", "5"]
    assert lines[3] == "@main  ->    3  if  %3  else 7"


def test_breakpoints_stop_the_program(ib: ExecBuilder):
    sum_loop(ib)
    said = session(ib, "main", [3], "break 4", "b", "c", "registers", "c", "delete 4", "c", "where", "quit")
    assert "breakpoint at 4 in main" in said
    assert said.count("->*   4  call  vm.builtin.int_add") == 2
    assert "%0   int 3" in said
    assert "the program has returned int 3" in said


def test_functions_are_entered_stepped_over_and_finished(ib: ExecBuilder):
    factorial(ib)
    inside = session(ib, "fact", [3], "break fact", "c", "c", "where", "finish", "list", "quit")
    assert inside.count("@fact  ->*") >= 2
    assert inside.count("  @fact  instruction ") >= 3
    over = session(ib, "fact", [3], *["next"] * 20, "quit")
    assert "the program has returned int 6" in over
    assert session(ib, "fact", [3], "finish").splitlines()[-1] == "the program has returned int 6"


def test_values_are_printed(ib: ExecBuilder):
    sum_loop(ib)
    said = session(ib, "main", [7], "print %0", "p n", "print %99", "print nothing", "quit")
    assert said.count("\n7\n") >= 1
    assert "expected a register (%0 to %" in said
    assert describe(from_numpy(np.array([[1.0, -2.0]], np.float32))) == "f32[1, 2]  min -2  max 1"
    assert describe(from_numpy(np.array([True]))) == "i1[1]"
    assert describe(None) == "null"


def test_errors_end_the_program_and_not_the_debugger(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.int_floordiv", [ib.r(0), ib.imm(0)], ib.r(1))
        ib.emit_ret(ib.r(1))
    said = session(ib, "main", [3], "c", "registers", "s", "quit")
    assert "ValueError: division by zero" in said
    assert "in function main, instruction 0 (vm.builtin.int_floordiv)" in said
    assert "%0   int 3" in said
    assert "the program has ended in @main with ValueError" in said


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("fly", "no command fly; help lists them"),
        ("break nobody", "no bytecode function nobody; there are main"),
        ("break 999", "expected an instruction from 0 to"),
        ("delete 2", "there is no breakpoint at 2"),
        ("step many", "expected a number of instructions, got many"),
        ("list nobody", "no bytecode function nobody"),
        ("help break", "stops before a function begins"),
    ],
)
def test_what_is_wrong_is_said(ib: ExecBuilder, command: str, answer: str):
    sum_loop(ib)
    assert answer in session(ib, "main", [3], command, "quit")


def test_the_end_of_the_input_ends_the_debugger(ib: ExecBuilder):
    sum_loop(ib)
    assert session(ib, "main", [3], "s").count("->") == 2
    with pytest.raises(KeyError, match="no bytecode function other"):
        Debugger(ib.get(), "other", [])
