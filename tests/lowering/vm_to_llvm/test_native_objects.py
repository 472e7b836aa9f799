"""Objects of executables: wrapped kernels, saved native code, the run-time support."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import Float64Type, IntegerType, ModuleOp
from xdsl.dialects.llvm import LLVMPointerType, LLVMVoidType

from lowering import build
from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.runtime.loading import ObjectSymbols, load_objects, object_symbols
from lowering.vm_to_llvm.abi import RUNTIME
from lowering.vm_to_llvm.convert_vm_to_llvm import lower_functions
from lowering.vm_to_llvm.loading import load_executable, load_functions, runs_on
from lowering.vm_to_llvm.objects import function_code, function_options, wrapper_code
from lowering.vm_to_llvm.runtime_builder import ALWAYS, PARTS, TEXTS, format_string, parts_for, runtime_text
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from vm_dialect.exec_builder import ExecBuilder
from vm_dialect.executable import Executable, FunctionKind, Metadata, NativeObject

ROOT = Path(__file__).parents[3]

KERNELS = """
tir.prim_func @copy[%n](%X: !tir.buffer<[n, 2 * n], f32>, %Y: !tir.buffer<[n, 2 * n], f32>) {
  %m = tir.dim 2 * n
  tir.for (%i, %j) in (%n, %m) {
    %x = tir.load %X[%i, %j]
    tir.store %x, %Y[%i, %j]
  }
}
tir.prim_func @fill(%Y: !tir.buffer<[1], f32>, %a: i32, %b: f32, %c: i1, %d: bf16) {
  %zero = arith.constant 0 : index
  %e = arith.sitofp %a : i32 to f32
  %f = arith.addf %e, %b : f32
  %g = arith.extf %d : bf16 to f32
  %h = arith.addf %f, %g : f32
  %i = arith.select %c, %h, %b : f32
  tir.store %i, %Y[%zero]
}
tir.prim_func private @hidden(%Y: !tir.buffer<[1], f32>) {
}
"""


STRAIGHT = """
vm.func @f(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  %two = vm.const 2
  %less = vm.int lt %n, %two
  vm.if %less, ^small, ^large
^small:
  vm.ret %two
^large:
  vm.ret %n
}
"""

LOOP = """
vm.func @f(%x : !vm.object) -> i64 {
  %n = vm.check_int %x
  vm.goto ^head(%n)
^head(%i : i64):
  %two = vm.const 2
  %j = vm.int floordiv %i, %two
  %more = vm.int lt %two, %j
  vm.if %more, ^again, ^done
^again:
  vm.goto ^head(%j)
^done:
  vm.ret %j
}
"""

RECURSION = """
vm.func private @f(%n : i64) -> i64 {
  %two = vm.const 2
  %less = vm.int lt %n, %two
  vm.if %less, ^small, ^large
^small:
  vm.ret %n
^large:
  %m = vm.int sub %n, %two
  %r = vm.call @f(%m) : i64
  vm.ret %r
}
"""


@pytest.mark.parametrize(("text", "level"), [(STRAIGHT, 0), (LOOP, 1), (RECURSION, 1)])
def test_functions_that_repeat_something_are_optimised(text, level):
    module = parse_module(text)
    lowered = llvm_text(ModuleOp(lower_functions(module)))
    assert function_options(module, lowered) == CompileOptions(level)


@pytest.fixture(scope="module")
def kernels():
    return compile_prim_funcs(parse_module(KERNELS))


@pytest.fixture(scope="module")
def wrapped(kernels):
    functions = [op for op in parse_module(KERNELS).ops if isinstance(op, PrimFuncOp)]
    target = Target.host()
    objects = [*wrapper_code(functions, target, kernels.symbols)(), *kernels.objects.values()]
    return load_functions(load_objects(objects), {})


def test_wrapped_kernels(wrapped):
    assert set(wrapped) == {"copy", "fill"}
    x, y = np.arange(18, dtype=np.float32).reshape(3, 6), np.zeros((3, 6), np.float32)
    assert wrapped["copy"](3, x, y) is None
    np.testing.assert_array_equal(x, y)
    assert wrapped["copy"](0, x[:0, :0], y[:0, :0]) is None


def test_scalars_of_wrapped_kernels(wrapped):
    y = np.zeros(1, np.float32)
    for a, b, c, d, expected in ((3, 0.5, True, 1, 4.5), (3, 0.5, False, 1, 0.5), (-1, 0.0, True, 1.00390625, 0.0)):
        wrapped["fill"](y, a, b, c, d)
        assert y[0] == expected


@pytest.mark.parametrize(
    ("value", "rounded"), [(1.0, 1.0), (1.00390625, 1.0), (1.01171875, 1.015625), (1.0078125, 1.0078125), (-3.5, -3.5)]
)
def test_bf16_scalars_round_to_even(wrapped, value, rounded):
    y = np.zeros(1, np.float32)
    wrapped["fill"](y, 0, 0.0, True, value)
    assert y[0] == rounded


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_bf16_scalars_that_are_not_finite(wrapped, value):
    y = np.zeros(1, np.float32)
    wrapped["fill"](y, 0, 0.0, True, value)
    assert np.array_equal(y[0], value, equal_nan=True)


def test_wrong_sizes_of_wrapped_kernels(wrapped):
    x = np.zeros((3, 6), np.float32)
    with pytest.raises(ValueError, match=r"^copy: argument #1 \(X\) dimension 0: expected n = 2, got 3$"):
        wrapped["copy"](2, x, x)
    with pytest.raises(ValueError, match=r"^copy: argument #2 \(Y\) dimension 1: expected 2 \* n = 6, got 5$"):
        wrapped["copy"](3, x, np.zeros((3, 5), np.float32))
    with pytest.raises(TypeError, match=r"^copy: argument #0 \(n\): expected an int, got float$"):
        wrapped["copy"](3.0, x, x)


FUNCTIONS = """
vm.constant @scale : tensor<1xf32>
vm.func @main(%o : !vm.object) -> !vm.object attributes {arg_names = ["x"]} {
  %x = vm.check_tensor %o rank 2 dtype f32 as "main: argument #0 (x)"
  %n = vm.tensor_dim %x[0]
  %m = vm.tensor_dim %x[1]
  %y = vm.new_tensor [%n, %m] f32
  vm.call_kernel @copy[%n](%x, %y)
  %c = vm.constant_tensor @scale : !vm.tensor<1, f32>
  %r = vm.call_packed "test.native.pair"(%y, %c) : !vm.object
  vm.ret %r
}
"""


@pytest.fixture
def executable(kernels) -> Executable:
    target = Target.host()
    code = function_code(parse_module(KERNELS + FUNCTIONS), target, kernels.symbols)()
    builder = ExecBuilder()
    builder.set_metadata(Metadata(mode="native"))
    for data in (*code, *kernels.objects.values()):
        builder.add_native_object(NativeObject(Target.host().code_key(), "elf", data, object_symbols(data).defined))
    builder.declare_function("main", FunctionKind.NATIVE, ["x"])
    builder.convert_constant(tvm_ffi.from_dlpack(np.array([0.5], np.float32)), "scale")
    return builder.get()


def test_native_executable(executable):
    tvm_ffi.register_global_func("test.native.pair", lambda x, c: (x, c), override=True)
    machine = VirtualMachine(Executable.from_bytes(executable.to_bytes()))
    x = np.arange(2, dtype=np.float32).reshape(1, 2)
    copied, scale = machine["main"](x)
    np.testing.assert_array_equal(np.from_dlpack(copied), x)
    assert np.from_dlpack(scale).tolist() == [0.5]


def test_packed_functions_may_be_given(executable):
    given = {"test.native.pair": tvm_ffi.convert(lambda x, c: 7)}
    assert load_executable(executable, given).functions["main"](np.zeros((1, 2), np.float32)) == 7


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_a_shared_library_needs_no_loader(executable, tmp_path):
    tvm_ffi.register_global_func("test.native.pair", lambda x, c: (x, c), override=True)
    executable.export_library(tmp_path / "m.so")
    main = tvm_ffi.load_module(str(tmp_path / "m.so")).main
    x = np.arange(2, dtype=np.float32).reshape(1, 2)
    for _ in range(2):
        copied, scale = main(x)
        np.testing.assert_array_equal(np.from_dlpack(copied), x)
        assert np.from_dlpack(scale).tolist() == [0.5]
    with pytest.raises(TypeError, match=r"^main: argument #0 \(x\): expected a tensor, got int$"):
        main(1)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_a_shared_library_that_lacks_something(kernels, tmp_path):
    text = """
    vm.func @main() {
      vm.call_packed "test.native.nobody"()
      vm.ret
    }"""
    builder = ExecBuilder()
    builder.set_metadata(Metadata(mode="native"))
    for data in function_code(parse_module(text), Target.host())():
        builder.add_native_object(NativeObject(Target.host().code_key(), "elf", data, ("__tvm_ffi_main",)))
    builder.declare_function("main", FunctionKind.NATIVE, [])
    builder.get().export_library(tmp_path / "m.so")
    main = tvm_ffi.load_module(str(tmp_path / "m.so")).main
    for _ in range(2):
        with pytest.raises(ValueError, match=r'^packed function "test.native.nobody" is not registered'):
            main()


def test_executable_without_code():
    with pytest.raises(RuntimeError, match=r"no compiled code for this machine .*, only for: none"):
        load_executable(ExecBuilder().get())


def test_executable_of_another_machine(executable):
    other = Target.parse("neoverse-n1" if Target.host().arch == "x86_64" else "x86-64").code_key()
    native = tuple(replace(item, target=other) for item in executable.native)
    with pytest.raises(RuntimeError, match=rf'no compiled code for this machine .*, only for: "{other}"'):
        load_executable(replace(executable, native=native))
    with pytest.raises(ValueError, match="a library is for one architecture, and the code for "):
        replace(executable, native=(*executable.native, *native)).export_library("m.so")


OTHERS = {"x86_64": ("neoverse-n1", "aarch64", 183), "aarch64": ("x86-64-v3", "x86_64", 62)}
"""For each architecture a processor of another one, and its number in ELF files."""

CROSS_LINKER = """#!/bin/sh
if [ "$1" = -dumpmachine ]; then echo {arch}-unknown-linux-gnu; exit; fi
cp -r "$(dirname "$(for each; do case "$each" in */0.o) echo "$each";; esac; done)")" "{kept}"
while [ "$1" != -o ]; do shift; done
touch "$2"
"""


def test_a_library_for_another_architecture_is_linked_by_its_linker(tmp_path, monkeypatch):
    """All that it is given is code for that, and the check of the processor is where each linker finds it."""
    name, arch, number = OTHERS[Target.host().arch]
    driver = tmp_path / "cc"
    driver.write_text(CROSS_LINKER.format(arch=arch, kept=tmp_path / "kept"))
    driver.chmod(0o755)
    monkeypatch.setenv("CC", str(driver))
    made = build(parse_module(KERNELS), name)
    made.export_library(tmp_path / "m.so")
    objects = [path.read_bytes() for path in (tmp_path / "kept").glob("*.o")]
    assert len(objects) > 2
    assert {int.from_bytes(data[18:20], "little") for data in objects} == {number}
    assert [b".init_array" in data for data in objects].count(True) == 1
    assert not any(b".ctors" in data for data in objects)


HOST = Target("x86_64-pc-linux-gnu", "skylake", "+avx,+avx2,-sgx", 256)


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        (HOST.code_key(), True),
        ("x86_64-unknown-linux-gnu haswell +avx,-avx2 256", True),
        ("x86_64-unknown-linux-gnu znver4 +avx,+avx512f 512", False),
        ("x86_64-unknown-linux-gnu x86-64-v3  256", True),
        ("x86_64-unknown-linux-gnu x86-64-v4  512", False),
        ("x86_64-unknown-linux-gnu alderlake  256", False),
        ("x86_64-unknown-linux-gnu haswell +xop 128", False),
        ("x86_64-unknown-linux-gnu x86-64-v4 -sgx 128", False),
        ("x86_64-unknown-linux-gnu haswell +clzero 256", True),
        ("x86_64-unknown-linux-gnu nobody  128", False),
        ("x86_64-apple-darwin skylake  128", False),
        ("aarch64-unknown-linux-gnu neoverse-n1  128", False),
        ("", False),
        ("host", False),
        ("x86_64-unknown-linux-gnu a b c", False),
    ],
)
def test_where_code_runs(code, runs):
    assert runs_on(code, HOST) == runs


def test_running_saved_code_needs_no_compiler(executable, tmp_path):
    executable.save(tmp_path / "m.rvm")
    script = f"""
