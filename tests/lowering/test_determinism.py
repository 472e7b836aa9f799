"""The IR of a program is the same in every process, whatever order Python's hashes of texts give to sets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = ("1", "2")

PROGRAMS = {
    "attention": """
    relax.func @main[%b, %s, %t](%q: !relax.tensor<[b, s, 4, 16], f32>, %k: !relax.tensor<[b, t, 4, 16], f32>,
                                 %v: !relax.tensor<[b, t, 4, 16], f32>) -> !relax.tensor<[b, s, 4, 16], f32> {
      %r = relax.nn.attention %q, %k, %v
      relax.return %r
    }
    """,
    "attention with shared heads": """
    relax.func @main[%b, %s, %t](%q: !relax.tensor<[b, s, 6, 8], f32>, %k: !relax.tensor<[b, t, 2, 8], f32>,
                                 %v: !relax.tensor<[b, t, 2, 8], f32>) -> !relax.tensor<[b, s, 48], f32> {
      %0 = relax.nn.attention %q, %k, %v causal_mask = "BottomRight"
      %shape = relax.shape [b, s, 48]
      %r = relax.reshape %0, %shape
      relax.return %r
    }
    """,
    "a network": """
    relax.func @main[%n](%x: !relax.tensor<[n, 12], f32>, %w: !relax.tensor<[12, 20], f32>,
                         %c: !relax.tensor<[n, 4, 9, 9], f32>, %f: !relax.tensor<[8, 4, 3, 3], f32>)
        -> !relax.tuple<!relax.tensor<[n, 20], f32>, !relax.tensor<[n, 8, 7, 7], f32>> {
      %0 = relax.matmul %x, %w
      %1 = relax.nn.softmax %0 axis = -1
      %2 = relax.nn.conv2d %c, %f
      %3 = relax.nn.relu %2
      %r = relax.tuple(%1, %3)
      relax.return %r
    }
    """,
}


def _print_ir() -> None:
    """What the processes of the test print: for each program the IR with scheduled kernels."""
    from xdsl.context import Context

    from lowering.kernels.schedule_cpu import schedule
    from lowering.parsing import parse_module
    from lowering.pipelines import RelaxToVMPass
    from tir_dialect.ops.function import PrimFuncOp
    from tir_dialect.target import Target

    target = Target.parse("x86-64-v3")
    for text in PROGRAMS.values():
        module = parse_module(text)
        RelaxToVMPass.run(Context(), module, target)
        for kernel in [op for op in module.ops if isinstance(op, PrimFuncOp)]:
            schedule(kernel, target)
        print(module)


@pytest.mark.slow
def test_ir_does_not_depend_on_the_seed_of_hashes():
    """In two processes, with different seeds: attention with shared heads was not the same in these two."""
    code = "from tests.lowering.test_determinism import _print_ir; _print_ir()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert all(process.returncode == 0 for process in processes)
    assert first.count("tir.prim_func") >= 4
    assert first == second
