"""Objects of an executable beside kernels: the runtime, VM functions, wrappers of kernels, and modules that are LLVM
functions already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.diagnostics import Finding, fail, refuse
from lowering.llvm.code_cache import CodeCache, compile_cached
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.llvm_text import llvm_text, spent_text
from lowering.relax_to_vm.checks import Sizes
from lowering.vm_to_llvm.abi import known_kernels
from lowering.vm_to_llvm.convert_vm_to_llvm import ConvertVmToLLVMPass, lower_functions
from lowering.vm_to_llvm.runtime_builder import ALWAYS, SELDOM, parts_for, runtime_text
from lowering.vm_to_llvm.symbols import ENTRY_PREFIX, INFO, INIT
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType
from vm_dialect import messages
from vm_dialect.ops.calls import CallKernelOp
from vm_dialect.ops.checks import AssertOp, CheckBoolOp, CheckFloatOp, CheckIntOp, CheckTensorOp
from vm_dialect.ops.memory import TensorDimOp
from vm_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.ops.values import ConstantSymbolOp
from vm_dialect.types import I1, OBJECT, TensorType

RUNTIME_OPTIONS = CompileOptions(opt_level=2, as_written=True)
"""The run-time support is written in LLVM's language: its passes would take a third of the time, and find nothing."""

SELDOM_OPTIONS = CompileOptions(opt_level=0)
"""What runs once or not at all is compiled in a fifth of the time."""


def common_runtime(target: Target, cache: CodeCache | None = None) -> None:
    """Compiles what every program needs, or finds it in the cache."""
    for part in ALWAYS:
        runtime_object(target, cache, part)


def runtime_object(target: Target, cache: CodeCache | None, part: str) -> bytes:
    """The object of a part of the run-time support."""
    options = SELDOM_OPTIONS if part == SELDOM else RUNTIME_OPTIONS
    return compile_cached("native", runtime_text(part), target, options, cache, _compile_once)


def runtime_for(text: str, target: Target, cache: CodeCache | None) -> list[bytes]:
    """The parts of the run-time support that LLVM text calls."""
    return [runtime_object(target, cache, part) for part in parts_for(text)]


@lru_cache(maxsize=16)
def _compile_once(text: str, target: Target, options: CompileOptions) -> bytes:
    """Remembered in this process too, for those that build without a cache: it takes longer than a kernel."""
    return compile_object(text, target, options)


def kernel_wrappers(prim_funcs: Iterable[PrimFuncOp]) -> ModuleOp:
    """A module of the vm dialect with one public function for each public prim_func, of the same name.

    ```mlir
    tir.prim_func @exp[%n](%X : !tir.buffer<[n], f32>) { ... }
    // gives
    vm.func @exp(%n : !vm.object, %X : !vm.object) {
      %0 = vm.check_int %n as "exp: argument #0 (n)"
      %1 = vm.check_tensor %X rank 1 dtype f32 as "exp: argument #1 (X)"
      %2 = vm.tensor_dim %1[0]
      %3 = vm.int eq %0, %2
      vm.assert %3, "exp: argument #1 (X) dimension 0: expected n = {}, got {}"(%0, %2)
      vm.call_kernel @exp[%0](%1)
      vm.ret
    }
    ```
    """
    return ModuleOp([_Wrapper(function).build() for function in prim_funcs if not function.is_private])


class _Wrapper:
    """The state of making one wrapper."""

    def __init__(self, function: PrimFuncOp) -> None:
        self.function = function
        self.name = function.sym_name.data
        # Distinct names of the symbols and parameters, in order.
        params = [param.name_hint or f"arg{index}" for index, param in enumerate(function.params)]
        names = [*function.symbol_names, *params]
        self.parameters = (
            names if len(set(names)) == len(names) else [f"{name}_{index}" for index, name in enumerate(names)]
        )
        self.wrapper = FuncOp(self.name, ([OBJECT] * len(self.parameters), []), arg_names=self.parameters)
        self.sizes = Sizes(self.emit)

    def emit(self, op: Operation) -> Operation:
        op.location = self.function.location
        self.wrapper.body.block.add_op(op)
        return op

    def build(self) -> FuncOp:
        """The whole function."""
        self.wrapper.location = self.function.location
        arguments = self.wrapper.body.block.args
        count = len(self.function.symbols)
        sizes: list[SSAValue] = []
        for index, name in enumerate(self.function.symbol_names):
            sizes.append(self.emit(CheckIntOp(arguments[index], self.subject(index))).results[0])
            self.sizes.bind(symbol(name), sizes[-1])
        checked = [
            self.emit(_check(arguments[index], param.type, self.subject(index))).results[0]
            for index, param in enumerate(self.function.params, count)
        ]
        for index, (value, param) in enumerate(zip(checked, self.function.params, strict=True), count):
            if isinstance(param.type, BufferType):
                self.check_shape(value, param.type.shape, self.subject(index))
        self.emit(CallKernelOp(self.name, sizes, checked))
        self.emit(ReturnOp())
        return self.wrapper

    def subject(self, index: int) -> str:
        """What errors about an argument begin with."""
        return messages.argument(self.name, index, self.parameters[index])

    def check_shape(self, tensor: SSAValue, shape: Iterable[Dim], subject: str) -> None:
        """A wrong size would make the kernel read or write past the end."""
        for axis, dim in enumerate(shape):
            expected = self.sizes.value(dim)
            got = self.emit(TensorDimOp(tensor, axis)).results[0]
            same = self.sizes.apply("eq", expected, got)
            message = messages.wrong_value(messages.describe_dimension(subject, axis), str(dim))
            self.emit(AssertOp(same, message, [expected, got]))


