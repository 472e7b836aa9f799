"""From a module to an executable, without the cache of programs: what `build` does.

An executable that is built to be watched says what its kernels are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache as once
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.compiler.kernel_maker import MANY_KERNELS, KernelOptions, load_elsewhere
from lowering.compiler.kernels import KernelPlan, Kernels, plan_kernels
from lowering.diagnostics import fail
from lowering.llvm.background import Background
from lowering.llvm.code_cache import CodeCache
from lowering.llvm.compiler import CompileOptions
from lowering.locations import described
from lowering.pipelines import RelaxToVMPass, RelaxToVMPlainPass
from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
from lowering.relax.unknown_types import set_options
from lowering.relax_to_vm.checks import declared_types
from lowering.runtime.loading import object_symbols
from lowering.runtime.support import prepare_support
from lowering.verify import verify_program
from lowering.vm_to_llvm.objects import common_runtime
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import FuncOp as RelaxFuncOp
from relax_dialect.signatures import signature_of
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.dtypes import dtype_name
from tir_dialect.fast_ops import walked
from tir_dialect.ops.blocks import InitOp
from tir_dialect.ops.calls import CallPackedOp as KernelCallPackedOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType
from vm_dialect.arguments import write_signatures
from vm_dialect.codegen import ConstantPool, emit_executable
from vm_dialect.exec_builder import ExecBuilder
from vm_dialect.executable import (
    Executable,
    FunctionKind,
    KernelParameter,
    KernelSignature,
    Metadata,
    NativeObject,
    SignatureTypes,
)
from vm_dialect.executable.model import OBSERVE, OBSERVED_NOTE, PACKED_NOTE, SIGNATURES_NOTE, UNTYPED
from vm_dialect.ops.calls import CallPackedOp
from vm_dialect.ops.structure import FuncOp
from vm_dialect.ops.values import ConstantSymbolOp

if TYPE_CHECKING:
    from lowering.compiler.validation import Validation
    from lowering.vm_to_llvm.objects import Making


def signatures_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the signatures of a module's public functions, if it has some."""
    functions = [op for op in module.ops if isinstance(op, RelaxFuncOp) and not op.is_private]
    if not functions:
        return {}
    return {SIGNATURES_NOTE: write_signatures({func.sym_name.data: signature_of(func) for func in functions})}


def packed_note(module: ModuleOp) -> dict[str, str]:
    """The note of an executable's metadata with the packed functions that `vm.func`s and their kernels call, if any."""
    called = (op for op in walked(module) if isinstance(op, CallPackedOp | KernelCallPackedOp))
    names = dict.fromkeys(op.function.data for op in called)
    return {PACKED_NOTE: json.dumps(list(names))} if names else {}


_TWO = frozenset({"math.fma", "tir.ewise_fma"})
"""Ops that count as two."""


def instrument_notes(module: ModuleOp, mode: str) -> dict[str, str]:
    """The notes of the metadata: for each kernel names of its sizes and its work, as an expression of these.

    Names in the program may be none in Python, whose syntax the profiler reads.
    """
    work: dict[str, tuple[list[str], str]] = {}
    for op in module.ops:
        if isinstance(op, PrimFuncOp) and not op.is_private and (flops := work_of(op)) is not None:
            names = {name: f"n{index}" for index, name in enumerate(op.symbol_names)}
            renamed = flops.substitute({name: symbol(new) for name, new in names.items()})
            work[op.sym_name.data] = (list(names.values()), str(renamed))
    notes = {OBSERVED_NOTE: json.dumps(work)}
    if mode == "native":
        packed = json.loads(packed_note(module).get(PACKED_NOTE, "[]"))
        notes[PACKED_NOTE] = json.dumps([*packed, OBSERVE])
    return notes


def work_of(function: PrimFuncOp) -> Dim | None:
    """Floating-point operations of a call, as the loops of the function say before it is scheduled.

    A function of `math` is one, initial values of reductions are none. `None` where a loop runs as often as data says.
    """
    evaluator, total = DimEvaluator(), constant(0)
    pending: list[tuple[Operation, Dim]] = [(op, constant(1)) for op in function.body.block.ops]
    while pending:
        op, times = pending.pop()
        if isinstance(op, InitOp):
            continue
        total += times * _count(op)
        if isinstance(op, ForOp):
            lower, upper = (constant(0) if each is None else evaluator.dim_of(each) for each in (op.lower, op.upper))
            if lower is None or upper is None:
                return None
            times *= upper - lower
        pending += ((inner, times) for region in op.regions for block in region.blocks for inner in block.ops)
    return total


