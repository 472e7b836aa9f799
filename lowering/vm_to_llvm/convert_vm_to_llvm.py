"""`convert-vm-to-llvm`: VM functions become LLVM functions.

Every `vm.func` becomes a function that only native code calls, with a pattern for each op. It takes the address of the
slot for its result, then the parameters: numbers in registers, everything else as the address of a `TVMFFIAny` that the
caller keeps. It returns a status, 0 or -1 with an error raised, or 1 if it leaves a call to its caller
(`runtime/deferred.ll`). All ways out but calls in tail position lead through one block, which empties the frame and
gives the arenas back.

A second function is that through which tvm-ffi calls the `vm.func`. Every module has entry points that initialise it,
release its resources and describe it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from lowering.diagnostics import fail
from lowering.llvm.function_builder import EXTERNAL, INTERNAL, function_op
from lowering.registry import Pass
from lowering.rewriting import PatternIndex
from lowering.vm_to_llvm.abi import (
    ANY,
    ANY_BYTES,
    F64,
    I1,
    I32,
    I64,
    PACKED,
    PACKED_NAMES,
    PAYLOAD,
    PTR,
    SHUTDOWN,
    Kernel,
    known_kernels,
)
from lowering.vm_to_llvm.calls import (
    LowerCall,
    LowerCallClosure,
    LowerCallKernel,
    LowerCallPacked,
    LowerGoto,
    LowerIf,
    LowerMakeClosure,
    LowerReturn,
)
from lowering.vm_to_llvm.checks import (
    LowerAssert,
    LowerCheckApart,
    LowerCheckBool,
    LowerCheckFloat,
    LowerCheckFunc,
    LowerCheckInt,
    LowerCheckShape,
    LowerCheckTensor,
    LowerCheckTuple,
)
from lowering.vm_to_llvm.globals import ARENAS, LOCATIONS, OBJECTS, ModuleGlobals
from lowering.vm_to_llvm.memory import (
    LowerAllocStorage,
    LowerAllocTensor,
    LowerKill,
    LowerMakeShape,
    LowerNewTensor,
    LowerReadCond,
    LowerReadInt,
    LowerShapeDim,
    LowerShapeOf,
    LowerTensorDim,
    LowerView,
)
from lowering.vm_to_llvm.plan import ModuleFacts, Number, closure_targets, is_number, module_facts
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder, format_string
from lowering.vm_to_llvm.state import FunctionState, raise_error
from lowering.vm_to_llvm.symbols import INFO, INIT, body_symbol, entry_symbol
from lowering.vm_to_llvm.values import (
    LowerConst,
    LowerConstantTensor,
    LowerDtype,
    LowerInt,
    LowerMakeTuple,
    LowerNull,
    LowerStr,
    LowerTupleGet,
)
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import messages
from vm_dialect.executable.library import library_name
from vm_dialect.ops.calls import CallKernelOp
from vm_dialect.ops.structure import FuncOp

PATTERNS = PatternIndex(
    [
        LowerConst(),
        LowerStr(),
        LowerDtype(),
        LowerNull(),
        LowerConstantTensor(),
        LowerInt(),
        LowerCheckTensor(),
        LowerCheckShape(),
        LowerCheckTuple(),
        LowerCheckFunc(),
        LowerCheckApart(),
        LowerCheckInt(),
        LowerCheckBool(),
        LowerCheckFloat(),
        LowerAssert(),
        LowerTensorDim(),
        LowerShapeDim(),
        LowerReadInt(),
        LowerShapeOf(),
        LowerMakeShape(),
        LowerAllocStorage(),
        LowerAllocTensor(),
        LowerNewTensor(),
        LowerView(),
        LowerReadCond(),
        LowerKill(),
        LowerMakeTuple(),
        LowerTupleGet(),
        LowerCall(),
        LowerCallKernel(),
        LowerCallPacked(),
        LowerCallClosure(),
        LowerMakeClosure(),
        LowerGoto(),
        LowerIf(),
        LowerReturn(),
    ]
)
"""Patterns of the conversion, by op class."""


def lower_function(func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts) -> llvm.FuncOp:
    """The LLVM function."""
    state = FunctionState(func, shared, facts, PATTERNS)
    body = state.emit.new_block()
    state.emit.start(body)
    _enter(state)
    state.emit.arguments[0].name_hint = "ret"
    for index, parameter in enumerate(state.plan.order[0].args):
        if state.by_value:
            _take_parameter(state, state.emit.offset(state.emit.arguments[1], index * ANY_BYTES), parameter)
            continue
        given = state.emit.arguments[1 + index]
        if is_number(parameter):
            state.values[parameter] = Number(given)
            state.name_register(parameter)
        else:
            given.name_hint = parameter.name_hint
            state.values[parameter] = state.object_at(given, parameter, owned=False, is_argument=True)
    for block in state.plan.order:
        if block is not state.plan.order[0]:
            state.emit.start(state.blocks[block])
            numbers = iter(state.blocks[block].args)
            for argument in block.args:
                if is_number(argument):
                    state.values[argument] = Number(next(numbers))
                    state.name_register(argument)
                else:
                    address = state.result_slot(argument)
                    state.values[argument] = state.object_at(address, argument, owned=True)
        for op in block.ops:
            state.emit.location = op.location
            if not state.apply_pattern(op):
                fail(op, "has no lowering to llvm")
            for result in op.results:
                state.name_register(result)
            if state.facts.is_last(op):
                break
    _leave(state)
    state.frame.finish()
    return state.emit.finished(body)


def _enter(state: FunctionState) -> None:
    """The stack guard, for functions that may be inside themselves."""
    if state.name not in state.facts.guarded:
        return
    emit = state.emit
    deep = emit.status(state.runtime("vmrt_stack_enter"), [state.text(state.name)])
    allowed, refused = emit.new_block(), emit.new_block()
    emit.branch_if(deep, refused, allowed)
    emit.start(refused)
    emit.return_(emit.integer(-1, I32))
    emit.start(allowed)


def _leave(state: FunctionState) -> None:
    """The one way out, if the function ever ends."""
    emit = state.emit
    if not any(state.exit in block.last_op.successors for block in emit.blocks if block.last_op):
        return
    emit.start(state.exit)
    emit.location = state.func.location
    state.give_back()
    if not state.may_fail:
        emit.return_(emit.integer(0, I32))
        return
    (source,) = state.exit.args
    failed, done = emit.new_block(), emit.new_block()
    emit.branch_if(emit.compare("sge", source, emit.integer(0)), failed, done)
    emit.start(failed)
    line = emit.displaced(emit.address(LOCATIONS), source)
    emit.call(state.runtime("vmrt_trace"), [line], None)
    emit.return_(emit.integer(-1, I32))
    emit.start(done)
    emit.return_(emit.integer(0, I32))


def _take_parameter(state: FunctionState, source: SSAValue, parameter: SSAValue) -> None:
    """Out of the array of arguments, which a tail call of this function fills anew, into the frame."""
    emit = state.emit
    if is_number(parameter):
        state.values[parameter] = Number(emit.number(source, parameter.type))
        state.name_register(parameter)
        return
    slot = state.frame.new_slot()
    emit.store(emit.load(source, I64), slot)
    emit.store(emit.load(source, I64, PAYLOAD), slot, PAYLOAD)
    state.values[parameter] = state.object_at(slot, parameter, owned=False, is_argument=True)


def packed_entry(func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts, captured: int = 0) -> llvm.FuncOp:
    """`int f(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret)`: checks the number of arguments and calls.

    Arguments stay where the caller has them, unless some are rvalue references or raw strings: then all are copied. In
    a shared library the first call of any function prepares the module. A call that the function leaves to its caller
    is finished here, unless a closure is that. The entry of closures that give the first `captured` arguments is one of
    its own, which does not count these in errors.
    """
    return _Entry(func, shared, facts, captured).build()


class _Entry:
    """The state of making one entry."""

    def __init__(self, func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts, captured: int) -> None:
        self.func = func
        self.captured = captured
        self.shared = shared
        self.by_value = func.sym_name.data in facts.by_value
        self.array_length = facts.array_length
        self.is_deferring = func.sym_name.data in facts.deferring
        linkage = EXTERNAL if func.is_public and not captured else INTERNAL
        name = entry_symbol(func.sym_name.data, captured)
        self.function = function_op(name, PACKED, linkage, {}, location=func.location)
        self.emit = RuntimeBuilder(self.function)
        self.emit.location = func.location
        self.count = len(func.function_type.inputs)
        for argument, name in zip(self.emit.arguments, PACKED_NAMES, strict=True):
            argument.name_hint = name

    def build(self) -> llvm.FuncOp:
        """The whole function."""
        emit = self.emit
        body = emit.new_block()
        emit.start(body)
        self._check_arity()
        self._pass_arguments()
        return emit.finished(body)

    def _check_arity(self) -> None:
        emit = self.emit
        given = emit.arguments[2]
        right, wrong = emit.new_block(), emit.new_block()
        emit.branch_if(emit.compare("eq", given, emit.integer(self.count, I32)), right, wrong)
        emit.start(wrong)
        left = self.func.parameter_names[self.captured :]
        message = format_string(messages.wrong_arity(self.func.sym_name.data, left))
        got = emit.subtract(emit.convert(llvm.SExtOp, given, I64), emit.integer(self.captured))
        raise_error(emit, self.shared, "TypeError", emit.address(self.shared.text(message)), [got])
        emit.return_(emit.integer(-1, I32))
        emit.start(right)

    def _pass_arguments(self) -> None:
        emit, shared = self.emit, self.shared
        scratch = emit.stack(ANY).at_least(max(1, self.count, self.array_length))
        name = shared.runtime("vmrt_own_arguments" if self.by_value else "vmrt_arguments")
        operands = [emit.arguments[1], emit.integer(self.count), scratch]
        arguments = emit.called(name, operands, PTR)
        passed, failed = emit.new_block(), emit.new_block()
        emit.branch_if(emit.is_null(arguments), failed, passed)
        emit.start(failed)
        emit.return_(emit.integer(-1, I32))
        emit.start(passed)
        status = self._call(arguments)
        if self.count and not self.by_value:
            self._release_copies(arguments, scratch)
        emit.return_(status)

    def _release_copies(self, arguments: SSAValue, scratch: SSAValue) -> None:
        emit = self.emit
        release, done = emit.new_block(), emit.new_block()
        addresses = [emit.convert(llvm.PtrToIntOp, pointer, I64) for pointer in (arguments, scratch)]
        emit.branch_if(emit.compare("eq", *addresses), release, done)
        emit.start(release)
        emit.call(self.shared.runtime("vmrt_release"), [scratch, emit.integer(self.count)], None)
        emit.branch(done)
        emit.start(done)

    def _call(self, arguments: SSAValue) -> SSAValue:
        """Calls the body; a number among the parameters is one that a closure has captured, so its kind is known."""
        emit = self.emit
        operands = [arguments] if self.by_value else self._operands(arguments)
        name = body_symbol(self.func.sym_name.data)
        status = emit.called(name, (emit.arguments[3], *operands), I32)
        if not self.is_deferring:
            return status
        finish = self.shared.runtime("vmrt_finish_entry")
        return emit.called(finish, (emit.arguments[0], status, emit.arguments[3]), I32)

    def _operands(self, arguments: SSAValue) -> list[SSAValue]:
        emit, operands = self.emit, list[SSAValue]()
        for index, kind in enumerate(self.func.function_type.inputs):
            address = emit.offset(arguments, index * ANY_BYTES)
            operands.append(emit.number(address, kind) if kind in (I64, I1, F64) else address)
        return operands


def lifecycle_functions(shared: ModuleGlobals, functions: Sequence[FuncOp], guarded: bool) -> list[llvm.FuncOp]:
    """`INIT`, `SHUTDOWN` and `INFO`.

    `INIT` takes an object of the loader that owns the code, then the constants, then the packed functions or null for
    those of the registry, and returns the module: an object on which the life of code, constants and arenas depends.
    Without arguments, as in a shared library, constants are those of the library. `INFO` returns a JSON object that
    names the public `functions`, their parameters and results, the constants and the packed functions.
    """
    return [_init(shared, guarded), _shutdown(shared), _info(shared, functions)]


def _packed(name: str) -> RuntimeBuilder:
    emit = RuntimeBuilder(llvm.FuncOp(name, PACKED, llvm.LinkageAttr("external")))
    for argument, hint in zip(emit.arguments, PACKED_NAMES, strict=True):
        argument.name_hint = hint
    return emit


def _init(shared: ModuleGlobals, guarded: bool) -> llvm.FuncOp:
    emit = _packed(INIT)
    _, args, count, ret = emit.arguments
    failed = emit.new_block()

    def step(name: str, operands: Sequence[SSAValue]) -> None:
        following = emit.new_block()
        emit.branch_if(emit.status(shared.runtime(name), operands), failed, following)
        emit.start(following)

    body = emit.new_block()
    emit.start(body)
    step("vmrt_init", [])
    if guarded:
        step("vmrt_stack_init", [])
    _load_objects(emit, shared, step)
    step("vmrt_publish", [ret, args, count, emit.address(INFO), emit.address(SHUTDOWN)])
    emit.return_(emit.integer(0, I32))
    emit.start(failed)
    emit.call(SHUTDOWN, [], None)
    emit.return_(emit.integer(-1, I32))
    return emit.finished(body)


def _load_objects(emit: RuntimeBuilder, shared: ModuleGlobals, step: Callable[[str, Sequence[SSAValue]], None]) -> None:
    _, args, count, _ = emit.arguments

    def slot(index: int) -> SSAValue:
        return emit.offset(emit.address(OBJECTS), index * ANY_BYTES)

    def text(data: bytes) -> SSAValue:
        return emit.address(shared.text(data))

    for number, (name, index) in enumerate(shared.constants.items(), 1):
        given = [args, count, emit.integer(number, I32)]
        step("vmrt_bind_constant", [slot(index), *given, text(library_name(name).encode())])
    for data, index in shared.strings.items():
        step("vmrt_load_string", [slot(index), text(data), emit.integer(len(data))])
    for number, (name, index) in enumerate(shared.packed.items(), len(shared.constants) + 1):
        given = [args, count, emit.integer(number, I32)]
        step("vmrt_bind_packed", [slot(index), *given, text(name.encode()), emit.integer(len(name.encode()))])


def _shutdown(shared: ModuleGlobals) -> llvm.FuncOp:
    emit = RuntimeBuilder(llvm.FuncOp(SHUTDOWN, llvm.LLVMFunctionType([]), llvm.LinkageAttr("internal")))
    if shared.object_count:
        emit.call(shared.runtime("vmrt_release"), [emit.address(OBJECTS), emit.integer(shared.object_count)], None)
    if shared.arenas:
        emit.call(shared.runtime("vmrt_arena_free"), [emit.address(ARENAS), emit.integer(shared.arenas)], None)
    emit.call(shared.runtime("vmrt_shutdown"), [], None)
    emit.insert(llvm.ReturnOp())
    return emit.finished()


def _info(shared: ModuleGlobals, functions: Sequence[FuncOp]) -> llvm.FuncOp:
    emit = _packed(INFO)
    names = {
        "functions": [func.sym_name.data for func in functions],
        "parameters": {func.sym_name.data: func.parameter_names for func in functions},
        "results": {func.sym_name.data: func.named_results for func in functions if func.named_results},
        "constants": list(shared.constants),
        "packed": list(shared.packed),
        **({"sites": shared.sites} if shared.is_observed else {}),
    }
    data = json.dumps(names).encode()
    operands = [emit.arguments[3], emit.address(shared.text(data)), emit.integer(len(data))]
    emit.return_(emit.called(shared.runtime("vmrt_load_string"), operands, I32))
    return emit.finished()


class ConvertVmToLLVMPass(Pass):
    """Lowers every `vm.func` to an LLVM function, with a tvm-ffi entry if it is public or the target of a closure.

    Before:

    ```mlir
    vm.func @main(%n : !vm.object) -> i64 {
      %m = vm.check_int %n as "main: argument #0 (n)"
      %r = vm.int add %m, %m
      vm.ret %r
    }
    ```

    After, shortened:

    ```mlir
    llvm.func internal @vm.main(%ret : !llvm.ptr, %n : !llvm.ptr) -> i32 { ... }
    llvm.func @__tvm_ffi_main(%self : !llvm.ptr, %args : !llvm.ptr, %count : i32, %ret : !llvm.ptr) -> i32 { ... }
    llvm.func @module.init(...) -> i32 { ... }
    llvm.func @module.info(...) -> i32 { ... }
    ```

    Expects a module that verifies. Kernels in it are `llvm.func`s (`convert-tir-to-llvm`), with or without a body;
    they tell the types of scalars, which otherwise are those of the call. Kernels elsewhere and the run-time support
    (`lowering.vm_to_llvm.runtime_builder`) are linked in when the code is loaded. Other ops stay as they are, also
    constants, which the code gets when it is loaded. Idempotent: a module without `vm.func` is left alone.

    Refuses, at the op, a tensor in a storage that leaves its call, and a kernel that is a `tir.prim_func` still.
    """

    name = "convert-vm-to-llvm"
    removes = ("vm.func",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces the functions of the module by what they become."""
        if not any(isinstance(func, FuncOp) for func in op.ops):
            return
        for call in op.walk():
            if isinstance(call, CallKernelOp) and isinstance(SymbolTable.lookup_symbol(call, call.callee), PrimFuncOp):
                fail(call, f"{call.callee} is a 'tir.prim_func'", "run 'convert-tir-to-llvm' before")
        lowered = lower_functions(op)
        for old in list(op.ops):
            if isinstance(old, FuncOp):
                old.detach()
                old.erase(safe_erase=False)
        op.body.block.add_ops(lowered)


