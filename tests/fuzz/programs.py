"""Random programs: interpreter, bytecode and native code agree, and every pass of the pipeline keeps the values."""

from __future__ import annotations

from lowering import build
from tests.fuzz.drawing import check_one
from tests.strategies.relax_programs import Program, programs
from tests.support.programs import Tolerance, run_everywhere

NAME = "programs"

CLOSE = Tolerance(relative=1e-4, absolute=1e-5)


def check(program: Program) -> None:
    """Runs it in all modes, and interprets it after each pass."""
    run_everywhere(program.module, program.entry, program.inputs, CLOSE)
    build(program.module, validate=True, cache=False)


def run(number: int) -> None:
    """The program of a seed."""
    check_one(number, programs(statements=7), check)
