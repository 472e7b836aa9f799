"""The entry points of every module that initialise it, release its resources and describe it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.vm_to_llvm.abi import ANY_BYTES, I32, PACKED, PACKED_NAMES, SHUTDOWN
from lowering.vm_to_llvm.globals import ARENAS, OBJECTS, ModuleGlobals
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder
from lowering.vm_to_llvm.symbols import INFO, INIT
from vm_dialect.executable.library_constants import library_name
from vm_dialect.ops.structure import FuncOp


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