def lower_functions(
    module: ModuleOp,
    symbols: Mapping[str, str] | None = None,
    *,
    kernels: Mapping[str, Kernel] | None = None,
    is_observed: bool = False,
) -> list[Operation]:
    """The LLVM functions and globals that stand for the functions of a module, which is left as it is.

    `symbols` has the names of kernels in the objects that they are in, where they differ from those in the module;
    `kernels` are those that the module does not hold. Calls tell an observer if the code `is_observed`.
    """
    functions = [func for func in module.ops if isinstance(func, FuncOp)]
    facts = module_facts(module, {**(kernels or {}), **known_kernels(module.ops, symbols or {})})
    shared = ModuleGlobals(is_observed)
    checks = [rest.check for rest in facts.deferred.values() if rest.check is not None]
    bodies = [lower_function(func, shared, facts) for func in (*functions, *checks)]
    targets = closure_targets(functions)
    entries = [
        packed_entry(func, shared, facts, captured)
        for func in functions
        for captured in sorted(targets.get(func.sym_name.data, set()) | ({0} if func.is_public else set()))
    ]
    entries += [packed_entry(func, shared, facts) for func in checks]
    public = [func for func in functions if func.is_public]
    entries += lifecycle_functions(shared, public, bool(facts.guarded))
    here = (op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp))
    defined = {*here, *(function.sym_name.data for function in (*bodies, *entries))}
    return [*shared.operations(defined), *bodies, *entries]
