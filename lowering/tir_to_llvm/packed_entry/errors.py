"""Errors of packed entries: messages with numbers and names that are only known at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import SymbolRefAttr, i8, i32, i64
from xdsl.ir import SSAValue

from lowering.llvm.builder.function_builder import call_op
from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.llvm.builder.module_builder import ModuleBuilder
from lowering.tir_to_llvm import llvm_ext
from vm_dialect import messages

_TEXT_BYTES = 1024
_KIND_NAME = "relax.kind_name"
_DTYPE_NAMES: Mapping[int, str] = {0: "int%lld", 1: "uint%lld", 2: "float%lld", 4: "bfloat%lld", 6: "bool"}
_PRINTF = llvm.LLVMFunctionType([POINTER, i64, POINTER], i32, is_variadic=True)
_FAILED = -1


def text_address(b: LLVMBuilder, text: str) -> SSAValue:
    """The address of a text constant that ends in a zero byte."""
    return b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr(b.module.text(text))})


class PackedErrors:
    """Leaves a packed entry with an error where a condition fails."""

    def __init__(self, b: LLVMBuilder) -> None:
        self._b = b
        self._buffers: dict[str, SSAValue] = {}

    def require(self, condition: SSAValue, kind: str, template: str, integers: Sequence[SSAValue] = ()) -> None:
        """Goes on where the condition holds; else raises `template`, filled with the integers."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail(kind, template, integers)
        b.start(passed)

    def fail(self, kind: str, template: str, integers: Sequence[SSAValue] = (), name: SSAValue | None = None) -> None:
        """Raises the error and leaves; ends the block."""
        b = self._b
        text = self._format("text", _TEXT_BYTES, _printf_format(template), self._values(template, integers, name))
        b.module.declare("TVMFFIErrorSetRaisedFromCStr", [POINTER, POINTER], None)
        b.insert(call_op("TVMFFIErrorSetRaisedFromCStr", (text_address(b, kind), text), None))
        b.insert(llvm.ReturnOp(b.integer(_FAILED, i32)))

    def require_kind(self, condition: SSAValue, subject: str, expected: str, type_index: SSAValue) -> None:
        """Raises `TypeError` for a value of another kind than `expected`."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail("TypeError", messages.wrong_kind(subject, expected), name=self.kind_name(type_index))
        b.start(passed)

    def require_dtype(self, condition: SSAValue, template: str, code: SSAValue, bits: SSAValue) -> None:
        """Raises `TypeError` for a tensor of another dtype; code and bits are i64."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail("TypeError", template, name=self.dtype_name(code, bits))
        b.start(passed)

    def dtype_name(self, code: SSAValue, bits: SSAValue) -> SSAValue:
        """The name of a DLPack type, as `float32`; code and bits are i64."""
        b = self._b
        pattern = text_address(b, "type%lld")
        for number, name in _DTYPE_NAMES.items():
            pattern = b.select(b.compare("eq", code, b.integer(number)), text_address(b, name), pattern)
        return self._format_by("dtype", 64, pattern, [bits])

    def kind_name(self, type_index: SSAValue) -> SSAValue:
        """The name of a tvm-ffi type index, an i32."""
        return self._b.call(_kind_name_function(self._b.module), [type_index], POINTER)

    @staticmethod
    def _values(template: str, integers: Sequence[SSAValue], name: SSAValue | None) -> list[SSAValue]:
        """What fills the marks, in order of the marks."""
        values: list[SSAValue] = []
        rest = iter(integers)
        for position in range(len(template)):
            if template.startswith("{}", position):
                values.append(next(rest))
            elif template.startswith("{name}", position) and name is not None:
                values.append(name)
        return values

    def _format(self, buffer: str, size: int, pattern: str, values: Sequence[SSAValue]) -> SSAValue:
        return self._format_by(buffer, size, text_address(self._b, pattern), values)

    def _format_by(self, buffer: str, size: int, pattern: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        b = self._b
        text = self._buffer(buffer, size)
        b.module.declare_variadic("snprintf", _PRINTF)
        arguments = [text, b.integer(size), pattern, *values]
        b.insert(llvm.CallOp("snprintf", *arguments, return_type=i32, var_callee_type=_PRINTF))
        return text

    def _buffer(self, name: str, size: int) -> SSAValue:
        if name not in self._buffers:
            b = self._b
            block, b.block = b.block, b.entry
            self._buffers[name] = b.insert(llvm.AllocaOp(b.integer(1), llvm.LLVMArrayType(size, i8), 16)).results[0]
            b.block = block
        return self._buffers[name]


def _printf_format(template: str) -> str:
    return template.replace("%", "%%").replace("{}", "%lld").replace("{name}", "%s")


def _kind_name_function(module: ModuleBuilder) -> str:
    """`ptr kind_name(i32 type_index)`, added to the module once."""
    if _KIND_NAME in module.defined:
        return _KIND_NAME
    b = LLVMBuilder(module, [i32])
    done = b.new_block([POINTER])
    default = text_address(b, "object")
    cases = [(index, done, [text_address(b, name)]) for index, name in messages.KINDS.items()]
    b.insert(llvm_ext.SwitchOp(b.entry.args[0], (done, [default]), cases))
    b.start(done)
    b.insert(llvm.ReturnOp(done.args[0]))
    module.define(_KIND_NAME, [i32], POINTER, b.finish(), internal=True, properties={})
    return _KIND_NAME
