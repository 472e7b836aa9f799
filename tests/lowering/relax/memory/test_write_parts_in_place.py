"""Parts that are computed where they are joined: the same values bit for bit, without copies."""

import numpy as np
import pytest
from hypothesis import given
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from relax_dialect.ops.memory import CallKernelOp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass, run_everywhere, run_pipeline
from tests.support.sweeps import examples

PREPARE = "lambda-lift,bind-unknown-dims,insert-guards,legalize-ops,to-non-dataflow,lower-call-tir"


def prepared(module: ModuleOp) -> ModuleOp:
    """Kernel by kernel, with destinations."""
    run_pipeline(module, PREPARE)
    return module


@given(programs(ALL.without("unknown_rank")))
@examples(4)
def test_random_programs(program: Program):
    check_pass(prepared(program.module.clone()), "write-parts-in-place", [program.inputs], entry=program.entry)


HEAD = "relax.func @main[%n](%x: !relax.tensor<[n, 3], f32>) -> !relax.object"
PROGRAMS = {
    "two maps": ("%0 = relax.exp %x %1 = relax.sin %x %r = relax.concat %0, %1 axis = 1", 2, 0),
    "a parameter": ("%0 = relax.exp %x %r = relax.concat %0, %x axis = 1", 1, 1),
    "joined again": (
        "%0 = relax.exp %x %1 = relax.concat %0, %x axis = 1 %2 = relax.sin %1 %r = relax.concat %2, %1 axis = 1",
        2,
        2,
    ),
    "twice the same": ("%0 = relax.exp %x %r = relax.concat %0, %0 axis = 1", 0, 1),
    "read later": (
        "%0 = relax.exp %x %1 = relax.concat %0, %x axis = 1 %2 = relax.sin %0 %r = relax.tuple(%1, %2)",
        0,
        1,
    ),
    "a place that is not known": ("%0 = relax.exp %x %r = relax.concat %x, %0 axis = 0", 0, 1),
    "rows of a reduction": ("%0 = relax.nn.softmax %x %r = relax.concat %0, %x axis = 1", 0, 1),
}


@pytest.mark.parametrize(("body", "parts", "copies"), PROGRAMS.values(), ids=PROGRAMS)
def test_which_parts(body: str, parts: int, copies: int):
    x = np.random.default_rng(0).random((5, 3), np.float32)
    module = prepared(parse_module(f"{HEAD} {{ {body} relax.return %r }}"))
    made = check_pass(module, "write-parts-in-place", [[x], [x[:0]]])
    names = [op.callee.string_value() for op in made.walk() if isinstance(op, CallKernelOp)]
    assert sum("_part" in name for name in names) == parts
    assert sum("concat" in name for name in names) == copies


def test_compiled():
    """Products, with and without something behind them, write parts in blocks; maps read them."""
    rng = np.random.default_rng(0)
    shapes = [(2, 1, 5, 6, 16), (2, 1, 3, 3, 16, 16), (1, 1, 1, 1, 16, 16), (1, 1, 1, 16)]
    data = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    layouts = 'data_layout = "NCHW16c" kernel_layout = "OIHW16i16o" out_layout = "NCHW16c"'
    text = f"""
    relax.func @main[%n, %h](%x: !relax.tensor<[n, 1, h, 6, 16], f32>, %v: !relax.tensor<[2, 1, 3, 3, 16, 16], f32>,
        %w: !relax.tensor<[1, 1, 1, 1, 16, 16], f32>, %b: !relax.tensor<[1, 1, 1, 16], f32>) -> !relax.object {{
      %0 = relax.nn.conv2d %x, %v padding = [1, 1, 1, 1] {layouts}
      %1 = relax.nn.conv2d %x, %w {layouts}
      %2 = relax.add %1, %b
      %3 = relax.concat %0, %2 axis = 1
      %4 = relax.exp %3
      %5 = relax.nn.conv2d %x, %w {layouts}
      %6 = relax.concat %3, %5 axis = 1
      %7 = relax.tuple(%4, %6)
      relax.return %7
    }}
    """
    run_everywhere(text, "main", data, Tolerance(1e-5, 1e-5))
