"""Sharded programs: the whole, interpreted, and all workers together."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from lowering.distributed.program import Distribution
from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.workers import run_workers
from tests.support.programs import Tolerance, assert_same, run_pipeline

SUMS = Tolerance(1e-5, 1e-5)
"""Another order of sums."""


def run_sharded(module: ModuleOp, entry: str, args: Sequence[object]) -> object:
    """What a lowered function gives on all workers, put together."""
    distribution = Distribution.of(module, entry)
    given = [distribution.arguments(args, rank) for rank in range(distribution.workers)]
    return distribution.whole(run_workers(module, entry, distribution.mesh, given))


def check_sharded(
    text: str, args: Sequence[Sequence[object]], pipeline: str = "lower-distributed", tolerance: Tolerance = SUMS
) -> ModuleOp:
    """Lowers a program and compares all workers together with the whole; gives the lowered program."""
    module = parse_module(text)
    verify_module(module)
    lowered = module.clone()
    run_pipeline(lowered, pipeline)
    text = str(lowered)
    assert str(parse_module(text)) == text
    for each in args:
        expected = run(module, "main", each)
        assert_same(run_sharded(lowered, "main", each), expected, tolerance, f"{[np.shape(arg) for arg in each]}")
    return lowered
