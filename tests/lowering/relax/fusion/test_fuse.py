"""Fused programs compute what they computed before, exactly, with fewer kernels."""

import numpy as np
import pytest
from hypothesis import given
from xdsl.dialects.builtin import ModuleOp

from lowering.locations import names
from lowering.parsing import parse_module
from relax_dialect.builder.emitter import as_dtype
from relax_dialect.ops.call_tir import CallTIROp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import check_pass, run_in_turn, run_pipeline
from tests.support.sweeps import examples
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp

PREPARE = "lambda-lift,bind-unknown-dims,insert-guards,legalize-ops"
FUSE = "fuse-ops,fuse-tir"

PROGRAMS = {
    "elementwise": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3], f32>)",
        "%0 = relax.add %x, %y %1 = relax.exp %0 %2 = relax.multiply %1, %0 %r = relax.negative %2",
        1,
    ),
    "epilogue": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3, 3], f32>)",
        "%0 = relax.matmul %x, %y %1 = relax.add %0, %x %2 = relax.nn.relu %1 %r = relax.tanh %2",
        1,
    ),
    "transposed": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 3], f32>)",
        "%0 = relax.permute_dims %y %1 = relax.matmul %x, %0 %r = relax.nn.relu %1",
        1,
    ),
    "softmax": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 1], f32>)",
        "%0 = relax.multiply %x, %y %1 = relax.nn.softmax %0 axis = -1 %r = relax.exp %1",
        1,
    ),
    "reduced": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3], f32>)",
        "%0 = relax.exp %x %1 = relax.sum %0 axes = [0] %2 = relax.multiply %1, %y %r = relax.sqrt %2",
        1,
    ),
    "rearranged": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 3], f32>)",
        "%0 = relax.add %x, %y %1 = relax.repeat %0 repeats = 2 axis = 0 "
        "%2 = relax.permute_dims %1 %r = relax.negative %2",
        1,
    ),
    "repeated": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3], f32>)",
        "%0 = relax.add %x, %y %1 = relax.repeat %0 repeats = 2 axis = 1 %r = relax.negative %1",
        1,
    ),
    "expensive and broadcast": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 1], f32>)",
        "%0 = relax.exp %y %r = relax.add %x, %0",
        1,
    ),
    "expressions": (
        "[%n](%x: !relax.tensor<[2 * n], f32>, %y: !relax.tensor<[2 * n], f32>)",
        "%0 = relax.add %x, %y %1 = relax.strided_slice %0 axes = [0] begin = [n] end = [2 * n] %r = relax.exp %1",
        1,
    ),
    "used elsewhere": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3], f32>)",
        "%0 = relax.add %x, %y %1 = relax.exp %0 %r = relax.tuple(%0, %1)",
        2,
    ),
    "half": (
        "[%n](%x: !relax.tensor<[n, 3], f16>, %y: !relax.tensor<[3], f16>)",
        "%0 = relax.add %x, %y %1 = relax.multiply %0, %0 %2 = relax.astype %1 dtype = f32 %r = relax.exp %2",
        1,
    ),
    "joined": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 3], f32>)",
        "%0 = relax.exp %x %1 = relax.add %x, %y %2 = relax.permute_dims %y %3 = relax.permute_dims %2 "
        "%r = relax.concat %0, %1, %3 axis = 1",
        1,
    ),
    "rotated": (
        "[%n](%x: !relax.tensor<[2 * n], f32>, %y: !relax.tensor<[2 * n], f32>)",
        "%0, %1 = relax.split %x sections = 2 axis = 0 %2, %3 = relax.split %y sections = 2 axis = 0 "
        "%4 = relax.multiply %0, %2 %5 = relax.multiply %1, %3 %6 = relax.subtract %4, %5 %7 = relax.multiply %1, %2 "
        "%8 = relax.multiply %0, %3 %9 = relax.add %7, %8 %r = relax.concat %6, %9 axis = 0",
        1,
    ),
    "stacked": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 3], f32>)",
        "%0 = relax.exp %x %1 = relax.negative %y %2 = relax.stack %0, %1, %0 axis = 1 %r = relax.tanh %2",
        2,
    ),
    "numbers": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3, 3], f32>)",
        "%c = relax.constant dense<-0.5> : tensor<1x1xf32> %z = relax.constant dense<0.0> : tensor<f32> "
        "%0 = relax.matmul %x, %y %1 = relax.add %0, %c %r = relax.maximum %1, %z",
        1,
    ),
    "several results": (
        "[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[3], f32>)",
        "%0, %1, %2 = relax.split %x sections = 3 axis = 1 %3 = relax.add %0, %2 %4 = relax.multiply %3, %1 "
        "%r = relax.add %4, %y",
        1,
    ),
}


