"""After any prefix of the default pipelines the text is a program: read back, it computes what the source computes."""

from __future__ import annotations

import numpy as np
import pytest

from lowering import build
from lowering.context import make_context
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToLLVMPass, RelaxToLLVMPlainPass
from lowering.registry import load_pass
from tests.support.programs import Tolerance, as_arguments, as_plain, assert_same, run_with_copies, runner
from vm_dialect import Executable, VirtualMachine

PROGRAMS = {
    # constants, a kernel by hand that is called as a function of the C library, views
    "kernels": """
tir.prim_func private @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = math.exp %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.object {
  %c = relax.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %0 = relax.add %x, %c
  %1 = relax.flatten %0
  %2 = relax.call_tir @exp(%1) : !relax.tensor<[2 * n], f32>
  %3 = relax.tuple(%2, %c)
  relax.return %3
}
""",
    # branches, loops, recursion through a closure, and names that the compiler has for itself
    "control": """
relax.func private @places[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %0 = relax.tanh %x
  relax.return %0
}
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %limit = relax.constant dense<3.0> : tensor<f32>
  %f = relax.closure (%y: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
    %0 = relax.add %y, %limit
    relax.return %0
  }
  %1 = relax.call_closure %f(%x)
  %sum = relax.sum %1
  %is_large = relax.greater %sum, %limit
  %2 = relax.if %is_large {
    %3 = relax.call @places(%1) : !relax.tensor<[n, 2], f32>
    relax.yield %3
  } else {
    relax.yield %1
  }
  relax.return %2
}
""",
    # sizes that data says, errors and printed values
    "data": """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.object impure {
  %flat = relax.flatten %x
  %0 = relax.unique %flat
  %1, %m = relax.match_cast %0 : !relax.tensor<[m], f32> binds [m]
  %2 = relax.exp %1
  %3 = relax.nonzero %x
  %shape = relax.shape_of %2
  %4 = relax.shape_to_tensor %shape
  %5 = relax.tensor_to_shape %4
  %6 = relax.reshape %2, %5
  %true = relax.constant dense<true> : tensor<i1>
  relax.assert %true, "{}"(%6)
  relax.print "{}"(%5)
  %7 = relax.tuple(%6, %3, %4)
  relax.return %7
}
""",
    # products, an epilogue, and a group that the program has made
    "groups": """
relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 3], f32> {
  %w = relax.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = relax.fused {
    %1 = relax.matmul %x, %w
    %2 = relax.nn.relu %1
    relax.yield %2
  }
  relax.return %0
}
""",
}

PIPELINES = {"relax-to-llvm": RelaxToLLVMPass, "relax-to-llvm-plain": RelaxToLLVMPlainPass}

CASES = [
    pytest.param(pipeline, program, marks=() if quick else pytest.mark.slow)
    for pipeline, program, quick in (
        ("relax-to-llvm", "kernels", True),
        ("relax-to-llvm", "control", False),
        ("relax-to-llvm", "groups", False),
        ("relax-to-llvm", "data", False),
        ("relax-to-llvm-plain", "kernels", False),
        ("relax-to-llvm-plain", "control", True),
        ("relax-to-llvm-plain", "groups", False),
    )
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("pipeline", "program"), CASES)
def test_the_text_after_each_pass_is_a_program(pipeline: str, program: str):
    module, context = parse_module(PROGRAMS[program]), make_context()
    x = np.linspace(-2, 2, 10, dtype=np.float32).reshape(5, 2)
    expected = run_with_copies(runner(module, "main", "interpret"), [x])
    before = str(module)
    for each in PIPELINES[pipeline].passes():
        each.apply(context, module)
        text = str(module)
        if text == before:
            continue
        before = text
        read = parse_module(text)
        assert str(read) == text, each.name
        assert_same(run_with_copies(runner(read, "main", "native"), [x]), expected, Tolerance(), f"after {each.name}")


def test_llvm_functions_are_native():
    module = parse_module(PROGRAMS["kernels"])
    RelaxToLLVMPass().apply(make_context(), module)
    with pytest.raises(InvalidModule, match="which bytecode does not call"):
        build(module, mode="bytecode")


def test_kernels_alone_do_not_say_what_can_be_called():
    module = parse_module(PROGRAMS["kernels"].partition("relax.func")[0].replace(" private", ""))
    load_pass("tir-to-llvm")().apply(make_context(), module)
    with pytest.raises(InvalidModule, match="before 'convert-tir-to-llvm'"):
        build(module)


def test_functions_of_several_levels_do_not_call_each_other():
    module, other = (
        parse_module(PROGRAMS["groups"]),
        parse_module("relax.func @other() -> !relax.tuple<> {\n  %0 = relax.tuple()\n  relax.return %0\n}"),
    )
    RelaxToLLVMPass().apply(make_context(), module)
    for op in list(other.ops):
        op.detach()
        module.body.block.add_op(op)
    with pytest.raises(InvalidModule, match="stands beside LLVM functions"):
        build(module)


def test_an_executable_of_llvm_text_is_saved_and_loaded():
    module = parse_module(PROGRAMS["kernels"])
    x = np.ones((2, 2), np.float32)
    expected = run_with_copies(runner(module, "main", "interpret"), [x])
    RelaxToLLVMPass().apply(make_context(), module)
    executable = build(parse_module(str(module)))
    loaded = VirtualMachine(Executable.from_bytes(executable.to_bytes()))["main"]
    got = run_with_copies(lambda *args: as_plain(loaded(*as_arguments(args))), [x])
    assert_same(got, expected, Tolerance(), "loaded")
