"""Routines: kernels share them, the cache keeps them one by one, and they are made again if it has lost one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from lowering.compiler import kernel_maker as routines_module
from lowering.compiler.kernel_maker import ROUTINE
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.emit import kernel as emit_routines
from lowering.kernels.emit.kernel import outside_modules
from lowering.kernels.schedule_cpu import schedule, schedule_module
from lowering.llvm.code_cache import CodeCache
from lowering.parsing import parse_module
from lowering.runtime.loading import object_symbols
from tir_dialect.interpreter.run import run_prim_func
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

PRODUCT = """
tir.prim_func @NAME[%m, %k](%A: !tir.buffer<[m, k], f32>, %B: !tir.buffer<[k, N], f32>, %C: !tir.buffer<[m, N], f32>) {
  %n = arith.constant N : index
  tir.for (%i, %j, %r) in (%m, %n, %k) {
    tir.block "product" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}"""
MACHINES = ("x86-64-v4", "x86-64-v3", "neoverse-n1")


def products(*widths: int) -> str:
    return "\n".join(PRODUCT.replace("NAME", f"f{width}").replace("N", str(width)) for width in widths)


def routines(kernels: Kernels) -> set[str]:
    return {symbol for symbol in kernels.objects if symbol.startswith(ROUTINE)}


def check(kernels: Kernels, width: int) -> None:
    for m, k in ((1, 5), (13, 70), (33, 130), (70, 3)):
        a, b = np.random.rand(m, k).astype("f4"), np.random.rand(k, width).astype("f4")
        c = np.full((m, width), np.nan, "f4")
        kernels.packed(f"f{width}")(*map(tvm_ffi.from_dlpack, (a, b, c)))
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of what has been compiled."""
    made: list[str] = []
    start: Callable[..., object] = routines_module.CodeMaker.start

    def count(self: object, text: str, key: str) -> object:
        made.append(key)
        return start(self, text, key)

    monkeypatch.setattr(routines_module.CodeMaker, "start", count)
    return made


@pytest.mark.slow
def test_kernels_share_their_micro_kernels(tmp_path: Path):
    cache = CodeCache(tmp_path)
    one, two = (compile_prim_funcs(parse_module(products(width)), cache=cache) for width in (96, 160))
    both = compile_prim_funcs(parse_module(products(96, 160)), cache=cache)
    kinds = {name.split(".")[2] for name in routines(one)}
    assert kinds - {"streamed"} == {"rows", "tile", "vector"}
    assert ("streamed" in kinds) is (Target.host().vector_bits >= 512)
    assert routines(both) == routines(one) == routines(two)
    for kernels, width in ((one, 96), (two, 160), (both, 96), (both, 160)):
        check(kernels, width)


def test_all_that_an_object_calls_is_among_the_objects(tmp_path: Path):
    for _ in range(2):  # made, and from the cache
        objects = compile_prim_funcs(parse_module(products(96)), cache=CodeCache(tmp_path)).objects
        called = {name for data in objects.values() for name in object_symbols(data).undefined}
        assert {name for name in called if name.startswith(ROUTINE)} <= objects.keys()


def test_a_routine_that_the_cache_has_lost_is_made_again(tmp_path: Path, lowered: list[str]):
    cache = CodeCache(tmp_path)
    compile_prim_funcs(parse_module(products(96)), cache=cache)
    _, first, *others = lowered
    lowered.clear()
    compile_prim_funcs(parse_module(products(96)), cache=cache)
    assert not lowered
    cache.drop(first)
    kernels = compile_prim_funcs(parse_module(products(96)), cache=cache)
    assert first in lowered
    assert not set(lowered[1:]) & set(others), "of the routines, only what was lost is made"
    check(kernels, 96)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [21, 13])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_function_without_a_module_has_the_code_itself(machine: str, rows: int):
    target = Target.parse(machine)
    module, alone = parse_module(products(96)), parse_module(products(96)).body.block.first_op
    assert isinstance(alone, PrimFuncOp)
    alone.detach()
    schedule_module(module, target)
    schedule(alone, target)
    module.verify()
    alone.verify()
    assert not any(isinstance(op, CallOp) for op in alone.walk())
    shared = module.body.block.first_op
    assert isinstance(shared, PrimFuncOp)
    assert any(isinstance(op, CallOp) for op in shared.walk())
    a, b = np.random.rand(rows, 9).astype("f4"), np.random.rand(9, 96).astype("f4")
    results = [np.full((rows, 96), np.nan, "f4") for _ in range(2)]
    for function, result in zip((shared, alone), results, strict=True):
        run_prim_func(function, [a, b, result])
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-5)


def test_routines_can_be_kept_out_of_modules():
    target, found = Target.host(), list[dict[str, PrimFuncOp]]()
    for _ in range(2):
        module = parse_module(products(96))
        with outside_modules() as routines:
            schedule_module(module, target)
        called = {op.callee.root_reference.data for op in module.walk() if isinstance(op, CallOp)}
        assert called == set(routines)
        assert len(list(module.ops)) == 1
        found.append(dict(routines))
    assert found[0] == found[1], "they are the same functions"
    module = parse_module(products(96))
    schedule_module(module, target)
    assert {op.sym_name.data for op in module.ops if isinstance(op, PrimFuncOp)} == {"f96", *found[0]}


def test_llvm_has_the_kernel_while_its_routines_are_written(monkeypatch: pytest.MonkeyPatch):
    """Neither its schedule nor its code needs more of them than their names."""
    order: list[str] = []
    function: Callable[..., PrimFuncOp] = emit_routines._function
    start: Callable[..., object] = routines_module.CodeMaker.start

    def write(routine: emit_routines.Routine) -> PrimFuncOp:
        order.append("routine")
        return function(routine)

    def begin(self: object, text: str, key: str) -> object:
        order.append("kernel" if "@relax.raise" in text else "routine's object")
        return start(self, text, key)

    monkeypatch.setattr(emit_routines, "_function", write)
    monkeypatch.setattr(routines_module.CodeMaker, "start", begin)
    count = len(routines(compile_prim_funcs(parse_module(products(96)), cache=CodeCache(None))))
    assert order == ["kernel", *["routine", "routine's object"] * count]


@pytest.mark.slow
def test_a_routine_that_has_been_changed_in_text_is_not_taken_from_the_cache(tmp_path: Path):
    cache = CodeCache(tmp_path)
    compile_prim_funcs(parse_module(products(96)), cache=cache)
    scheduled = parse_module(products(96))
    schedule_module(scheduled, Target.host())
    kernel, found, routine = str(scheduled).partition(f"tir.prim_func private @{ROUTINE}")
    assert found
    zero, one = "dense<0.000000e+00>", "dense<1.000000e+00>"
    assert zero in routine
    changed = parse_module(kernel + found + routine.replace(zero, one))
    a, b = np.random.rand(33, 130).astype("f4"), np.random.rand(130, 96).astype("f4")
    expected, got = np.empty((33, 96), "f4"), np.empty((33, 96), "f4")
    function = changed.body.block.first_op
    assert isinstance(function, PrimFuncOp)
    run_prim_func(function, [a, b, expected])
    assert not np.allclose(expected, a @ b, rtol=1e-5)
    compile_prim_funcs(changed, cache=cache).packed("f96")(*map(tvm_ffi.from_dlpack, (a, b, got)))
    np.testing.assert_allclose(got, expected, rtol=1e-5)
