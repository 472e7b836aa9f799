"""A debugger for bytecode in the terminal: breakpoints, steps, registers, calls.

It is a `cmd.Cmd`, so a program drives it, too: `Debugger(executable, "main", [x]).onecmd("step")`.
"""

from __future__ import annotations

import cmd
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np
import tvm_ffi

from vm_dialect.builtins.calls import text_of
from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.executable import Executable
from vm_dialect.executable.text import instruction_columns
from vm_dialect.machine import VirtualMachine
from vm_dialect.tensors import kind_of, to_numpy

_AROUND = 5
"""Instructions that `list` shows before and after the next one."""


class Debugger(cmd.Cmd):
    """Runs a function of an executable, one instruction after the other."""

    prompt = "(vm) "

    def __init__(
        self,
        executable: Executable,
        function: str,
        arguments: Sequence[Any],
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ):
        """`KeyError` if the executable has no such function in bytecode; errors of arguments are those of a call."""
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.machine = VirtualMachine(executable)
        self.thread = self.machine.start(function, *arguments)
        self._executable = executable
        self._names = [each.name for each in executable.functions]
        self._breakpoints: dict[int, str] = {}
        self.failed: Exception | None = None
        """What has ended the program, if an error has."""

    # The loop

    def preloop(self) -> None:
        """Shows where the program stands."""
        self._say("step, next, continue, break, registers, print, where, list; help says more, quit ends")
        self._show_position()

    def emptyline(self) -> bool:
        """Does the last command again, if it was a step."""
        if self.lastcmd.partition(" ")[0] in ("s", "step", "n", "next"):
            return self.onecmd(self.lastcmd)
        return False

    def default(self, line: str) -> None:
        """An unknown command."""
        self._say(f"no command {line.partition(' ')[0]}; help lists them")

    def do_EOF(self, line: str) -> bool:  # the end of the input, as `cmd` calls it
        """The end of the input ends the debugger."""
        return True

    def onecmd(self, line: str) -> bool:
        """Short names, then the command."""
        word, _, rest = line.strip().partition(" ")
        return super().onecmd(f"{_SHORT.get(word, word)} {rest}".strip())

    # Running

    def do_step(self, line: str) -> bool:
        """`step [N]` executes an instruction, or N; a call of another function of the program enters it."""
        for _ in range(self._count(line)):
            if not self._run_one():
                break
        self._show_position()
        return False

    def do_next(self, line: str) -> bool:
        """`next [N]` executes an instruction, or N; what functions do that it calls counts as part of it."""
        for _ in range(self._count(line)):
            depth = self.thread.depth
            going = self._run_one()
            while going and self.thread.depth > depth and not self._is_at_breakpoint():
                going = self._run_one()
            if not going or self.thread.depth > depth:
                break
        self._show_position()
        return False

    def do_finish(self, line: str) -> bool:
        """`finish` runs until the function returns, or to a breakpoint."""
        depth = self.thread.depth
        while self._run_one() and self.thread.depth >= depth and not self._is_at_breakpoint():
            pass
        self._show_position()
        return False

    def do_continue(self, line: str) -> bool:
        """`continue` runs to the next breakpoint, or to the end."""
        while self._run_one() and not self._is_at_breakpoint():
            pass
        self._show_position()
        return False

    def do_quit(self, line: str) -> bool:
        """`quit` ends the debugger."""
        return True

    # Breakpoints

    def do_break(self, line: str) -> bool:
        """`break [FUNCTION | INSTRUCTION]` stops before a function begins, or before an instruction; without an
        argument, it lists the breakpoints.
        """
        word = line.strip()
        if not word:
            for position, name in sorted(self._breakpoints.items()):
                self._say(f"{position:4}  in {name}")
            return False
        position = self._position_of(word)
        if position is not None:
            functions = (each for each in self._executable.functions if each.start <= position < each.end)
            self._breakpoints[position] = next((each.name for each in functions), "no function")
            self._say(f"breakpoint at {position} in {self._breakpoints[position]}")
        return False

    def do_delete(self, line: str) -> bool:
        """`delete [FUNCTION | INSTRUCTION]` removes a breakpoint, or all of them."""
        word = line.strip()
        if not word:
            self._breakpoints.clear()
        elif (position := self._position_of(word)) is not None and self._breakpoints.pop(position, None) is None:
            self._say(f"there is no breakpoint at {position}")
        return False

    def _position_of(self, word: str) -> int | None:
        """The instruction that a number or the name of a function means; `None` after a message."""
        if word.isdecimal():
            if int(word) < len(self._executable.code):
                return int(word)
            self._say(f"expected an instruction from 0 to {len(self._executable.code) - 1}, got {word}")
            return None
        index = self._executable.function_index.get(word)
        if index is None or self._executable.functions[index].start == self._executable.functions[index].end:
            self._say(f"no bytecode function {word}; there are {', '.join(self._bytecode())}")
            return None
        return self._executable.functions[index].start

    def complete_break(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Names of functions."""
        return [name for name in self._bytecode() if name.startswith(text)]

    # Looking

    def do_registers(self, line: str) -> bool:
        """`registers` shows what each register of the running function holds."""
        for index, value in enumerate(self.thread.frame[: self.thread.code.info.frame_size]):
            self._say(f"  %{index:<3} {describe(value)}")
        return False

    def do_print(self, line: str) -> bool:
        """`print %N` or `print NAME` shows the whole value of a register, or of a parameter."""
        word = line.strip()
        parameters = self.thread.code.info.parameters
        index = parameters.index(word) if word in parameters else None
        if word.startswith("%") and word[1:].isdecimal():
            index = int(word[1:])
        if index is None or index >= self.thread.code.info.frame_size:
            self._say(f"expected a register (%0 to %{self.thread.code.info.frame_size - 1}) or a parameter, got {word}")
        else:
            self._say(text_of(self.thread.frame[index]))
        return False

    def do_where(self, line: str) -> bool:
        """`where` shows the running function, and those that wait for it, innermost first."""
        self._say(f"  @{self.thread.code.info.name}  instruction {self._position()}{self._source(self._position())}")
        for site in self.thread.waiting():
            self._say(f"  @{site.caller}  instruction {site.index}{self._source(site.index)}")
        return False

    def do_list(self, line: str) -> bool:
        """`list [FUNCTION]` shows the instructions around the next one, or of a function."""
        info = self.thread.code.info
        word = line.strip()
        if word:
            start = self._position_of(word)
            if start is None:
                return False
            info = next(each for each in self._executable.functions if each.start <= start < each.end)
            first, last = info.start, info.end
        else:
            first, last = (max(info.start, self._position() - _AROUND), min(info.end, self._position() + _AROUND + 1))
        for position in range(first, last):
            self._say(self._line(position))
        return False

    # State

    def _run_one(self) -> bool:
        """Executes an instruction; whether there is another one."""
        if self.thread.done or self.failed is not None:
            return False
        try:
            self.thread.run(1)
        except Exception as error:  # of any kind: it ends the program, and the registers are still there
            self.failed = error
            notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
            self._say(f"{type(error).__name__}: {error}{notes}")
        return not self.thread.done and self.failed is None

    def _position(self) -> int:
        return self.thread.code.info.start + self.thread.position

    def _is_at_breakpoint(self) -> bool:
        return not self.thread.done and self._position() in self._breakpoints

    def _bytecode(self) -> list[str]:
        return [each.name for each in self._executable.functions if each.start < each.end]

    def _count(self, line: str) -> int:
        word = line.strip()
        if not word or (word.isdecimal() and int(word) > 0):
            return int(word or 1)
        self._say(f"expected a number of instructions, got {word}")
        return 0

    # Output

    def _show_position(self) -> None:
        if self.thread.done:
            self._say(f"the program has returned {describe(self.thread.result)}")
        elif self.failed is None:
            self._say(f"@{self.thread.code.info.name}  {self._line(self._position())}")
        else:
            self._say(f"the program has ended in @{self.thread.code.info.name} with {type(self.failed).__name__}")

    def _line(self, position: int) -> str:
        columns = instruction_columns(position, self._executable.code[position], self._names)
        mark = "->" if position == self._position() and not self.thread.done else "  "
        stop = "*" if position in self._breakpoints else " "
        return f"{mark}{stop}{position:4}  {'  '.join(filter(None, columns))}{self._source(position)}"

    def _source(self, position: int) -> str:
        where = self._executable.locations.get(position)
        return f"  # {where}" if where else ""

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")


_SHORT = {
    "s": "step",
    "n": "next",
    "c": "continue",
    "b": "break",
    "d": "delete",
    "r": "registers",
    "p": "print",
    "w": "where",
    "bt": "where",
    "l": "list",
    "q": "quit",
}


def describe(value: Any) -> str:
    """A value on one line: `f32[3, 4] min -1 max 2` for a tensor."""
    if not isinstance(value, tvm_ffi.Tensor):
        return f"{kind_of(value)} {text_of(value)}" if value is not None else "null"
    element = BY_FFI_NAME.get(value.dtype)
    kind = f"{value.dtype if element is None else element.name}{list(value.shape)}"
    array = to_numpy(value)
    if array.size == 0 or array.dtype.kind == "b":
        return kind
    numbers = array.astype(np.float64)
    return f"{kind}  min {numbers.min():.6g}  max {numbers.max():.6g}"