def program(head: str, body: str) -> str:
    return f"relax.func @main{head} -> !relax.object {{ {body} relax.return %r }}"


def arguments(head: str, n: int) -> list[np.ndarray]:
    shapes = {"[n, 3]": (n, 3), "[3]": (3,), "[3, 3]": (3, 3), "[n, 1]": (n, 1), "[2 * n]": (2 * n,)}
    rng = np.random.default_rng(n)
    found = [part.partition("]")[0] + "]" for part in head.split("tensor<")[1:]]
    dtype = np.float16 if "f16" in head else np.float32
    return [rng.random(shapes[shape]).astype(dtype) for shape in found]


def kernels(module: ModuleOp) -> list[PrimFuncOp]:
    return [op for op in module.ops if isinstance(op, PrimFuncOp)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("head", "body", "count"), PROGRAMS.values(), ids=PROGRAMS)
def test_values_stay_in_one_kernel(head: str, body: str, count: int):
    module = parse_module(program(head, body))
    inputs = [arguments(head, n) for n in (0, 1, 4)]
    run_pipeline(module, PREPARE)
    check_pass(module, "fuse-ops", inputs)
    fused = check_pass(module, FUSE, inputs)
    assert len(kernels(fused)) == count
    assert len([op for op in fused.walk() if isinstance(op, CallTIROp)]) == count


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("head", "body", "count"), PROGRAMS.values(), ids=PROGRAMS)
def test_fused_kernels_compile(head: str, body: str, count: int):
    module = parse_module(program(head, body))
    run_pipeline(module, f"{PREPARE},{FUSE}")
    run_in_turn(module, "main", arguments(head, 5))


def test_checks_of_sizes_are_not_between():
    """Rows and columns: the length of each has to be positive, which is asked for before both."""
    axes = [
        f'{result} = relax.image.resize1d {x} axis = {axis} length = 2 * {length} method = "nearest_neighbor" '
        for result, x, axis, length in (("%0", "%x", 0, "n"), ("%1", "%0", 1, "m"))
    ]
    body = f"%r = relax.dataflow {{ {''.join(axes)} relax.output %1 }}"
    module = parse_module(program("[%n, %m](%x: !relax.tensor<[n, m], f32>)", body))
    run_pipeline(module, f"{PREPARE},{FUSE}")
    assert len(kernels(module)) == 1
    result = run_in_turn(module, "main", [np.arange(6, dtype=np.float32).reshape(2, 3)])
    np.testing.assert_array_equal(np.asarray(result), np.arange(6).reshape(2, 3).repeat(2, 0).repeat(2, 1))


@pytest.mark.slow
@given(programs(ALL.without("unknown_rank")))
@examples(8)
def test_random_programs_stay(program: Program):
    module = program.module.clone()
    run_pipeline(module, PREPARE)
    check_pass(module, FUSE, [program.inputs], entry=program.entry)


def test_a_long_chain_is_one_block():
    steps = " ".join(f"%{i + 1} = relax.add %{i}, %x" for i in range(200))
    module = parse_module(
        program("[%n](%x: !relax.tensor<[n], f32>)", f"%0 = relax.exp %x {steps} %r = relax.exp %200")
    )
    run_pipeline(module, f"{PREPARE},{FUSE}")
    (kernel,) = kernels(module)
    assert not [op for op in kernel.walk() if isinstance(op, AllocBufferOp)]
    assert len([op for op in kernel.walk() if op.name == "tir.load"]) == 1


