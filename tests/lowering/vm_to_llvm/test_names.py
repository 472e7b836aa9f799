"""Functions, kernels, constants and packed functions may be called anything: no name of ours is in their way."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering import build
from lowering.compiler.build import Mode
from lowering.parsing import parse_module
from tests.support.names import (
    LIBRARY,
    LLVM,
    NAMES,
    ODD,
    OURS,
    RESERVED,
    X,
    check,
    is_text,
    open_library,
    program,
    quoted,
)
from tests.support.programs import run_pipeline
from vm_dialect import Executable, VirtualMachine


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


@pytest.mark.slow
@given(st.lists(NAMES.filter(is_text), min_size=4, max_size=8, unique=True), st.sampled_from(["native", "bytecode"]))
@settings(max_examples=8, deadline=None)
def test_any_names(names: list[str], mode: Mode):
    functions, kernels = names[::2], names[1::2]
    check(VirtualMachine(build(parse_module(program(functions, kernels)), mode=mode)), functions, kernels)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_functions_of_libraries_are_called_as_the_user_calls_them(tmp_path: Path):
    names = [*OURS, *LIBRARY, *LLVM, *ODD]
    build(parse_module(program(names, ["malloc\t", "llvm.x"]))).export_library(tmp_path / "names.so")
    module = open_library(tmp_path / "names.so")
    for name in names:
        np.testing.assert_array_equal(np.from_dlpack(module[name](tvm_ffi.from_dlpack(X))), 2 * X)


@pytest.mark.sampled(6)
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
        results.append(open_library(tmp_path / "names.so").main(tvm_ffi.from_dlpack(X)))
    for result in results:
        for index, each in enumerate(result):
            np.testing.assert_array_equal(np.from_dlpack(each), X + index)


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_kernels_that_become_functions_of_llvm_alone(half: int):
    """`relax-to-llvm` makes one module of all; what it gives is run as it is."""
    names = [*OURS, *LIBRARY, *LLVM, *ODD, *RESERVED, "relax_scratch_take", "TVMFFIErrorSetRaisedFromCStr", "memset"]
    kernels = names[half::2]
    module = parse_module(program([], kernels))
    run_pipeline(module, "relax-to-llvm")
    check(VirtualMachine(build(parse_module(str(module)))), [], kernels)