def _check(argument: SSAValue, kind: Attribute, subject: str) -> Operation:
    if isinstance(kind, BufferType):
        return CheckTensorOp(argument, TensorType(kind.rank, kind.dtype), subject)
    if kind == I1:
        return CheckBoolOp(argument, subject)
    return (CheckIntOp if isinstance(kind, IntegerType) else CheckFloatOp)(argument, subject)


_RECURSION = re.compile(r"\bmusttail\b|@vmrt_stack_enter\b")
"""What functions have that may be inside themselves."""

Making: TypeAlias = Callable[[], list[bytes]]
"""What lets LLVM make objects, on any thread; raises `CodegenError` if LLVM rejects the code."""


def function_code(
    module: ModuleOp,
    target: Target,
    symbols: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
    *,
    is_observed: bool = False,
) -> Making:
    """Lowers the functions of a vm module, which is left as it is, to objects for `load_functions`: the functions, and
    what they need of the run-time support.

    `symbols` has the names of kernels in their objects; the module may hold the prim_funcs, which tell the types of
    scalars. Raises `InvalidModule` as `convert-vm-to-llvm` does.
    """
    text = spent_text(ModuleOp(lower_functions(module, symbols, is_observed=is_observed)))
    options = function_options(module, text)
    return lambda: _with_runtime(text, target, options, cache)


def wrapper_code(
    prim_funcs: Iterable[PrimFuncOp],
    target: Target,
    symbols: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
) -> Making:
    """Objects of functions through which public kernels are called with sizes, tensors and scalars."""
    functions = list(prim_funcs)
    wrappers = kernel_wrappers(functions)
    kernels = known_kernels(functions, symbols or {})
    text = spent_text(ModuleOp(lower_functions(wrappers, kernels=kernels)))
    options = function_options(wrappers, text)
    return lambda: _with_runtime(text, target, options, cache)


def function_options(module: ModuleOp, text: str) -> CompileOptions:
    """How the functions of a vm module are compiled, of which there is LLVM text.

    Most are calls and checks that run once each time, since loops are in the kernels: LLVM writes them down as they
    are, in an eighth of the time, and a call takes as long. What a function repeats, by a loop or inside itself, is
    optimised.
    """
    repeats = _RECURSION.search(text) is not None or any(_may_loop(op) for op in module.ops if isinstance(op, FuncOp))
    return CompileOptions(opt_level=1 if repeats else 0)


def _may_loop(function: FuncOp) -> bool:
    """Whether a branch goes to a block that does not stand behind it."""
    seen: set[Block] = set()
    for block in function.body.blocks:
        seen.add(block)
        if block.last_op is not None and not seen.isdisjoint(block.last_op.successors):
            return True
    return False


def _with_runtime(text: str, target: Target, options: CompileOptions, cache: CodeCache | None) -> list[bytes]:
    """Functions as machine code, and the parts of the run-time support that they call."""
    code = compile_cached("native", text, target, options, cache)
    return [code, *runtime_for(text, target, cache)]


KERNEL_PREFIX = "kernel."
"""Before the names of functions that nobody else calls: LLVM would take one called `exp` for that of the C library."""


def finish_lowering(module: ModuleOp) -> None:
    """Lowers what functions of the machine there are, and renames what is not called from outside.

    Refuses functions of earlier stages beside LLVM functions, and LLVM functions without those that describe them.
    """
    ConvertVmToLLVMPass().apply(Context(), module)
    refuse(
        Finding.at(
            op, "stands beside LLVM functions, of which it can call none", "run 'relax-to-llvm' on all functions"
        )
        for op in module.ops
        if not isinstance(op, llvm.FuncOp | llvm.GlobalOp | ConstantSymbolOp)
    )
    module_info(module)
    renamed: dict[str, str] = {}
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.body.blocks and not _is_entry(op.sym_name.data):
            renamed[op.sym_name.data] = KERNEL_PREFIX + op.sym_name.data
            op.properties |= {
                "sym_name": StringAttr(renamed[op.sym_name.data]),
                "linkage": llvm.LinkageAttr("internal"),
            }
    for op in module.walk():
        for name, attribute in op.properties.items():
            if isinstance(attribute, SymbolRefAttr) and (new := renamed.get(attribute.root_reference.data)) is not None:
                op.properties[name] = SymbolRefAttr(new)


def _is_entry(name: str) -> bool:
    """Whether a symbol is looked up from outside: by tvm-ffi or by the loader."""
    return name.startswith(ENTRY_PREFIX) or name in (INIT, INFO)


def module_info(module: ModuleOp) -> dict[str, Any]:
    """What the module says of itself: its `functions`, their `parameters` and `results`, the `packed` functions."""
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.sym_name.data == INFO:
            texts = {each.sym_name.data: each.value for each in module.ops if isinstance(each, llvm.GlobalOp)}
            for inner in op.body.walk():
                if isinstance(inner, llvm.AddressOfOp):
                    text = texts.get(inner.global_name.string_value())
                    if isinstance(text, StringAttr):
                        return {"parameters": {}, "packed": [], **json.loads(text.data.rstrip("\0"))}
    fail(
        module,
        f"has LLVM functions, but not @{INFO}, which says what can be called",
        "give the PrimFuncs and the functions that call them, before 'convert-tir-to-llvm'",
    )


def module_objects(module: ModuleOp, target: Target, options: CompileOptions, cache: CodeCache) -> list[bytes]:
    """The machine code of a module after `finish_lowering`, and the parts of the run-time support that it calls."""
    text = llvm_text(module)
    return [compile_cached("native", text, target, options, cache), *runtime_for(text, target, cache)]
