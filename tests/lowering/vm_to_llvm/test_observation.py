"""Native code that tells of its calls: instruments and profiles, and that other code is as it was."""

import gc
import json
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.compiler.compilation import work_of
from lowering.compiler.peaks import machine_peaks
from lowering.parsing import parse_module
from lowering.runtime.loading import object_symbols
from relax_dialect.builder import BlockBuilder
from relax_dialect.builder import op as ops
from tests.support.programs import runner
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import Executable, VirtualMachine
from vm_dialect.profiler import Peaks
from vm_dialect.program import Site
from vm_dialect.tensors import to_numpy
from vm_dialect.thread import Decision

X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)

# Two kernels, the first of which writes into a storage, a packed function and a branch.
TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[n], f32> impure {
  %w = relax.constant dense<0.5> : tensor<8x8xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.nn.softmax %0
  %2 = relax.sum %1 axes = [1]
  %3 = relax.call_packed "test.observed"(%2) : !relax.tensor<[n], f32>
  %4 = relax.if %c {
    %5 = relax.exp %3
    relax.yield %5
  } else {
    relax.yield %3
  }
  relax.return %4
}
"""


@pytest.fixture(autouse=True)
def packed() -> None:
    tvm_ffi.register_global_func("test.observed", lambda x: x, override=True)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return build(parse_module(TEXT), instrument=True)


class Log:
    """An instrument that keeps what it sees."""

    def __init__(self, skipped: str = "") -> None:
        self.calls: list[tuple[str, list[Any]]] = []
        self.results: list[tuple[str, list[Any], Any]] = []
        self.skipped = skipped

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        self.calls.append((site.callee, list(map(_copied, arguments))))
        return Decision.SKIP if site.callee == self.skipped else Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        self.results.append((site.callee, list(map(_copied, arguments)), _copied(result)))


def _copied(value: Any) -> Any:
    return to_numpy(value).copy() if isinstance(value, tvm_ffi.Tensor) else value


def test_an_instrument_sees_kernels_and_packed_functions(executable: Executable):
    machine, log = VirtualMachine(executable), Log()
    expected = runner(parse_module(TEXT), "main", "interpret")(X, np.array(True))
    with machine.instrumented(log):
        found = to_numpy(machine["main"](X, np.array(True)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert [name for name, _ in log.calls] == [name for name, _, _ in log.results]
    assert any(name.startswith("matmul") or "matmul" in name for name, _ in log.calls)
    (_, arguments, result) = next(each for each in log.results if each[0] == "test.observed")
    np.testing.assert_allclose(arguments[0], 1, rtol=1e-5)
    np.testing.assert_allclose(result, arguments[0])
    _, given, nothing = log.results[0]
    assert nothing is None
    assert given[0] == 5
    np.testing.assert_allclose(given[-1], X @ np.full((8, 8), 0.5, np.float32), rtol=1e-5)
    before = len(log.calls)
    machine["main"](X, np.array(True))
    assert len(log.calls) == before, "nobody watches any more"


def test_a_call_that_is_left_out_gives_null(executable: Executable):
    machine = VirtualMachine(executable)
    with machine.instrumented(Log("test.observed")), pytest.raises(TypeError, match="expected a tensor, got null"):
        machine["main"](X, np.array(True))
    np.testing.assert_allclose(to_numpy(machine["main"](X, np.array(False))), 1, rtol=1e-5)


def test_an_exception_of_an_instrument_ends_the_run(executable: Executable):
    class Broken(Log):
        def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
            raise LookupError(f"no {site.callee}")

    machine = VirtualMachine(executable)
    with machine.instrumented(Broken()), pytest.raises(LookupError, match=r"no .*matmul"):
        machine["main"](X, np.array(True))


def test_other_code_tells_nobody():
    made = build(parse_module(TEXT))
    names = {name for item in made.native for name in object_symbols(item.code).undefined}
    assert "vmrt_clock" not in names
    assert not any(b"vm.builtin.observe" in item.code for item in made.native)
    machine = VirtualMachine(made)
    for watch in (lambda: machine.set_instrument(Log()), lambda: machine.profile("main", X, np.array(True))):
        with pytest.raises(ValueError, match="build it with instrument=True, or with mode='bytecode'"):
            watch()


def test_the_observer_keeps_nothing_alive(executable: Executable):
    machine = VirtualMachine(executable)
    function = machine["main"]
    gone = weakref.ref(machine)
    del machine
    gc.collect()
    assert gone() is None
    np.testing.assert_allclose(to_numpy(function(X, np.array(False))), 1, rtol=1e-5)


def test_libraries_are_not_built_so(executable: Executable, tmp_path: Any):
    with pytest.raises(ValueError, match=r"vm.builtin.observe .*: build it without instrument=True"):
        executable.export_library(tmp_path / "m.so")


PRODUCT = 2 * 5 * 64 * 32


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_profile_says_work_and_memory(mode: Any):
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 64), "w": (64, 32)}) as (x, w):
        bb.emit_func_output(ops.exp(ops.exp(x @ w) @ bb.const(np.ones((32, 4), np.float32))))
    machine = VirtualMachine(build(bb.get(), mode=mode, instrument=True))
    x, w = np.zeros((5, 64), np.float32), np.zeros((64, 32), np.float32)
    for _ in range(2):
        profile = machine.profile("main", x, w, peaks=Peaks(100, 10))
    kernels = [row for row in profile.rows if row.flops is not None]
    assert sorted(row.flops or 0 for row in kernels) == [2 * 5 * 32 * 4 + 5 * 4, PRODUCT + 5 * 32]
    first = max(kernels, key=lambda row: row.flops or 0)
    assert first.bytes == 4 * (5 * 64 + 64 * 32 + 5 * 32)
    assert first.share_of(profile.peaks) == max(first.flops / 100, first.bytes / 10) / first.nanoseconds
    assert sum(row.nanoseconds for row in profile.rows) <= profile.nanoseconds
    shown = json.loads(profile.as_json())
    assert {row["flops"] for row in shown["calls"] if row["flops"]} == {row.flops for row in kernels}
    assert shown["peaks"] == {"gflops": 100, "gigabytes": 10}
    events = json.loads(profile.as_trace())["traceEvents"]
    assert len(events) == sum(row.calls for row in profile.rows)
    assert all(event["ph"] == "X" and event["ts"] >= 0 for event in events)
    assert "roof: share of what this machine can do: 100 GFLOP/s (f32), 10 GB/s" in profile.as_text()


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_work_may_be_any_expression_of_any_names(mode: Any):
    # Pooled sizes are quotients, joined ones differences; a keyword and `a.b` are names of sizes too.
    text = """
    relax.func @main[%for, %a.b](%x: !relax.tensor<[1, 3, for, a.b], f32>, %y: !relax.tensor<[for + 2], f32>)
        -> !relax.tensor<[_, _, _, _], f32> {
      %0 = relax.nn.max_pool2d %x pool_size = [3, 3] strides = [2, 2] ceil_mode
      %1 = relax.nn.avg_pool2d %0 pool_size = [2, 2] strides = [2, 2]
      relax.return %1
    }
    """
    x, y = np.ones((1, 3, 9, 7), np.float32), np.ones(11, np.float32)
    profile = VirtualMachine(build(parse_module(text), mode=mode, instrument=True)).profile("main", x, y)
    assert [row.flops for row in profile.rows if row.flops is not None]


def test_layers_are_those_of_the_source():
    module = parse_module(TEXT, "model.mlir")
    machine = VirtualMachine(build(module, instrument=True))
    profile = machine.profile("main", X, np.array(True))
    assert {row.site.location for row in profile.layers} == {row.site.location for row in profile.rows}
    assert all("model.mlir:" in row.site.location for row in profile.layers)
    assert "layer" in profile.as_text()


def test_work_is_that_of_the_loops():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n, 4], f32>, %Y: !tir.buffer<[n], f32>) {
      tir.for (%i, %k) in (%n, 4) {
        tir.block "sum" (%vi = spatial %i in %n, %vk = reduce %k in %four) {
          tir.init {
            %zero = arith.constant 0.0 : f32
            tir.store %zero, %Y[%vi]
          }
          %y = tir.load %Y[%vi]
          %x = tir.load %X[%vi, %vk]
          %square = arith.mulf %x, %x : f32
          %sum = arith.addf %y, %square : f32
          tir.store %sum, %Y[%vi]
        }
      }
    }
    """.replace("tir.for (%i, %k)", "%four = arith.constant 4 : index\n      tir.for (%i, %k)")
    (function,) = parse_module(text).ops
    assert isinstance(function, PrimFuncOp)
    assert str(work_of(function)) == "8 * n"


def test_peaks_are_plausible():
    peaks = machine_peaks()
    assert peaks is machine_peaks()
    assert 0.1 < peaks.gflops < 1e5
    assert 0.1 < peaks.gigabytes < 1e5
