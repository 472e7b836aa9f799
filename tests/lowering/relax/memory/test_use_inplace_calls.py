"""Results in the memory of operands: the same values bit for bit, in less memory."""

import numpy as np
import pytest
from hypothesis import given
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from lowering.relax.memory.plan_memory import memory_report
from lowering.relax.memory.use_inplace_calls import IN_PLACE
from relax_dialect.ops.memory import CallKernelOp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples

PREPARE = "lambda-lift,bind-unknown-dims,insert-guards,legalize-ops,to-non-dataflow,lower-call-tir"


def prepared(module: ModuleOp) -> ModuleOp:
    """Kernel by kernel, with destinations."""
    run_pipeline(module, PREPARE)
    return module


@given(programs(ALL.without("unknown_rank", "unknown_dtype")))
@examples(7)
def test_random_programs(program: Program):
    check_pass(prepared(program.module.clone()), "use-inplace-calls", [program.inputs], entry=program.entry)


HEAD = "relax.func @main[%n](%x: !relax.tensor<[n, 3], f32>) -> !relax.object"
PROGRAMS = {
    "chain": ("%0 = relax.exp %x %1 = relax.sin %0 %r = relax.add %1, %x", 2),
    "view": (
        "%0 = relax.exp %x %1 = relax.flatten %0 %2 = relax.sin %1 %s = relax.shape [n, 3] %3 = relax.reshape %2, %s "
        "%r = relax.multiply %3, %x",
        2,
    ),
    "the view is read too": (
        "%0 = relax.exp %x %1 = relax.flatten %0 %s = relax.shape [n, 3] %2 = relax.reshape %1, %s "
        "%r = relax.multiply %0, %2",
        0,
    ),
    "returned": ("%0 = relax.exp %x %1 = relax.sin %0 %r = relax.tuple(%0, %1)", 0),
    "broadcast": ("%0 = relax.sum %x axes = [1] keepdims %1 = relax.exp %x %r = relax.subtract %1, %0", 1),
    "grown": ("%0 = relax.sum %x axes = [1] keepdims %r = relax.subtract %0, %x", 0),
    "converted": ("%0 = relax.exp %x %1 = relax.astype %0 dtype = f64 %r = relax.sin %1", 1),
    "turned": ("%0 = relax.exp %x %r = relax.flip %0 axis = 0", 0),
    "branch": (
        "%0 = relax.exp %x %c = relax.constant dense<true> : tensor<i1> "
        "%1 = relax.if %c { %2 = relax.sin %0 %3 = relax.cos %2 relax.yield %3 } else { relax.yield %0 } "
        "%r = relax.add %1, %x",
        1,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("body", "count"), PROGRAMS.values(), ids=PROGRAMS)
def test_who_shares(body: str, count: int):
    x = np.random.default_rng(0).random((5, 3), np.float32)
    module = prepared(parse_module(f"{HEAD} {{ {body} relax.return %r }}"))
    reused = check_pass(module, "use-inplace-calls", [[x], [x[:0]]])
    assert sum(IN_PLACE in op.attributes for op in reused.walk()) == count


def test_compiled():
    """A value that is read again is kept, and so is the argument."""
    text = f"""{HEAD} {{
      %0 = relax.cumsum %x axis = 0
      %1 = relax.sin %0
      %2 = relax.cumsum %1 axis = 0
      %3 = relax.multiply %2, %1
      %4 = relax.cumsum %3 axis = 0
      %5 = relax.exp %4
      relax.return %5
    }}"""
    run_in_turn(text, "main", [np.random.default_rng(0).random((5, 3), np.float32)])
    assert memory_report(parse_module(text))["main"].reused == 3


ADDED = {
    "matmul": (
        "[%m, %k, %n](%x: !relax.tensor<[m, k], f32>, %w: !relax.tensor<[k, n], f32>, %r: !relax.tensor<[m, n], f32>",
        "relax.matmul %x, %w",
        [[(m, k), (k, n), (m, n)] for m, k, n in ((1, 300, 19), (33, 70, 65))],
    ),
    "convolution": (
        "[%m, %k, %n](%x: !relax.tensor<[m, 2, k, n, 16], f32>, %w: !relax.tensor<[3, 2, 3, 3, 16, 16], f32>, "
        "%r: !relax.tensor<[m, 3, k, n, 16], f32>",
        'relax.nn.conv2d %x, %w padding = [1, 1, 1, 1] data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"',
        [[(m, 2, k, n, 16), (3, 2, 3, 3, 16, 16), (m, 3, k, n, 16)] for m, k, n in ((1, 1, 2), (2, 5, 17))],
    ),
    "convolution whose tiles overlap": (
        "[%m](%x: !relax.tensor<[m, 2, 26, 26, 16], f32>, %w: !relax.tensor<[3, 2, 1, 1, 16, 16], f32>, "
        "%r: !relax.tensor<[m, 3, 26, 26, 16], f32>",
        'relax.nn.conv2d %x, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"',
        [[(2, 2, 26, 26, 16), (3, 2, 1, 1, 16, 16), (2, 3, 26, 26, 16)]],
    ),
    "convolution of few filters": (
        "[%m, %k, %n](%x: !relax.tensor<[m, 2, k, n], f32>, %w: !relax.tensor<[3, 2, 3, 3], f32>, "
        "%r: !relax.tensor<[m, 3, k, n], f32>",
        "relax.nn.conv2d %x, %w padding = [1, 1, 1, 1]",
        [[(2, 2, 3, 19), (3, 2, 3, 3), (2, 3, 3, 19)]],
    ),
    "mean": (
        "[%m, %k](%x: !relax.tensor<[m, k], f32>, %w: !relax.tensor<[k], f32>, %r: !relax.tensor<[m, k], f32>",
        "relax.nn.layer_norm %x, %w, %w axes = [-1]",
        [[(m, k), (k,), (m, k)] for m, k in ((1, 3), (2, 257))],
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("parameters", "product", "shapes"), ADDED.values(), ids=ADDED)
def test_what_is_added_to_a_product(parameters: str, product: str, shapes: list[list[tuple[int, ...]]]):
    """The sums go to where the other operand is, which is read there once."""
    text = f"""relax.func @main{parameters}) -> !relax.object {{
      %s = relax.cumsum %r axis = 0
      %p = {product}
      %q = relax.add %p, %s
      %t = relax.nn.relu %q
      %u = relax.cumsum %t axis = 0
      relax.return %u
    }}"""
    rng = np.random.default_rng(0)
    inputs = [[rng.uniform(-1, 1, shape).astype(np.float32) for shape in each] for each in shapes]
    for each in inputs:
        run_in_turn(text, "main", each, Tolerance(1e-4, 1e-5))
    assert memory_report(parse_module(text))["main"].reused == 1


def test_report():
    """The sines are where the sums were."""
    text = """
    relax.func @main(%x: !relax.tensor<[256, 128], f32>, %w: !relax.tensor<[128, 128], f32>)
        -> !relax.tensor<[256], f32> {
      %0 = relax.matmul %x, %w
      %1 = relax.cumsum %0 axis = 0
      %2 = relax.sin %1
      %3 = relax.cumsum %2 axis = 0
      %4 = relax.max %3 axes = [1]
      relax.return %4
    }
    """
    report = memory_report(parse_module(text))["main"]
    assert report.reused == 1
    assert "1 result in the memory of an operand" in report.as_text()
    assert report.naive.constant_value == 4 * 256 * 128 * 4


STORES = {
    "read before": ("tir.store %s, %S[%v] tir.store %d, %D[%v]", 2),
    "read after the first store": ("tir.store %s, %S[%v] %a2 = tir.load %A[%v] tir.store %a2, %D[%v]", 2),
    "both read after": (
        "tir.store %s, %S[%v] %a2 = tir.load %A[%v] %b2 = tir.load %B[%v] "
        "%p = arith.mulf %a2, %b2 : f32 tir.store %p, %D[%v]",
        1,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("stores", "count"), STORES.values(), ids=STORES)
def test_two_results_of_one_block(stores: str, count: int):
    """A result takes the memory of an operand that the block does not read once it has stored that result."""
    buffers = ", ".join(f"%{name}: !tir.buffer<[n], f32>" for name in "ABSD")
    text = f"""
    tir.prim_func @both[%n]({buffers}) {{
      tir.for (%i) in (%n) {{
        tir.block "both" (%v = spatial %i in %n) {{
          %a = tir.load %A[%v]
          %b = tir.load %B[%v]
          %s = arith.addf %a, %b : f32
          %d = arith.subf %a, %b : f32
          {stores}
        }}
      }}
    }}
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {{
      %a = relax.cumsum %x axis = 0
      %b = relax.sort %x axis = 0
      %s, %d = relax.call_tir @both(%a, %b) : !relax.tensor<[n], f32>, !relax.tensor<[n], f32>
      %r = relax.tuple(%s, %d)
      relax.return %r
    }}
    """
    x = np.random.default_rng(0).random(5, np.float32)
    made = check_pass(prepared(parse_module(text)), "use-inplace-calls", [[x]])
    names = [op.callee.string_value() for op in made.walk() if isinstance(op, CallKernelOp)]
    assert sum(name.count("_inplace") for name in names) == count
    run_in_turn(text, "main", [x])


def test_an_element_that_is_written_twice():
    """The second time, the operand would be the result."""
    text = """
    tir.prim_func @twice[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
      %c2 = tir.dim 2
      tir.for (%t, %i) in (%c2, %n) {
        tir.block "twice" (%v = spatial %i in %n) {
          %a = tir.load %A[%v]
          %e = math.exp %a : f32
          tir.store %e, %B[%v]
        }
      }
    }
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
      %a = relax.cumsum %x axis = 0
      %b = relax.call_tir @twice(%a) : !relax.tensor<[n], f32>
      relax.return %b
    }
    """
    run_in_turn(text, "main", [np.random.default_rng(0).random(5, np.float32)])
