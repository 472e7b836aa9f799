"""Random programs: interpreter, bytecode and native code agree, and every pass of the pipeline keeps the values."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from lowering import build
from tests.strategies.relax_programs import Program, programs
from tests.support.programs import Tolerance, run_everywhere

NAME = "programs"

CLOSE = Tolerance(relative=1e-4, absolute=1e-5)


def run(number: int) -> None:
    """The program of a seed."""

    @seed(number)
    @settings(
        max_examples=1,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(statements=7))
    def check(program: Program) -> None:
        run_everywhere(program.module, program.entry, program.inputs, CLOSE)
        build(program.module, validate=True, cache=False)

    check()
