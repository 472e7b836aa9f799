"""Branches that write into memory which is made before them: the same values, and nothing outside of the arena."""

import numpy as np
import pytest
from hypothesis import given

from lowering.parsing import parse_module
from lowering.relax.memory.plan_memory import memory_report
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples

PREPARE = "lambda-lift,bind-unknown-dims,insert-guards,legalize-ops,to-non-dataflow,lower-call-tir"


@given(programs(ALL.without("unknown_rank", "unknown_dtype")))
@examples(5)
def test_random_programs(program: Program):
    module = program.module.clone()
    run_pipeline(module, PREPARE)
    check_pass(module, "hoist-branch-results", [program.inputs], entry=program.entry)


BRANCH = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[4], f32> {
  %a = relax.cumsum %x axis = 0
  %r, %s = relax.if %c {
    %0 = relax.cumsum %a axis = 1
    %1 = relax.exp %0
    relax.yield %1, %x
  } else {
    %0 = relax.sin %a
    relax.yield %0, %a
  }
  %2 = relax.multiply %r, %s
  %3 = relax.sum %2 axes = [0]
  relax.return %3
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("branch", [False, True])
def test_a_branch_between_kernels(rows: int, branch: bool):
    x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
    args = [x, np.array(branch)]
    module = parse_module(BRANCH)
    run_pipeline(module, PREPARE)
    assert "yield %1, %x" not in str(check_pass(module, "hoist-branch-results", [args]))
    run_in_turn(BRANCH, "main", args)


def test_report():
    """Only what may be the argument itself, and what is returned, has memory of its own."""
    assert memory_report(parse_module(BRANCH))["main"].own == 2
