"""Ops on values of unknown rank or dtype: compiled when the values are there, in every mode."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.deferred import DeferredFunction
from lowering.parsing import parse_module
from lowering.relax.unknown_types import Options
from tests.support.programs import MODES, Tolerance, run_in_turn, runner
from tir_dialect.target import Target
from vm_dialect import Executable, VirtualMachine
from vm_dialect.tensors import from_numpy

ANY = "!relax.tensor<*, _>"
CHAIN = f"""
relax.func @main(%x: {ANY}, %y: {ANY}) -> {ANY} {{
  %z = relax.add %x, %y
  %w = relax.multiply %z, %z
  relax.return %w
}}
"""
MODE = pytest.mark.parametrize("mode", MODES)


def arange(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize(
    "shapes", [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((0, 2), (2,))], ids=str
)
def test_one_program_for_all_ranks_and_dtypes(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str):
    x, y = arange(*shapes[0], dtype=dtype), arange(*shapes[1], dtype=dtype)
    result = run_in_turn(CHAIN, "main", [x, y], Tolerance(0, 0))
    np.testing.assert_array_equal(result, (x + y) * (x + y))


@MODE
def test_errors_name_function_and_op(mode: str):
    run = runner(parse_module(CHAIN), "main", mode)
    with pytest.raises(
        TypeError, match=r"main: 'relax.add' op expected operands of one dtype, got f32 and i64.*<text>:3:3"
    ):
        run(arange(2), arange(2, dtype="int64"))
    with pytest.raises(ValueError, match=r"main: .*broadcast.* at <text>:3:3"):
        run(arange(2), arange(3))


@pytest.mark.slow
def test_ranks_that_follow_from_dimensions():
    program = f"""
      relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>, %y: {ANY}) -> !relax.tensor<*, f32> {{
        %s = relax.squeeze %x
        %t = relax.shape_of %s
        %r = relax.reshape %y, %t
        %z = relax.add %s, %r
        relax.return %z
      }}
    """
    for shape in ((1, 3), (3, 1), (1, 1), (2, 3)):
        x = arange(*shape)
        result = run_in_turn(program, "main", [x, x.reshape(-1)])
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, (x + x).squeeze())


def test_symbols_and_bounds_of_the_surroundings():
    program = """
      relax.func @main[%n in [2, 9]](%k: !relax.prim<i64, n>, %x: !relax.tensor<*, f32>) -> !relax.tensor<[n, n], f32> {
        %s = relax.shape [n, n]
        %r = relax.reshape %x, %s
        %y = relax.permute_dims %r
        relax.return %y
      }
    """
    x = arange(9)
    np.testing.assert_array_equal(run_in_turn(program, "main", [3, x]), x.reshape(3, 3).T)


@pytest.mark.sampled(2)
@MODE
def test_a_result_is_what_a_cast_says(mode: str):
    program = f"""
      relax.func @main(%x: {ANY}) -> !relax.tensor<[2, _], f32> {{
        %y = relax.abs %x
        %z = relax.match_cast %y : !relax.tensor<[2, _], f32>
        relax.return %z
      }}
    """
    run = runner(parse_module(program), "main", mode)
    np.testing.assert_array_equal(run(arange(2, 3)), arange(2, 3))
    with pytest.raises(ValueError, match=r"main: match_cast at <text>:4:9 dimension 0: expected 2, got 3"):
        run(arange(3, 3))
    with pytest.raises(TypeError, match="rank 2"):
        run(arange(3))
    with pytest.raises(TypeError, match=r"float32.*int8"):
        run(arange(2, 2, dtype="int8"))


FLOW = f"""
relax.func @main(%c: !relax.prim<i1>, %x: {ANY}, %t: !relax.tuple<{ANY}, !relax.object>) -> !relax.object {{
  %f = relax.tuple_get %t[0]
  %o = relax.tuple_get %t[1]
  %u = relax.match_cast %o : {ANY}
  %r = relax.if %c {{
    %0 = relax.add %x, %f
    relax.yield %0
  }} else {{
    %0 = relax.flatten %u
    relax.yield %0
  }}
  %twice = relax.closure (%y: {ANY}) -> {ANY} {{
    %0 = relax.add %y, %y
    relax.return %0
  }}
  %d = relax.call_closure %twice(%r)
  %e = relax.call @negate(%d) : {ANY}
  %zero = relax.prim 0
  %three = relax.prim 3
  %l = relax.for %i = %zero to %three (%v: {ANY} = %e) {{
    %0 = relax.expand_dims %v axes = [0]
    relax.yield %0
  }}
  relax.return %l
}}
relax.func private @negate(%x: {ANY}) -> {ANY} {{
  %y = relax.negative %x
  relax.return %y
}}
"""


def test_control_flow_and_calls():
    x, f, u = arange(2, 3), arange(3), arange(2, 2, dtype="int64")
    then = run_in_turn(FLOW, "main", [True, x, (f, u)])
    other = run_in_turn(FLOW, "main", [False, x, (f, u)])
    np.testing.assert_array_equal(then, (-2 * (x + f))[None, None, None])
    np.testing.assert_array_equal(other, (-2 * u.reshape(-1))[None, None, None])


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_saved_executable_compiles_when_it_runs(tmp_path: Path, mode: str):
    executable = build(parse_module(CHAIN), mode="native" if mode == "native" else "bytecode")
    executable.save(tmp_path / "chain.vm")
    machine = VirtualMachine(Executable.load(tmp_path / "chain.vm"))
    x = arange(2, 2)
    np.testing.assert_array_equal(np.from_dlpack(machine["main"](x, x)), (x + x) ** 2)


def test_each_combination_is_compiled_once():
    function = DeferredFunction(
        "relax.func @f(%x: !relax.tensor<*, _>) -> !relax.object {\n  %y = relax.abs %x\n  relax.return %y\n}"
    )
    one, two = tvm_ffi.from_dlpack(arange(3)), tvm_ffi.from_dlpack(arange(5))
    function([one])
    compiled = dict(function._compiled)
    function([two])
    assert function._compiled == compiled
    function([tvm_ffi.from_dlpack(arange(2, 2))])
    assert len(function._compiled) == 2


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_deferred_code_is_built_like_the_program(mode: str, monkeypatch: pytest.MonkeyPatch):
    """With its target and level, also if the executable was saved; by default the text says nothing of it."""
    from lowering.compiler import deferred as runtime

    seen: list[tuple[object, object]] = []

    def watched(module: ModuleOp, **options: object) -> Executable:
        seen.append((options["target"], options["opt_level"]))
        return build(module)

    monkeypatch.setattr(runtime, "build", watched)
    target = replace(Target.host(), vector_bits=128, vector_registers=8)
    for options, expected in (({}, (None, 3)), ({"target": target, "opt_level": 0}, (target, 0))):
        runtime.deferred_function.cache_clear()
        executable = Executable.from_bytes(build(parse_module(CHAIN), mode=mode, **options).to_bytes())
        VirtualMachine(executable)["main"](from_numpy(arange(2)), from_numpy(arange(2)))
        assert seen.pop() == expected


def test_threads_that_wait_for_code_do_not_make_it_again(monkeypatch: pytest.MonkeyPatch):
    from lowering.compiler import deferred as runtime

    built, waiting = list[ModuleOp](), threading.Barrier(4)

    def watched(module: ModuleOp, **options: object) -> Executable:
        built.append(module)
        time.sleep(0.1)  # while the others find that there is no code
        return build(module)

    monkeypatch.setattr(runtime, "build", watched)
    runtime.deferred_function.cache_clear()
    run, results = runner(parse_module(CHAIN), "main", "native"), list[object]()

    def work() -> None:
        waiting.wait()
        results.append(run(arange(3), arange(3)))

    made = runtime.DeferredFunction.__init__

    def slow(self: runtime.DeferredFunction, text: str) -> None:
        time.sleep(0.05)  # while the others look for the function, too
        made(self, text)

    monkeypatch.setattr(runtime.DeferredFunction, "__init__", slow)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(results, [(2 * arange(3)) ** 2] * 4)
    assert len(built) == 1


def test_deferred_code_for_another_machine_is_made_for_ours():
    other = Options.of("// built with O1 neoverse-n1\n")
    assert other == Options(None if Target.host().arch == "x86_64" else other.target, 1)
    assert Options.of("relax.func @f() {}") == Options(None, 3)
