"""Programs that share memory give what others give, bit for bit, and never read memory that holds no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.parsing import parse_module
from lowering.pipelines import PipelinePass, RelaxToVMPass, RelaxToVMPlainPass
from lowering.relax.memory.plan_memory import PlanMemoryPass, PoisonMemoryPass, memory_report
from relax_dialect.ops.memory import AllocTensorOp, StorageTensorOp
from tests.strategies.relax_programs import ALL, Program, programs
from tests.strategies.relax_regions import Features
from tests.support.programs import EXACT, as_arguments, as_plain, assert_same, run_with_copies
from tests.support.sweeps import examples
from vm_dialect import VirtualMachine

COMPILED = ALL.without("unknown_rank")


SHARING = frozenset(("hoist-branch-results", "write-parts-in-place", "use-inplace-calls", "plan-memory"))
"""The passes that let values share memory."""


def lowered(module: ModuleOp, *, planned: bool, pipeline: type[PipelinePass] = RelaxToVMPlainPass) -> ModuleOp:
    """A module for the machine: with poison where it is planned, or with its own memory for each tensor."""
    result = module.clone()
    for each in pipeline.passes():
        if planned or each.name not in SHARING:
            each.apply(Context(), result)
        if planned and isinstance(each, PlanMemoryPass):
            PoisonMemoryPass().apply(Context(), result)
    result.verify()
    return result


def run(module: ModuleOp, entry: str, args: Sequence[Any], mode: Any) -> object:
    machine = VirtualMachine(build(module, mode=mode))
    return run_with_copies(lambda *given: as_plain(machine[entry](*as_arguments(given))), args)[0]


def check(
    program: str | ModuleOp,
    args: Sequence[Any],
    entry: str = "main",
    runs: Sequence[tuple[type[PipelinePass], str]] = ((RelaxToVMPass, "native"), (RelaxToVMPlainPass, "bytecode")),
) -> object:
    """The result of the unplanned program, which the planned and poisoned one has to give too, fused or not."""
    module = parse_module(program) if isinstance(program, str) else program
    expected: object = None
    for pipeline, mode in runs:
        expected = run(lowered(module, planned=False, pipeline=pipeline), entry, args, "bytecode")
        poisoned = lowered(module, planned=True, pipeline=pipeline)
        assert_same(run(poisoned, entry, args, mode), expected, EXACT, mode)
    return expected


@given(programs(COMPILED))
@examples(5)
def test_random_programs(program: Program):
    check(program.module, program.inputs, program.entry, [(RelaxToVMPlainPass, "bytecode")])


@pytest.mark.slow
@given(programs(COMPILED))
@examples(50)
def test_many_random_programs(program: Program):
    check(program.module, program.inputs, program.entry)


MEMORY = Features(others=False).without("shapes", "recursion", "closures", "calls", "effects", "loops")


@pytest.mark.slow
@given(programs(MEMORY, statements=8))
@examples(5)
def test_random_programs_about_memory(program: Program):
    """Kernels of two results, scatters, parts, and producers that are not fused with what reads them."""
    check(program.module, program.inputs, program.entry, [(RelaxToVMPass, "bytecode")])


@pytest.mark.slow
@given(programs(MEMORY, statements=8))
@examples(100)
def test_many_random_programs_about_memory(program: Program):
    check(program.module, program.inputs, program.entry, [(RelaxToVMPass, "native")])


def _x(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


BRANCHES = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[n, 4], f32> {
  %a = relax.exp %x
  %s = relax.shape [4 * n]
  %flat = relax.reshape %a, %s
  %r = relax.if %c {
    %b = relax.negative %flat
    %t = relax.shape [n, 2, 2]
    %v = relax.reshape %b, %t
    %d = relax.exp %v
    %w = relax.reshape %d, %s
    %e = relax.add %w, %flat
    relax.yield %e
  } else {
    %b = relax.exp %flat
    %d = relax.sin %b
    %e = relax.multiply %d, %b
    relax.yield %e
  }
  %u = relax.shape [n, 4]
  %y = relax.reshape %r, %u
  %z = relax.add %y, %a
  %o = relax.negative %z
  relax.return %o
}
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("branch", [False, True])
def test_views_that_lead_into_branches(rows: int, branch: bool):
    """The class of TVM issue 20191: chains of reshapes before, in and after branches."""
    x = _x(rows, 4)
    result = check(BRANCHES, [x, np.array(branch)])
    a = np.exp(x)
    inner = np.exp(-a) + a if branch else np.sin(np.exp(a)) * np.exp(a)
    np.testing.assert_allclose(result, -(inner + a), rtol=1e-4, atol=1e-5)


ALIASES = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 4], f32> {
  %a = relax.exp %x
  %s = relax.shape [4 * n]
  %b, %m = relax.match_cast %a : !relax.tensor<[m, 4], f32> binds [m]
  %c = relax.negative %x
  %d = relax.sin %c
  %e = relax.add %b, %d
  %f = relax.cos %e
  %g = relax.add %f, %b
  relax.return %g
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_cast_keeps_memory_alive(rows: int):
    """The class of TVM issue 20190: the last use of a tensor is one of another name for it."""
    x = _x(rows, 4)
    a = np.exp(x)
    np.testing.assert_allclose(check(ALIASES, [x]), np.cos(a + np.sin(-x)) + a, rtol=1e-4, atol=1e-5)


SPLIT = """
relax.func @main(%x: !relax.tensor<[_, 6], f32>) -> !relax.tensor<[_, 2], f32> {
  %e = relax.exp %x
  %c, %n = relax.match_cast %e : !relax.tensor<[n, 6], f32> binds [n]
  %p, %q, %r = relax.split %c sections = 3 axis = 1
  %s = relax.multiply %p, %q
  %t = relax.sin %s
  %u = relax.add %t, %r
  %v = relax.add %u, %p
  relax.return %v
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_parts_of_a_cast(rows: int):
    """The class of TVM issue 20207: a tensor that is cast, then split."""
    x = _x(rows, 6)
    p, q, r = np.split(np.exp(x), 3, axis=1)
    np.testing.assert_allclose(check(SPLIT, [x]), np.sin(p * q) + r + p, rtol=1e-4, atol=1e-5)


CONCAT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[2 * n], f32> {
  %a = relax.exp %x
  %b = relax.sin %a
  %c = relax.concat %a, %b axis = 0
  %d = relax.add %a, %b
  %e = relax.concat %d, %a axis = 0
  %f = relax.multiply %c, %e
  relax.return %f
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [0, 1, 33])
def test_operands_of_concat_are_not_overwritten(size: int):
    """The class of TVM issue 19577: what is concatenated is used again."""
    x = _x(size)
    a, b = np.exp(x), np.sin(np.exp(x))
    expected = np.concatenate([a, b]) * np.concatenate([a + b, a])
    np.testing.assert_allclose(check(CONCAT, [x]), expected, rtol=1e-4, atol=1e-5)


BOUND = """
relax.func @main(%x: !relax.tensor<[_, _], f32>, %y: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  %e = relax.exp %x
  %c, %n, %m = relax.match_cast %e : !relax.tensor<[n, m], f32> binds [n, m]
  %s = relax.shape [n * m]
  %f = relax.reshape %c, %s
  %z = relax.match_cast %y : !relax.tensor<[n * m], f32>
  %g = relax.add %f, %z
  %h = relax.sin %g
  %i = relax.add %h, %f
  relax.return %i
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 5)])
def test_sizes_that_are_bound_on_the_way(shape: tuple[int, int]):
    """The class of TVM issue 20195: what a kernel needs is bound before the kernel is called."""
    x, y = _x(*shape), _x(shape[0] * shape[1])
    flat = np.exp(x).reshape(-1)
    np.testing.assert_allclose(check(BOUND, [x, y]), np.sin(flat + y) + flat, rtol=1e-4, atol=1e-5)


LOOP = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %k: !relax.prim<i64>) -> !relax.tensor<[n], f32> {
  %zero = relax.prim 0
  %one = relax.exp %x
  %r = relax.for %i = %zero to %k (%acc: !relax.tensor<[n], f32> = %x) {
    %a = relax.sin %acc
    %b = relax.cos %acc
    %c = relax.multiply %a, %b
    %d = relax.add %c, %one
    relax.yield %d
  }
  %y = relax.add %r, %one
  %z = relax.negative %y
  relax.return %z
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_loop_uses_what_was_made_before_it(rounds: int):
    x = _x(9)
    value = x
    for _ in range(rounds):
        value = np.sin(value) * np.cos(value) + np.exp(x)
    np.testing.assert_allclose(check(LOOP, [x, rounds]), -(value + np.exp(x)), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_arenas_are_shared():
    """A chain needs two positions; tensors of a dtype share memory with those of another."""
    module = parse_module(
        """
relax.func @main(%x: !relax.tensor<[1024], f32>) -> !relax.tensor<[1024], f32> {
  %a = relax.exp %x
  %b = relax.astype %a dtype = f64
  %c = relax.sin %b
  %d = relax.astype %c dtype = f16
  %e = relax.astype %d dtype = f32
  %f = relax.exp %e
  relax.return %f
}
relax.func @bounded[%n in [1, 64]](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %a = relax.exp %x
  %b = relax.sin %a
  %c = relax.exp %b
  %d = relax.sin %c
  relax.return %d
}
"""
    )
    report = memory_report(module, optimize=False)
    main, limited = report["main"], report["bounded"]
    assert main.planned.constant_value is not None
    assert main.live is not None
    assert main.naive.constant_value is not None
    assert main.live <= main.planned.constant_value <= 1.5 * main.live < main.naive.constant_value
    assert limited.planned.constant_value == 2 * 256
    assert "planned 512 B, naive" in report.as_text()
    check(module, [_x(1024)])
    for size in (1, 7, 64):
        check(module, [_x(size)], "bounded")


def test_poison_shows_what_reads_too_late():
    module = parse_module(ALIASES)
    for each in RelaxToVMPlainPass.passes():
        each.apply(Context(), module)
        if isinstance(each, PlanMemoryPass):
            break
    assert not any(isinstance(op, AllocTensorOp) and op.result.name_hint != "g" for op in module.walk())
    first, second = [op for op in module.walk() if isinstance(op, StorageTensorOp)][:2]
    second.properties["offset"] = first.offset
    PoisonMemoryPass().apply(Context(), module)
    result = run(module, "main", [_x(3, 4)], "bytecode")
    assert np.isnan(result).any()


def test_what_every_iteration_reads_keeps_its_memory():
    program = """
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %before = relax.exp %x
      %lo = relax.prim 0
      %hi = relax.prim 3
      %r = relax.for %i = %lo to %hi (%acc: !relax.tensor<[n], f32> = %x) {
        %0 = relax.negative %before
        %1 = relax.sin %0
        %2 = relax.cos %1
        %3 = relax.add %acc, %2
        relax.yield %3
      }
      relax.return %r
    }
    """
    x = np.float32([0.5, -1, 2])
    expected = x + 3 * np.cos(np.sin(-np.exp(x)))
    np.testing.assert_allclose(np.asarray(check(program, [x])), expected, rtol=1e-5)


@pytest.mark.parametrize(("length", "facts"), [(0, "n \\+ 4 = 4"), (1, "floordiv\\(n \\+ 1, 2\\) = 1")])
def test_what_has_no_size_is_told_before_the_arena_is_made(length: int, facts: str) -> None:
    program = """
    relax.func @main[%n](%x: !relax.tensor<[1, 4, n], f32>, %w: !relax.tensor<[6, 4, 5], f32>,
                         %v: !relax.tensor<[6, 6, 3], f32>) {
      %0 = relax.nn.conv1d %x, %w strides = [2] padding = [2, 2]
      %1 = relax.nn.conv1d %0, %v dilation = [2]
      %2 = relax.nn.softmax %1
      relax.return %2
    }"""
    args = [np.ones(shape, np.float32) for shape in ((1, 4, length), (6, 4, 5), (6, 6, 3))]
    for pipeline in (RelaxToVMPass, RelaxToVMPlainPass):
        with pytest.raises(ValueError, match=f"a window within the padded data.*: 5, {facts}"):
            run(lowered(parse_module(program), planned=True, pipeline=pipeline), "main", args, "bytecode")
