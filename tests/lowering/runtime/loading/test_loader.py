import ctypes
import gc
import sys
from pathlib import Path

import pytest

from lowering.llvm.binding import CodegenError
from lowering.llvm.compiler import CompileOptions, compile_object, emit_assembly, emit_llvm_ir
from lowering.runtime import loading
from lowering.runtime.loading import load_objects, object_symbols
from tir_dialect.target import Target

UNARY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def adder(name: str, amount: int) -> bytes:
    text = f"define i64 @{name}(i64 %x) {{ %r = add i64 %x, {amount} ret i64 %r }}"
    return compile_object(text, Target.host())


def test_many_objects_at_once_and_again():
    objects = [adder(f"add{i}", i) for i in range(20)]
    first, second = load_objects(objects), load_objects(objects)
    assert [UNARY(first.address(f"add{i}"))(100) for i in range(20)] == [100 + i for i in range(20)]
    del first
    gc.collect()
    assert UNARY(second.address("add7"))(1) == 8


def test_nothing_is_left_of_released_code():
    """A thousand libraries would leave eight megabytes in one linker."""
    code, kept = [adder("add5", 5)], []

    def load(count: int) -> int:
        kept.extend(load_objects(code) for _ in range(count // 100))
        for _ in range(count):
            load_objects(code)
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = load(200)
    assert load(1000) - before < 3 << 20
    assert all(UNARY(each.address("add5"))(1) == 6 for each in kept)


def test_objects_see_each_other_and_given_symbols():
    text = """
    declare i64 @add5(i64)
    declare i64 @given(i64)
    declare double @cos(double)
    define i64 @both(i64 %x) {
      %a = call i64 @add5(i64 %x)
      %b = call i64 @given(i64 %a)
      ret i64 %b
    }
    define double @f(double %x) { %r = call double @cos(double %x) ret double %r }"""
    given = UNARY(lambda x: x * 10)
    address = ctypes.cast(given, ctypes.c_void_p).value
    assert address is not None
    code = load_objects([compile_object(text, Target.host()), adder("add5", 5)], {"given": address}, keep_alive=given)
    assert UNARY(code.address("both"))(1) == 60
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(0.0) == 1.0


def test_the_symbol_table():
    text = "declare i64 @g(i64)\n@data = global i64 3\ndefine i64 @f(i64 %x) { %r = call i64 @g(i64 %x) ret i64 %r }"
    table = object_symbols(compile_object(text, Target.host()))
    assert set(table.defined) == {"f", "data"}
    assert "g" in table.undefined


def test_refusals():
    with pytest.raises(CodegenError, match="undefined symbols missing_a, missing_b: not in libc"):
        load_objects(
            [
                compile_object(
                    "declare void @missing_b()\ndeclare void @missing_a()\n"
                    "define void @f() { call void @missing_a() call void @missing_b() ret void }",
                    Target.host(),
                )
            ]
        )
    with pytest.raises(CodegenError, match="symbols twice are defined by more than one object"):
        load_objects([adder("twice", 1), adder("twice", 2)])
    with pytest.raises(KeyError, match='no function "h" in the loaded code, there are g'):
        load_objects([adder("g", 1)]).address("h")
    assert load_objects([]).symbols == {}


@pytest.mark.parametrize("cut", [0, 5, 63, 200, 500])
def test_damaged_objects(cut: int):
    with pytest.raises(CodegenError, match=r"ELF object|cannot link"):
        load_objects([adder("f", 1)[:cut]])


def test_other_targets_and_outputs():
    text = "define <8 x float> @f(<8 x float> %x, <8 x float> %y) { %r = fadd <8 x float> %x, %y ret <8 x float> %r }"
    assert "fadd" in emit_assembly(text, Target.parse("neoverse-n1"))
    assert "%ymm" in emit_assembly(text, Target.parse("x86-64-v3"))
    assert "%ymm" not in emit_assembly(text, Target.parse("x86-64"))
    assert 'target triple = "aarch64' in emit_llvm_ir(text, Target.parse("cortex-a72"))
    with pytest.raises(CodegenError, match="no code generator for mars-unknown"):
        emit_assembly(text, Target("mars-unknown", "rover"))


def test_optimisation_is_asked_for():
    text = "define i64 @f(i64 %x) { %a = add i64 %x, 1 %b = sub i64 %a, 1 ret i64 %b }"
    assert "add i64" in emit_llvm_ir(text, Target.host())
    assert "add i64" not in emit_llvm_ir(text, Target.host(), CompileOptions())
    assert "add i64" in emit_llvm_ir(text, Target.host(), CompileOptions(opt_level=0))


PARALLEL = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @body(ptr %count) {
  %n = call i32 @omp_get_num_threads()
  %t = call i32 @omp_get_thread_num()
  %old = atomicrmw add ptr %count, i32 1 seq_cst
  %cell = getelementptr i32, ptr %count, i32 1
  %old1 = atomicrmw max ptr %cell, i32 %n seq_cst
  ret void
}
define void @f(ptr %count, i32 %threads) {
  call void @GOMP_parallel(ptr @body, ptr %count, i32 %threads, i32 0)
  ret void
}"""


def run_parallel(threads: int) -> list[int]:
    code = load_objects([compile_object(PARALLEL, Target.host())])
    count = (ctypes.c_int32 * 2)(0, 0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("f"))(count, threads)
    return list(count)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallel_regions(threads: int):
    calls, team = run_parallel(threads)
    assert calls == team
    assert 1 <= team <= threads


def test_without_openmp_one_thread_runs_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(loading, "_OPENMP_LIBRARIES", ("libnowhere.so",))
    loading.openmp_library.cache_clear()
    loading.library_symbol.cache_clear()
    try:
        assert run_parallel(4) == [1, 1]
        assert run_parallel(4) == [1, 1]
        assert capsys.readouterr().err.count("no OpenMP run time") == 1
    finally:
        monkeypatch.undo()
        loading.openmp_library.cache_clear()
        loading.library_symbol.cache_clear()


def test_importing_is_light():
    import subprocess

    probe = "import sys, lowering.llvm.compiler; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
