"""Stages of a pipeline: together they compute what the whole does, and each waits for nothing but its operands."""

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i64

from lowering.diagnostics import InvalidModule
from lowering.distributed.plans import assign_stages
from lowering.distributed.program import Stage
from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.workers import WorkerError, run_workers
from tests.support.programs import run_pipeline

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %first: !relax.tensor<[4, 4], f32>, %go: !relax.tensor<[], i1>,
    %second: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %0 = relax.matmul %x, %first
  %s = relax.shape_of %0
  %z = relax.ones %s dtype = f32
  %1 = relax.tanh %0
  %2 = relax.if %go {
    %3 = relax.matmul %1, %second
    relax.yield %3
  } else {
    relax.yield %1
  } : !relax.tensor<[n, 4], f32>
  %4 = relax.add %2, %z
  %5 = relax.tuple(%4, %0)
  relax.return %5
}
"""
NAMES = [["first"], ["second"], []]


def test_stages():
    """Skipping a stage, constants and shapes that each stage makes, branches; a parameter is where it is used only."""
    module = parse_module(PROGRAM)
    assert assign_stages(module, NAMES) == 2
    whole = module.clone()
    for op in module.walk():
        if op.name in ("relax.if", "relax.add"):
            op.attributes["stage"] = IntegerAttr(1 if op.name == "relax.if" else 2, i64)
    run_pipeline(module, "split-stages")
    verify_module(module)
    names = [f"main_stage{at}" for at in range(3)]
    stages = [Stage.of(module, name) for name in names]
    assert [list(stage.used) for stage in stages] == [[0, 1], [2, 3], []]
    for n in (0, 3):
        for go in (True, False):
            rng = np.random.default_rng(n)
            args = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((n, 4), (4, 4), (4, 4))]
            args.insert(2, np.asarray(go))
            given = [stage.arguments(args, rank) for rank, stage in enumerate(stages)]
            result = run_workers(module, names, {"p": 3}, given)[2]
            for got, expected in zip(result, run(whole, "main", args), strict=True):
                np.testing.assert_array_equal(got, expected)


MESSAGES = """
relax.func @{name}[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {{
  %0 = relax.ccl.send %x to = {to} tag = {tag}
  %s = relax.shape [{size}]
  %1 = relax.ccl.receive %s source = {to} tag = 1 dtype = f32
  %2 = relax.tuple(%0, %1)
  relax.return %2
}}"""


def exchange(to: int = 1, tag: int = 1, size: str = "n") -> list[object]:
    texts = [MESSAGES.format(name="f", to=to, tag=tag, size=size), MESSAGES.format(name="g", to=0, tag=1, size="n")]
    module = parse_module("".join(texts))
    return run_workers(module, ["f", "g"], {"x": 2}, [[np.full(2, rank, np.float32)] for rank in range(2)])


def test_messages():
    """Nobody waits for the other one to receive; tags tell messages apart, and what does not fit is told."""
    first, second = exchange()
    assert (list(first[1]), list(second[1])) == ([1, 1], [0, 0])
    with pytest.raises(WorkerError, match="expected another one of the 2 workers of the group, got 2"):
        exchange(to=2)
    with pytest.raises(WorkerError, match=r"rank 1 waits at float32.*from rank 0 with tag 1; 1 have ended"):
        exchange(tag=2)
    with pytest.raises(WorkerError, match=r"workers disagree: rank 1 sends float32\[2\], rank 0 receives float32\[5\]"):
        exchange(size="5")


REFUSED = {
    "expected a tensor whose dimensions are known from the stage before": (
        "%0 = relax.nonzero %x\n  %1 = relax.negative %0 {stage = 1 : i64}"
    ),
    "expected the number of a stage, got -1": "%1 = relax.exp %x {stage = -1 : i64}",
    "has stages, and tensors that workers share": (
        '%0 = relax.dist.annotate_sharding %x mesh = [2] placement = "S[0]"\n  %1 = relax.exp %x {stage = 1 : i64}'
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str):
    text = f"""relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {{
      {REFUSED[message]}
      relax.return %1
    }}"""
    with pytest.raises(InvalidModule, match=message):
        run_pipeline(parse_module(text), "split-stages")
