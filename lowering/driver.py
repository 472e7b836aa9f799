"""`build`: from a module of any level to an executable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO, TypeAlias

import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import SSAValue

from lowering.codegen.cache import CodeCache, default_cache
from lowering.codegen.elf import object_symbols
from lowering.codegen.kernels import KernelOptions, Kernels, compile_prim_funcs
from lowering.locations import names, place
from lowering.native.objects import function_object, runtime_object, wrapper_object
from lowering.pipelines import RelaxToVMPass, RelaxToVMPlainPass
from lowering.to_vm.allocate_registers import AllocateRegistersPass
from lowering.verify.module import verify_program
from tir_dialect.dtypes import dtype_name
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType
from vm_dialect.codegen import ConstantPool, emit_executable
from vm_dialect.exec_builder import ExecBuilder
from vm_dialect.executable import (
    Executable,
    FunctionKind,
    KernelParameter,
    KernelSignature,
    Metadata,
    NativeObject,
)
from vm_dialect.ops.constants import ConstantSymbolOp
from vm_dialect.ops.structure import FuncOp

Mode: TypeAlias = Literal["native", "bytecode"]


def build(
    module: ModuleOp,
    *,
    mode: Mode = "native",
    target: Target | str | None = None,
    opt_level: int = 3,
    cache: CodeCache | bool = True,
    weights: Mapping[str, Any] | None = None,
    progress: TextIO | None = None,
) -> Executable:
    """Compiles a module, which is left as it is.

    `mode`: in `native` every function of the module becomes machine code; in `bytecode` functions are instructions of
    the virtual machine, which can be stepped, instrumented and profiled, and only kernels are machine code. `target` is
    the host unless named (`x86-64-v3`). `opt_level` is LLVM's for kernels, 0 to 3; at 0 the graph is not optimised
    either. `cache` keeps compiled code on disk: `False` for none, or one of your own. `weights` are the constants that
    the module refers to by name: arrays of any DLPack library. `progress`, a terminal, gets a bar if kernels take long.

    Raises `DiagnosticException` with all errors at their ops, `CodegenError` if LLVM rejects the code, `ValueError` for
    a mode, target or level that there is not.
    """
    if mode not in ("native", "bytecode"):
        raise ValueError(f"mode expected native or bytecode, got {mode}")
    verify_program(module)
    lowered = module.clone()
    (RelaxToVMPass if opt_level else RelaxToVMPlainPass)().apply(Context(), lowered)
    kernels = compile_prim_funcs(
        lowered, _target(target), cache=_cache(cache), options=KernelOptions(opt_level=opt_level), progress=progress
    )
    made = _Build(lowered, kernels, _tensors(weights or {}))
    return made.native() if mode == "native" else made.bytecode()


@dataclass(frozen=True)
class _Build:
    """What is common to both modes: a module of `vm.func`s and PrimFuncs, and the code of the latter."""

    module: ModuleOp
    kernels: Kernels
    weights: Mapping[str, tvm_ffi.Tensor]

    @property
    def target(self) -> Target:
        return self.kernels.target

    @property
    def cache(self) -> CodeCache:
        return self.kernels.cache

    def native(self) -> Executable:
        """Functions and kernels as machine code."""
        builder = ExecBuilder()
        builder.set_metadata(self._metadata("native"))
        functions = function_object(self.module, self.target, self.kernels.symbols, self.cache)
        for item in self._objects([*self.kernels.objects.values(), functions]):
            builder.add_native_object(item)
        constants = {op.sym_name.data: op for op in self.module.ops if isinstance(op, ConstantSymbolOp)}
        pool = ConstantPool(builder, constants, self.weights)
        for name, constant in constants.items():
            pool.tensor(name, constant)
        for func in self.module.ops:
            if isinstance(func, FuncOp) and func.is_public:
                builder.declare_function(func.sym_name.data, FunctionKind.NATIVE, func.parameter_names)
        return builder.get()

    def bytecode(self) -> Executable:
        """Functions as instructions, kernels as machine code behind wrappers that check their arguments."""
        native: list[NativeObject] = []
        if self.kernels.symbols:
            wrappers = wrapper_object(_kernels(self.module), self.target, self.kernels.symbols, self.cache)
            native = self._objects([*self.kernels.objects.values(), wrappers])
        AllocateRegistersPass().apply(Context(), self.module)
        return emit_executable(
            self.module,
            tensors=self.weights,
            metadata=self._metadata("bytecode"),
            native=native,
            describe=_describe,
        )

    def _objects(self, objects: list[bytes]) -> list[NativeObject]:
        """Objects that are linked with each other and with the run-time support."""
        code = [*objects, runtime_object(self.target, self.cache)]
        return [NativeObject(self.target.code_key(), "elf", data, tuple(object_symbols(data).defined)) for data in code]

    def _metadata(self, mode: Mode) -> Metadata:
        signatures = tuple(
            KernelSignature(kernel.sym_name.data, len(kernel.symbols), tuple(map(_parameter, kernel.params)))
            for kernel in _kernels(self.module)
        )
        return Metadata(mode, self.target.code_key() if mode == "native" or signatures else "", signatures)


def _kernels(module: ModuleOp) -> Iterator[PrimFuncOp]:
    """The PrimFuncs that are kernels of their own."""
    return (op for op in module.ops if isinstance(op, PrimFuncOp) and not op.is_private)


def _parameter(param: SSAValue) -> KernelParameter:
    if isinstance(param.type, BufferType):
        return KernelParameter(dtype_name(param.type.dtype), len(param.type.shape))
    return KernelParameter(dtype_name(param.type))


def _describe(location: LocationAttr) -> str:
    """What errors and profiles show of a location: imported names if there are some, else the place in the file."""
    return ", ".join(names(location)) or str(place(location))


def _tensors(weights: Mapping[str, Any]) -> dict[str, tvm_ffi.Tensor]:
    return {
        name: weight if isinstance(weight, tvm_ffi.Tensor) else tvm_ffi.from_dlpack(weight)
        for name, weight in weights.items()
    }


def _target(target: Target | str | None) -> Target:
    if target is None:
        return Target.host()
    return Target.parse(target) if isinstance(target, str) else target


def _cache(cache: CodeCache | bool) -> CodeCache:
    if isinstance(cache, CodeCache):
        return cache
    return default_cache() if cache else CodeCache(None)
