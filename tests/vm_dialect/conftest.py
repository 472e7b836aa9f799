from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi

from tests.vm_dialect.programs import Run, factorial, sum_loop
from vm_dialect import ExecBuilder, Executable, VirtualMachine
from vm_dialect.dtypes import element_type
from vm_dialect.executable import FunctionKind, KernelParameter, KernelSignature, Metadata, NativeObject
from vm_dialect.tensors import from_numpy, to_numpy


@pytest.fixture
def ib() -> ExecBuilder:
    return ExecBuilder()


@pytest.fixture(scope="session", autouse=True)
def packed_functions() -> None:
    """Packed functions that tests call by name."""

    @tvm_ffi.register_global_func("test.vm.add", override=True)
    def add(a: Any, b: Any) -> Any:
        return from_numpy(to_numpy(a) + to_numpy(b)) if isinstance(a, tvm_ffi.Tensor) else a + b

    @tvm_ffi.register_global_func("test.vm.mul", override=True)
    def mul(a: tvm_ffi.Tensor, b: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
        return from_numpy(to_numpy(a) * to_numpy(b))

    @tvm_ffi.register_global_func("test.vm.identity", override=True)
    def identity(value: Any) -> Any:
        return value

    @tvm_ffi.register_global_func("test.vm.fail", override=True)
    def fail(message: str) -> None:
        raise IndexError(message)


@pytest.fixture
def run(ib: ExecBuilder) -> Run:
    """Runs `main` of what the builder holds; tensors come back as arrays."""

    def call(*arguments: Any, name: str = "main") -> Any:
        result = VirtualMachine(ib.get())[name](*arguments)
        return to_numpy(result) if isinstance(result, tvm_ffi.Tensor) else result

    return call


@pytest.fixture
def everything(ib: ExecBuilder) -> Executable:
    """An executable with every kind of constant, function and instruction."""
    kernel = KernelSignature("exp", 1, (KernelParameter("f32", 1), KernelParameter("i64")))
    ib.set_metadata(Metadata("bytecode", "x86-64-v3 cores=2", (kernel,), {"made by": "a test"}))
    ib.add_native_object(NativeObject("x86-64-v3", "elf", b"\x7fELF not really", ("exp", "__tvm_ffi_exp")))
    ib.declare_function("exp", FunctionKind.KERNEL)
    ib.declare_function("fast", FunctionKind.NATIVE, ["a", "b"], public=False)
    factorial(ib)
    sum_loop(ib)
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    constants = [weight, tvm_ffi.Shape((2, 3)), "text \N{SNOWMAN}", 1 << 60, -0.0, float("nan"), True]
    with ib.function("constants", 0, public=False):
        operands = [ib.convert_constant(value) for value in [*constants, element_type("bf16")]]
        operands.append(ib.convert_constant(np.zeros((0, 4), np.uint8), "empty"))
        ib.emit_call("vm.builtin.make_tuple", [*operands, ib.void_arg(), ib.f("fact"), -5], ib.r(0))
        ib.emit_call("test.vm.identity", [ib.vm_state()])
        ib.emit_ret(ib.r(0))
    return ib.get()
