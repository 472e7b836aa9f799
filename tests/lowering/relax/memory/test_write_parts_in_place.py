"""Parts that are computed where they are joined: the same values bit for bit, without copies."""

import numpy as np
import pytest
from hypothesis import given
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from relax_dialect.ops.memory import CallKernelOp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples

PREPARE = "lambda-lift,bind-unknown-dims,insert-guards,legalize-ops,to-non-dataflow,lower-call-tir"


def prepared(module: ModuleOp) -> ModuleOp:
    """Kernel by kernel, with destinations."""
    run_pipeline(module, PREPARE)
    return module


@pytest.mark.slow
@given(programs(ALL.without("unknown_rank", "unknown_dtype")))
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
    """Products, with and without something after them, write parts in blocks; maps read them."""
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
    run_in_turn(text, "main", data, Tolerance(1e-5, 1e-5))


SOURCES = {
    "map": "relax.exp %x",
    "matmul": "relax.matmul %x, %x",
    "permute": "relax.permute_dims %x axes = [1, 0]",
    "cumsum": "relax.cumsum %x axis = 0",
    "sort": "relax.sort %x axis = 1",
    "softmax": "relax.nn.softmax %x",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("base", ["%b", "%copy"])
def test_slices_of_a_base(base: str):
    """The base is copied first: the slices that are written into it stay where they are computed."""
    sources = "\n".join(f"%s{index} = {source}" for index, source in enumerate(SOURCES.values()))
    slices = "\n".join(
        f"%r{index} = relax.slice_scatter {base}, %s{index} start = 2 end = 5 axis = 1" for index in range(len(SOURCES))
    )
    results = ", ".join(f"%r{index}" for index in range(len(SOURCES)))
    text = f"""
    relax.func @main(%b: !relax.tensor<[3, 6], f32>, %x: !relax.tensor<[3, 3], f32>) -> !relax.object {{
      %copy = relax.cumsum %b axis = 0
      {sources}
      {slices}
      %r = relax.tuple({results})
      relax.return %r
    }}
    """
    rng = np.random.default_rng(0)
    inputs = [rng.random((3, 6), np.float32), rng.random((3, 3), np.float32)]
    run_in_turn(text, "main", inputs, Tolerance(1e-5, 1e-5))
    check_pass(prepared(parse_module(text)), "write-parts-in-place", [inputs])


ROWS = """
tir.prim_func @{name}(%A: !tir.buffer<[2, 3], f32>, %B: !tir.buffer<[2, 3], f32>, %W: !tir.buffer<[2, 6], f32>{more}) {{
  %c2 = tir.dim 2
  %c3 = tir.dim 3
  %c6 = tir.dim 6
  {body}
}}
"""
COPY = """
tir.for (%i{b}, %j{b}) in (%c2, %c3) {{
  tir.block "{b}" (%vi{b} = spatial %i{b} in %c2, %vj{b} = spatial %j{b} in %c3) {{
    %x{b} = tir.load %{b}[%vi{b}, %vj{b}]
    %k{b} = tir.dim {at}
    %at{b} = arith.addi %vj{b}, %k{b} : index
    tir.store %x{b}, %W[%vi{b}, %at{b}]
    {rest}
  }}
}}
"""
FILL = """
tir.for (%i, %j) in (%c2, %c6) {
  tir.block "fill" (%vi = spatial %i in %c2, %vj = spatial %j in %c6) {
    %one = arith.constant 1.0 : f32
    tir.store %one, %W[%vi, %vj]
  }
}
"""


def copy(buffer: str, at: int, rest: str = "") -> str:
    return COPY.format(b=buffer, at=at, rest=rest)


KERNELS = {
    "filled first": (FILL + copy("A", 1), 0),
    "filled last": (copy("A", 1) + FILL, 1),
    "apart": (copy("A", 0) + copy("B", 3), 2),
    "over each other": (copy("A", 0) + copy("B", 2), 1),
    "with another store": (copy("A", 0, "tir.store %xA, %W[%viA, %atA]") + copy("B", 3), 1),
    "in a common loop": ("%c1 = tir.dim 1 tir.for (%t) in (%c1) {" + FILL + copy("A", 0) + "}", 0),
}


@pytest.mark.parametrize(("body", "parts"), KERNELS.values(), ids=KERNELS)
def test_kernels_that_write_more_than_copies(body: str, parts: int):
    """A copy comes first only where nothing was written to its position before it."""
    text = f"""
    {ROWS.format(name="joined", body=body, more="")}
    relax.func @main(%x: !relax.tensor<[2, 3], f32>) -> !relax.object {{
      %a = relax.exp %x
      %b = relax.sin %x
      %w = relax.call_tir @joined(%a, %b) : !relax.tensor<[2, 6], f32>
      relax.return %w
    }}
    """
    x = np.random.default_rng(0).random((2, 3), np.float32)
    made = check_pass(prepared(parse_module(text)), "write-parts-in-place", [[x]])
    names = [op.callee.string_value() for op in made.walk() if isinstance(op, CallKernelOp)]
    assert sum("_part" in name for name in names) == parts


def test_a_whole_that_is_used_before():
    """What was written before the copy is overwritten by it, and what was read before is not the copy."""
    text = f"""
    {ROWS.format(name="joined", body=copy("A", 1), more="")}
    relax.func @main(%x: !relax.tensor<[2, 3], f32>) -> !relax.object impure {{
      %s = relax.shape [2, 6]
      %c = relax.constant dense<1.0> : tensor<f32>
      %a = relax.exp %x
      %w = relax.full %s, %c
      %before = relax.sum %w
      %after = relax.call_tir_inplace @joined(%a, %x, %w) inplace [2] : !relax.tensor<[2, 6], f32>
      %r = relax.tuple(%before, %after)
      relax.return %r
    }}
    """
    x = np.random.default_rng(0).random((2, 3), np.float32)
    check_pass(prepared(parse_module(text)), "write-parts-in-place", [[x]])
    run_in_turn(text, "main", [x])


def test_two_results_of_one_block():
    """A block that copies one result and computes another is not left out."""
    stores = "%e = math.exp %xA : f32 tir.store %e, %E[%viA, %vjA]"
    more = ", %E: !tir.buffer<[2, 3], f32>"
    text = f"""
    {ROWS.format(name="joined", body=copy("A", 0, stores), more=more)}
    relax.func @main(%x: !relax.tensor<[2, 3], f32>) -> !relax.object {{
      %a = relax.cumsum %x axis = 0
      %w, %e = relax.call_tir @joined(%a, %x) : !relax.tensor<[2, 6], f32>, !relax.tensor<[2, 3], f32>
      %h = relax.strided_slice %w axes = [1] begin = [0] end = [3]
      %r = relax.tuple(%h, %e)
      relax.return %r
    }}
    """
    x = np.random.default_rng(0).random((2, 3), np.float32)
    check_pass(prepared(parse_module(text)), "write-parts-in-place", [[x]])
    run_in_turn(text, "main", [x])