def _count(op: Operation) -> int:
    is_arithmetic = op.name.startswith(("arith.", "math.", "tir.ewise_", "tir.fma")) and not op.name.startswith(
        ("arith.constant", "arith.cmp", "arith.select", "arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp")
    )
    if not is_arithmetic or not op.results or not isinstance(op.results[0].type, AnyFloat):
        return 0
    return 2 if op.name in _TWO else 1


Mode: TypeAlias = Literal["native", "bytecode"]


@dataclass(frozen=True)
class Program:
    """A compiled module, and the constants that it declares."""

    executable: Executable
    constants: tuple[ConstantSymbolOp, ...]


def compile_program(
    module: ModuleOp,
    mode: Mode,
    target: Target,
    *,
    options: KernelOptions,
    cache: CodeCache,
    weights: Mapping[str, tvm_ffi.Tensor],
    progress: TextIO | None,
    validate: bool = False,
    instrument: bool = False,
) -> Program:
    """Compiles a module, which is left as it is; errors as `build`."""
    validation = _validation(module, weights) if validate else None
    with Background() as background:
        # Ahead of time, while there is nothing else to do for LLVM: every program needs it, or most do.
        background.submit(lambda: common_runtime(target, cache))
        if target.code_key() == Target.host().code_key():
            background.submit(lambda: prepare_support(cache))
        verify_program(module)
        lowered = module.clone()
        if any(op.name == "llvm.func" for op in lowered.ops):
            return _of_llvm_functions(lowered, mode, target, options, cache, weights)
        ExposePrimFuncsPass().apply(Context(), lowered)
        notes = signatures_note(lowered)
        types = declared_types(lowered)  # passes make objects of parameters
        pipeline = RelaxToVMPass if options.opt_level else RelaxToVMPlainPass
        elsewhere = once(lambda: background.beside(lambda process: load_elsewhere(process, target)))
        if _different_operators(lowered) > 4 * MANY_KERNELS:  # many of which become one kernel with others
            elsewhere()

        def after(name: str) -> None:
            # A third to all of the functions become kernels.
            if name == "legalize-ops" and _prim_funcs(lowered) > 2 * MANY_KERNELS:
                elsewhere()
            if validation is not None:
                validation.after(lowered, name)

        pipeline.run(Context(), lowered, target, after=after)
        set_options(lowered, target, options.opt_level)
        constants = tuple(op for op in lowered.ops if isinstance(op, ConstantSymbolOp))
        if instrument:
            notes |= instrument_notes(lowered, mode)
        plan = plan_kernels(lowered, target, cache, options)
        # After a kernel: what lowers functions is loaded while LLVM is at work.
        functions = once(lambda: background.submit(_functions(lowered, mode, plan, instrument)))
        kernels = plan.start(background, progress=progress, after_first=functions)
        made = _Build(lowered, kernels, weights, functions(), types, notes)
        executable = made.native() if mode == "native" else made.bytecode()
        if validation is not None and target.code_key() == Target.host().code_key():
            validation.executable(executable)
        return Program(executable, constants)


def _validation(module: ModuleOp, weights: Mapping[str, tvm_ffi.Tensor]) -> Validation:
    """What compares the program after each pass with `module`."""
    from lowering.compiler.validation import Validation

    verify_program(module)

    def compiled(module: ModuleOp, mode: Mode, weights: Mapping[str, tvm_ffi.Tensor]) -> Executable:
        options, cache = KernelOptions(opt_level=3), CodeCache(None)
        target = Target.host()
        return compile_program(
            module, mode, target, options=options, cache=cache, weights=weights, progress=None
        ).executable

    validation = Validation(compiled, weights)
    validation.begin(module)
    return validation


def _of_llvm_functions(
    module: ModuleOp,
    mode: Mode,
    target: Target,
    options: KernelOptions,
    cache: CodeCache,
    weights: Mapping[str, tvm_ffi.Tensor],
) -> Program:
    """A module in which kernels, or all functions, are LLVM functions: all of it is one object."""
    from lowering.vm_to_llvm.objects import finish_lowering, module_info, module_objects

    if mode == "bytecode":
        fail(module, "has LLVM functions, which bytecode does not call", "build it in the mode native")
    finish_lowering(module)
    constants = tuple(op for op in module.ops if isinstance(op, ConstantSymbolOp))
    builder = ExecBuilder()
    info = module_info(module)
    builder.set_metadata(Metadata("native", target.code_key(), (), {PACKED_NOTE: json.dumps(info["packed"])}))
    pool = ConstantPool(builder, {op.sym_name.data: op for op in constants}, weights)
    for op in constants:
        pool.tensor(op.sym_name.data, op)
    for data in module_objects(module, target, CompileOptions(options.opt_level), cache):
        builder.add_native_object(_native_object(target, data))
    for name in info["functions"]:
        parameters, results = info["parameters"].get(name, ()), info.get("results", {}).get(name, ())
        builder.declare_function(name, FunctionKind.NATIVE, parameters, result_names=results)
    return Program(builder.get(), constants)


