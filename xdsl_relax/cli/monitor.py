"""Instrumentation of pass pipelines: verification, timing, printing, and the state for reproducers."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException

from lowering.diagnostics import InvalidModule
from lowering.verify import verify_module
from xdsl_relax.cli.diagnostics import ToolError

if TYPE_CHECKING:
    from lowering.compiler.validation import Validation


@dataclass(frozen=True)
class PrintingOptions:
    """When the module is printed between passes, as `mlir-opt` has it."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    only_changes: bool = False
    """After passes only where the text is another one than before."""

    @property
    def compares(self) -> bool:
        """Whether the text before a pass is needed."""
        return self.only_changes and (self.after_all or bool(self.after))


@dataclass
class PassMonitor:
    """The callback of a pass pipeline; everything that it prints goes to stderr."""

    verify: bool = True
    verify_each: bool = True
    """Verify after each pass, not only before the first and after the last."""
    print_between: bool = False
    printing: PrintingOptions = PrintingOptions()
    keep_text: bool = False
    """Keep the module as text before each pass, for `before_text`."""
    validation: Validation | None = None
    """Compares what the program computes before and after each pass."""
    running: ModulePass | None = field(default=None, init=False)
    """The pass that runs now, or that just ran if its result is being verified."""
    position: int = field(default=-1, init=False)
    """The index of `running` in the pipeline, from 0."""
    before_text: str | None = field(default=None, init=False)
    """The module before `running`, in generic form."""
    timings: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]], init=False)
    """Name and seconds of each pass, and of all verification together."""
    _verification: float = field(default=0.0, init=False)
    _started: float = field(default=0.0, init=False)
    _text: str | None = field(default=None, init=False)
    """The module before the pass that runs."""

    def __call__(self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
        """Called before the first pass, between passes and after the last one."""
        if previous is not None:
            self.timings.append((previous.name, time.perf_counter() - self._started))
        if self.verify and (self.verify_each or previous is None or following is None):
            started = time.perf_counter()
            try:
                verify_module(module)
            except InvalidModule as error:
                if previous is None:
                    raise
                raise ToolError(f"pass '{previous.name}' made an invalid module\n{error}") from error
            self._verification += time.perf_counter() - started
        if self.validation is not None:
            self._validate(previous, module)
        if previous is not None and self.print_between:
            print(f"// -----// IR after {previous.name} //----- //", print_module(module), sep="\n", file=sys.stderr)
        self._print(previous, module, following)
        self.running = following
        self.position += 1
        if following is not None and self.keep_text:
            self.before_text = print_module(module, generic=True)
        self._started = time.perf_counter()

    def _validate(self, previous: ModulePass | None, module: ModuleOp) -> None:
        if self.validation is None:
            return
        if previous is None:
            self.validation.begin(module)
            return
        try:
            self.validation.after(module, previous.name)
        except DiagnosticException as error:
            raise ToolError(str(error)) from error

    def _print(self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
        """Prints what `--mlir-print-ir-..` says."""
        options = self.printing
        text = print_module(module) if options.compares else None
        if previous is not None and (options.after_all or previous.name in options.after):
            if not options.only_changes or text != self._text:
                self._dump("After", previous.name, module)
            elif options.only_changes:
                print(f"// -----// IR Dump After {previous.name} (no change) //----- //", file=sys.stderr)
        if following is not None and (options.before_all or following.name in options.before):
            self._dump("Before", following.name, module)
        self._text = text

    def _dump(self, when: str, name: str, module: ModuleOp) -> None:
        print(f"// -----// IR Dump {when} {name} //----- //", print_module(module), sep="\n", file=sys.stderr)

    def timing_table(self) -> str:
        """One line per pass, in order, and the total; milliseconds."""
        rows = [*self.timings, ("(verification)", self._verification)]
        rows.append(("total", sum(seconds for _, seconds in rows)))
        return "\n".join(f"{1000 * seconds:10.2f} ms  {name}" for name, seconds in rows)


def print_module(module: ModuleOp, *, generic: bool = False) -> str:
    """The module as text; in the generic form locations are kept."""
    text = StringIO()
    Printer(stream=text, print_generic_format=generic, print_debuginfo=generic).print_op(module)
    return text.getvalue()