def test_equal_groups_share_a_kernel():
    layer = "%a{0} = relax.matmul %{0}, %w %b{0} = relax.add %a{0}, %y %{1} = relax.nn.relu %b{0} "
    body = "%0 = relax.nn.relu %x " + "".join(layer.format(i, i + 1) for i in range(4)) + "%r = relax.exp %4"
    module = parse_module(
        program(
            "[%m](%x: !relax.tensor<[m, 4], f32>, %w: !relax.tensor<[4, 4], f32>, %y: !relax.tensor<[4], f32>)", body
        )
    )
    run_pipeline(module, f"{PREPARE},{FUSE}")
    assert sorted(kernel.sym_name.data for kernel in kernels(module)) == [
        "fused_matmul_add_nn_relu",
        "fused_matmul_add_nn_relu_exp",
        "nn_relu",
    ]


def test_names_of_layers_stay():
    module = parse_module(
        """
        relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
          %0 = relax.exp %x loc("first")
          %1 = relax.negative %0 loc("second")
          relax.return %1
        }
        """
    )
    run_pipeline(module, f"{PREPARE},{FUSE}")
    (call,) = [op for op in module.walk() if isinstance(op, CallTIROp)]
    assert names(call.location) == ("first", "second")


def test_no_call_passes_an_effect():
    module = parse_module(
        """
        relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
          %0 = relax.exp %x
          relax.call_packed "changes"(%x)
          %1 = relax.negative %0
          relax.return %1
        }
        """
    )
    run_pipeline(module, f"{PREPARE},{FUSE}")
    assert len(kernels(module)) == 2


KINDS = {"f16": "1.5", "bf16": "1.5", "f64": "-0.0", "i1": "true", "i8": "-3", "ui8": "200", "i64": "-7", "ui64": "9"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("dtype", "number"), KINDS.items(), ids=KINDS)
def test_a_constant_of_one_element_is_no_argument(dtype: str, number: str):
    step = "logical_xor" if dtype == "i1" else "add"
    text = f"""
    relax.func @main[%n](%x: !relax.tensor<[n], {dtype}>) -> !relax.tensor<[n], {dtype}> {{
      %c = relax.constant dense<{number}> : tensor<1x{dtype}>
      %0 = relax.{step} %x, %c
      %1 = relax.{step} %0, %x
      relax.return %1
    }}
    """
    module = parse_module(text)
    run_pipeline(module, f"{PREPARE},{FUSE}")
    (kernel,) = kernels(module)
    assert len(kernel.params) == 2
    assert "relax.constant" not in str(module)
    run_in_turn(text, "main", [np.arange(5).astype(numpy_dtype(as_dtype(dtype)))])


def test_kernels_with_other_numbers_are_shared():
    """Minus zero is another number."""
    text = """
    relax.func @main(%x: !relax.tensor<[4, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[4, 4], f32> {
      %half = relax.constant dense<0.5> : tensor<f32>
      %zero = relax.constant dense<0.0> : tensor<f32>
      %0 = relax.matmul %x, %w
      %1 = relax.multiply %0, %half
      %2 = relax.add %1, %zero
      %minus = relax.constant dense<-0.0> : tensor<f32>
      %3 = relax.matmul %2, %w
      %4 = relax.multiply %3, %half
      %5 = relax.add %4, %minus
      relax.return %5
    }
    """
    module = parse_module(text)
    run_pipeline(module, f"{PREPARE},{FUSE}")
    (kernel,) = kernels(module)
    assert len(kernel.params) == 4, "the number that differs is an argument"
    rng = np.random.default_rng(0)
    run_in_turn(text, "main", [rng.random((4, 4), np.float32) for _ in range(2)])
