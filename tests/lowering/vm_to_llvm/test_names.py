"""Functions, kernels, constants and packed functions may be called anything: no name of ours is in their way."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr

from lowering import build
from lowering.compiler.build import Mode
from lowering.parsing import parse_module
from tests.support.programs import run_pipeline
from vm_dialect import Executable, VirtualMachine

OURS = [
    "places",
    "shutdown",
    "objects",
    "arenas",
    "text.0",
    "literal.0",
    "module.objects",
    "vm.f",
    "vmrt_init",
    "module.init",
    "_vm_init",
    "_vm_info",
    "closure1.f",
    "f.captured1",
    "f.inner",
    "hex.61",
    "hex.vm.61",
    "relax.raise",
    "relax_parallel",
    "relax.routine.x",
    "__tvm_ffi_f",
]
LIBRARY = [
    "main",
    "malloc",
    "memcpy",
    "free",
    "strlen",
    "exp",
    "expf",
    "fmaf",
    "_GLOBAL_OFFSET_TABLE_",
    "__dso_handle",
]
LLVM = ["llvm.memcpy", "llvm.exp.f32", "llvm.foo", "llvm.used", "x86", "define", "%s", "%d"]
ODD = [" ", "a b", 'a"b', "a\\b", "a'b", "\n", "é日本", "\1x", "\x7f", "a$b", "-", "0", "#", "{}", "self", "x" * 5000]
RESERVED = ["a\0b", "a\0", "\0", "a@b", "@f", "_library_ctx", "_library_bin", "_metadata_f", "_doc_f"]
"""What functions of a library cannot be called."""

X = np.arange(4, dtype=np.float32)


def quoted(name: str) -> str:
    return str(StringAttr(name))


def program(functions: Sequence[str], kernels: Sequence[str]) -> str:
    """Functions that double their argument through a closure, and `entry`, which calls all of the kernels through
    others; each adds 1 in place.
    """
    parts = [
        f"""relax.func @{quoted(name)}[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
          %g = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
            %z = relax.add %x, %y
            relax.return %z
          }}
          %0 = relax.call_closure %g(%x)
          relax.return %0
        }}"""
        for name in functions
    ]
    for name in kernels:
        parts.append(f"""tir.prim_func private @{quoted(name)}[%n](%X: !tir.buffer<[n], f32>) {{
          tir.for (%i) in (%n) {{
            tir.block "add" (%v = spatial %i in %n) {{
              %one = arith.constant 1.0 : f32
              %x = tir.load %X[%v]
              %y = arith.addf %x, %one : f32
              tir.store %y, %X[%v]
            }}
          }}
        }}""")
    for index, name in enumerate(kernels):
        parts.append(f"""tir.prim_func private @{quoted(f"{name} {index}")}[%n](%X: !tir.buffer<[n], f32>,
            %Y: !tir.buffer<[n], f32>) {{
          tir.for (%i) in (%n) {{
            tir.block "copy" (%v = spatial %i in %n) {{
              %x = tir.load %X[%v]
              tir.store %x, %Y[%v]
            }}
          }}
          tir.call @{quoted(name)}[%n](%Y)
        }}""")
    calls = [
        f"%{index + 1} = relax.call_tir @{quoted(f'{name} {index}')}(%{index}) : !relax.tensor<[n], f32>"
        for index, name in enumerate(kernels)
    ]
    parts.append(f"""relax.func @"the entry"[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
      %0 = relax.add %x, %x
      {" ".join(calls)}
      relax.return %{len(kernels)}
    }}""")
    return "\n".join(parts)


def _library(path: Path) -> Any:
    load: Any = getattr(tvm_ffi, "load_module")  # noqa: B009
    return load(str(path))


def check(machine: VirtualMachine, functions: Sequence[str], kernels: Sequence[str]) -> None:
    for name in functions:
        np.testing.assert_array_equal(np.from_dlpack(machine[name](X)), 2 * X)
    np.testing.assert_array_equal(np.from_dlpack(machine["the entry"](X)), 2 * X + len(kernels))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_names_of_functions_and_kernels(mode: Mode, tmp_path: Path):
    """Each is that of a kernel here, or of a function; in the other mode it is the other way round."""
    names = [*OURS, *LIBRARY, *LLVM, *ODD, *RESERVED]
    functions, kernels = (names[::2], names[1::2]) if mode == "native" else (names[1::2], names[::2])
    executable = build(parse_module(program(functions, kernels)), mode=mode)
    check(VirtualMachine(executable), functions, kernels)
    executable.save(tmp_path / "names.rvm")
    check(VirtualMachine(Executable.load(tmp_path / "names.rvm")), functions, kernels)


NAMES = st.one_of(
    st.text(max_size=12).filter(lambda text: text != ""),
    st.builds(
        str.__add__, st.sampled_from(["vm.", "closure1.", "hex.", "__tvm_ffi_", "llvm.", "\1"]), st.text("ab.\0")
    ),
    st.sampled_from([*OURS, *LIBRARY, *LLVM, *ODD, *RESERVED]),
)


def is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name) and name != "the entry"


@given(st.lists(NAMES.filter(is_text), min_size=4, max_size=8, unique=True), st.sampled_from(["native", "bytecode"]))
@settings(max_examples=8, deadline=None)
def test_any_names(names: list[str], mode: Mode):
    functions, kernels = names[::2], names[1::2]
    check(VirtualMachine(build(parse_module(program(functions, kernels)), mode=mode)), functions, kernels)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_functions_of_libraries_are_called_as_the_user_calls_them(tmp_path: Path):
    names = [*OURS, *LIBRARY, *LLVM, *ODD]
    build(parse_module(program(names, ["malloc\t", "llvm.x"]))).export_library(tmp_path / "names.so")
    module = _library(tmp_path / "names.so")
    for name in names:
        np.testing.assert_array_equal(np.from_dlpack(module[name](tvm_ffi.from_dlpack(X))), 2 * X)


@pytest.mark.parametrize("name", RESERVED)
def test_what_functions_of_libraries_cannot_be_called(name: str, tmp_path: Path):
    executable = build(parse_module(program([name], [])))
    with pytest.raises(ValueError, match=r"^export_library: .* rename the function "):
        executable.export_library(tmp_path / "names.so")


def _same(value: object) -> object:
    return value


VALUES = [*OURS, *LIBRARY, *ODD, "a\0b", "a\0c", "a\\0b"]


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_names_of_constants_and_packed_functions(mode: Mode, tmp_path: Path):
    lines = [
        f"%c{index} = relax.constant {quoted(name)} : !relax.tensor<[4], f32>" for index, name in enumerate(VALUES)
    ]
    lines += [
        f"%p{index} = relax.call_packed {quoted('test names ' + name)}(%c{index}) : !relax.tensor<[4], f32>"
        for index, name in enumerate(VALUES)
    ]
    last = ", ".join(f"%p{index}" for index in range(len(VALUES)))
    lines.append(f"%t = relax.tuple({last}) relax.return %t")
    text = f"relax.func @main(%x: !relax.tensor<[4], f32>) impure {{ {' '.join(lines)} }}"
    for name in VALUES:
        tvm_ffi.register_global_func(f"test names {name}", _same, override=True)
    weights = {name: X + index for index, name in enumerate(VALUES)}
    executable = build(parse_module(text), mode=mode, weights=weights)
    results = [VirtualMachine(executable)["main"](X)]
    if mode == "native" and shutil.which("cc") is not None:
        executable.export_library(tmp_path / "names.so")
        results.append(_library(tmp_path / "names.so").main(tvm_ffi.from_dlpack(X)))
    for result in results:
        for index, each in enumerate(result):
            np.testing.assert_array_equal(np.from_dlpack(each), X + index)


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_kernels_that_become_functions_of_llvm_alone(half: int):
    """`relax-to-llvm` makes one module of all; what it gives is run as it is."""
    names = [*OURS, *LIBRARY, *LLVM, *ODD, *RESERVED, "relax_scratch_take", "TVMFFIErrorSetRaisedFromCStr", "memset"]
    kernels = names[half::2]
    module = parse_module(program([], kernels))
    run_pipeline(module, "relax-to-llvm")
    check(VirtualMachine(build(parse_module(str(module)))), [], kernels)