import sys, numpy, tvm_ffi
from vm_dialect import Executable, VirtualMachine
tvm_ffi.register_global_func("test.native.pair", lambda x, c: x)
machine = VirtualMachine(Executable.load({str(tmp_path / "m.rvm")!r}))
print(machine["main"](numpy.zeros((1, 2), numpy.float32)).shape == (1, 2), "xdsl" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["True", "False"]


_TYPES = {
    "void": LLVMVoidType(),
    "ptr": LLVMPointerType(),
    "double": Float64Type(),
    **{f"i{width}": IntegerType(width) for width in (1, 8, 16, 32, 64)},
}


def _support() -> str:
    return "\n".join(map(runtime_text, PARTS))


@pytest.mark.parametrize("name", RUNTIME)
def test_every_function_is_in_one_part(name):
    defining = [part for part in PARTS if re.search(rf"^define .*@{name}\(", runtime_text(part), flags=re.MULTILINE)]
    assert len(defining) == 1
    assert parts_for(f"call void @{name}()") == list(dict.fromkeys([*ALWAYS, *defining]))


def test_programs_have_what_they_need_of_the_support():
    bodies = "vm.ret %x", "%c = vm.make_closure @main(%x) vm.ret %c"
    texts = (f"vm.func @main(%x: !vm.object) -> !vm.object {{ {body} }}" for body in bodies)
    plain, closing = (function_code(parse_module(text), Target.host())() for text in texts)
    names = [name for data in plain for name in object_symbols(data).defined]
    assert "vmrt_release" in names
    assert "vmrt_make_closure" not in names
    assert any("vmrt_make_closure" in object_symbols(data).defined for data in closing)


@pytest.mark.parametrize("part", PARTS)
def test_parts_depend_on_what_every_program_has(part):
    def symbols(name: str) -> ObjectSymbols:
        return object_symbols(compile_object(runtime_text(name), Target.host(), CompileOptions(0)))

    known = {symbol for each in ALWAYS for symbol in symbols(each).defined}
    assert {symbol for symbol in symbols(part).undefined if symbol.startswith("vmrt_")} <= known


@pytest.mark.parametrize("name", RUNTIME)
def test_signatures_are_those_of_the_definitions(name):
    match = re.search(rf"^define (\S+) @{name}\(([^)]*)\)", _support(), flags=re.MULTILINE)
    assert match is not None
    parameters = [text.split()[0] for text in match[2].split(", ") if text]
    declared = RUNTIME[name]
    assert declared.output == _TYPES[match[1]]
    assert declared.is_variadic == ("..." in parameters)
    assert [*declared.inputs] == [_TYPES[text] for text in parameters if text != "..."]


def test_every_text_is_used():
    code = _support()
    for name in TEXTS:
        assert len(re.findall(rf"@vmrt_text_{name}\b", code)) > 1, name


def test_format_strings():
    assert format_string("{subject}: 100 % of {}, got {name}") == b"%s: 100 %% of %lld, got %s"
