"""The function through which tvm-ffi calls a `vm.func`."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.llvm.builder.function_builder import EXTERNAL, INTERNAL, function_op
from lowering.vm_to_llvm.abi import (
    ANY,
    ANY_BYTES,
    F64,
    I1,
    I32,
    I64,
    PACKED,
    PACKED_NAMES,
    PTR,
)
from lowering.vm_to_llvm.errors import raise_error
from lowering.vm_to_llvm.globals import ModuleGlobals
from lowering.vm_to_llvm.module_facts import ModuleFacts
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder
from lowering.vm_to_llvm.runtime_text import format_string
from lowering.vm_to_llvm.symbols import body_symbol, entry_symbol
from vm_dialect import messages
from vm_dialect.ops.structure import FuncOp


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