def _native_object(target: Target, data: bytes) -> NativeObject:
    return NativeObject(target.code_key(), "elf", data, tuple(object_symbols(data).defined))


def _prim_funcs(module: ModuleOp) -> int:
    """How many PrimFuncs a module has."""
    return sum(isinstance(op, PrimFuncOp) for op in module.ops)


def _different_operators(module: ModuleOp) -> int:
    """The number of operators that differ in more than their operands."""
    operators = (op for op in walked(module) if isinstance(op, Operator))
    return len({(op.name, *(operand.type for operand in op.operands)) for op in operators})


@dataclass(frozen=True)
class _Build:
    """What is common to both modes: a module of `vm.func`s and PrimFuncs, and the code of the latter."""

    module: ModuleOp
    kernels: Kernels
    weights: Mapping[str, tvm_ffi.Tensor]

    functions: Future[list[bytes]]
    """The module's functions, or wrappers of the kernels, and the run-time support that they need."""
    types: Mapping[str, SignatureTypes]
    """What callers are told of the types of functions."""

    notes: Mapping[str, str]
    """Of the metadata."""

    @property
    def target(self) -> Target:
        return self.kernels.target

    def native(self) -> Executable:
        """Functions and kernels as machine code."""
        builder = ExecBuilder()
        builder.set_metadata(self._metadata("native"))
        for item in self._objects():
            builder.add_native_object(item)
        constants = {op.sym_name.data: op for op in self.module.ops if isinstance(op, ConstantSymbolOp)}
        pool = ConstantPool(builder, constants, self.weights)
        for name, op in constants.items():
            pool.tensor(name, op)
        for func in self.module.ops:
            if isinstance(func, FuncOp) and func.is_public:
                name = func.sym_name.data
                builder.declare_function(
                    name,
                    FunctionKind.NATIVE,
                    func.parameter_names,
                    result_names=func.named_results,
                    types=self.types.get(name, UNTYPED),
                )
        return builder.get()

    def bytecode(self) -> Executable:
        """Functions as instructions, kernels as machine code after wrappers that check their arguments."""
        # Not at the top: native code has no registers of the virtual machine.
        from lowering.relax_to_vm.allocate_registers import AllocateRegistersPass

        native = self._objects() if self.kernels.symbols else []
        AllocateRegistersPass().apply(Context(), self.module)
        return emit_executable(
            self.module,
            tensors=self.weights,
            metadata=self._metadata("bytecode"),
            native=native,
            describe=described,
            types=self.types,
        )

    def _objects(self) -> list[NativeObject]:
        """Kernels, functions and the run-time support, which are linked with each other."""
        code = [*self.kernels.objects.values(), *self.functions.result()]
        return [_native_object(self.target, data) for data in code]

    def _metadata(self, mode: Mode) -> Metadata:
        signatures = tuple(
            KernelSignature(kernel.sym_name.data, len(kernel.symbols), tuple(map(_parameter, kernel.params)))
            for kernel in _kernels(self.module)
        )
        target = self.target.code_key() if mode == "native" or signatures else ""
        return Metadata(mode, target, signatures, {**packed_note(self.module), **self.notes})


def _functions(module: ModuleOp, mode: Mode, plan: KernelPlan, instrument: bool) -> Making:
    """The functions of a module as machine code; in `bytecode`, what calls its kernels."""
    from lowering.vm_to_llvm.objects import function_code, wrapper_code

    if mode == "native":
        return function_code(module, plan.target, plan.symbols, plan.cache, is_observed=instrument)
    return wrapper_code(_kernels(module), plan.target, plan.symbols, plan.cache)


def _kernels(module: ModuleOp) -> Iterator[PrimFuncOp]:
    """The PrimFuncs that are kernels of their own."""
    return (op for op in module.ops if isinstance(op, PrimFuncOp) and not op.is_private)


def _parameter(param: SSAValue) -> KernelParameter:
    if isinstance(param.type, BufferType):
        return KernelParameter(dtype_name(param.type.dtype), len(param.type.shape))
    return KernelParameter(dtype_name(param.type))
