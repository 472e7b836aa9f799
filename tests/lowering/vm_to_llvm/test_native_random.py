"""Random functions: native code gives what bytecode gives, and every reference that it takes it gives back."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.llvm_text import llvm_text
from lowering.relax_to_vm.allocate_registers import allocate
from lowering.runtime.loading import load_objects
from lowering.verify import verify_module
from lowering.vm_to_llvm.convert_vm_to_llvm import lower_functions
from lowering.vm_to_llvm.loading import load_functions
from lowering.vm_to_llvm.objects import runtime_object
from lowering.vm_to_llvm.runtime_builder import PARTS
from tests.lowering.vm_to_llvm.conftest import KERNELS
from tests.lowering.vm_to_llvm.random_functions import ECHO, SIZE, RandomFunction, helper
from tests.support.programs import EXACT, as_plain, assert_same
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from vm_dialect.codegen import emit_executable
from vm_dialect.ops.structure import FuncOp

M_PERTURB = -6
"""Option of glibc's `mallopt`: memory is filled with a byte when it is freed, so that a use after that is seen."""


@pytest.fixture(scope="module", autouse=True)
def _poison():
    tvm_ffi.register_global_func(ECHO, lambda *args: args, override=True)
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(M_PERTURB, 0x5A)
    yield
    libc.mallopt(M_PERTURB, 0)


def add_one(size: int, x: tvm_ffi.Tensor, y: tvm_ffi.Tensor) -> None:
    np.from_dlpack(y)[:] = np.from_dlpack(x) + 1


def references(value: tvm_ffi.Tensor) -> int:
    """Strong references to a tensor object: the lower half of its first eight bytes."""
    return ctypes.c_uint32.from_address(value.__chandle__()).value


def vectors() -> list[tvm_ffi.Tensor]:
    return [tvm_ffi.from_dlpack(np.arange(SIZE, dtype=np.float32) * factor) for factor in (1, 10)]


@settings(max_examples=3)
@given(st.integers(0, 1_000_000))
def test_native_is_bytecode(seed: int):
    module = ModuleOp([RandomFunction(seed).build(), helper()])
    verify_module(module)
    target, options = Target.host(), CompileOptions(opt_level=0)
    objects = [llvm_text(ModuleOp(lower_functions(module))), KERNELS]
    support = [runtime_object(target, None, part) for part in PARTS]
    code = load_objects([*(compile_object(each, target, options) for each in objects), *support])
    native = load_functions(code, {})["main"]
    for func in module.ops:
        if isinstance(func, FuncOp):
            allocate(func)
    bytecode = VirtualMachine(emit_executable(module), kernels={"add_one": add_one})["main"]
    expected = as_plain(bytecode(*vectors()))
    arguments = vectors()
    for _ in range(3):
        assert_same(as_plain(native(*arguments)), expected, EXACT, "native")
        gc.collect()
        assert [references(argument) for argument in arguments] == [1, 1]
