"""The passes on the language itself, ours and xDSL's: a random program means the same after each."""

import pytest
from hypothesis import given, settings

from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import (
    EXACT,
    Tolerance,
    assert_same,
    check_pass,
    run_in_turn,
    run_pipeline,
    run_with_copies,
    runner,
)
from tests.support.sweeps import examples

COMPILED = ALL.without("unknown_rank")
"""Operators on tensors of unknown rank have no kernels."""


PASSES = (
    "eliminate-common-subexpr",
    "simplify-match-cast",
    "lambda-lift,expand-tuple-arguments",
    "lambda-lift,remove-unused-parameters",
    "remove-unused-outputs",
    "convert-to-dataflow,topological-sort",
    "convert-to-dataflow,topological-sort{order=breadth-first}",
    "convert-to-dataflow,topological-sort{direction=from-outputs}",
    "convert-to-dataflow,topological-sort{order=breadth-first direction=from-outputs}",
    "convert-to-dataflow",
    "dead-code-elimination",
)
"""Each changes nothing when it runs again."""


@given(program=programs())
@examples(3)
def test_results_stay(program: Program):
    for name in PASSES:
        check_pass(program.module, name, [program.inputs], entry=program.entry)


ALL_PASSES = ",".join(
    (
        "inline-functions",
        "expand-tuple-arguments",
        "remove-unused-outputs",
        "simplify-match-cast",
        "canonicalize",
        "eliminate-common-subexpr",
        "dead-code-elimination",
        "remove-unused-parameters",
        "convert-to-dataflow",
        "topological-sort",
    )
)


@pytest.mark.slow
@given(program=programs(COMPILED))
@settings(max_examples=100)
def test_all_passes_together(program: Program):
    """One after the other; what comes out compiles."""
    before = run_with_copies(runner(program.module, program.entry, "interpret"), program.inputs)
    module = program.module.clone()
    run_pipeline(module, ALL_PASSES)
    after = run_with_copies(runner(module, program.entry, "interpret"), program.inputs)
    assert_same(after, before, EXACT, "after all passes")
    run_in_turn(module, program.entry, program.inputs, Tolerance(relative=1e-4, absolute=1e-5))


@given(program=programs())
@examples(20)
def test_passes_of_xdsl_keep_results(program: Program):
    """One run of `cse` or `dce` may leave work for the next, so idempotence is not asked for."""
    before = run_with_copies(runner(program.module, program.entry, "interpret"), program.inputs)
    for name in ("canonicalize", "cse", "dce"):
        module = program.module.clone()
        run_pipeline(module, name)
        after = run_with_copies(runner(module, program.entry, "interpret"), program.inputs)
        assert_same(after, before, EXACT, f"after {name}")
