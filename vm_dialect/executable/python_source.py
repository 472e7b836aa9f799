"""Python source that rebuilds an executable."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ElementType
from vm_dialect.executable.constants import Constant
from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.instructions import (
    STATE,
    VOID,
    VOID_REGISTER,
    Call,
    Goto,
    If,
    Instruction,
    Operand,
    OperandKind,
    Ret,
)
from vm_dialect.executable.model import UNTYPED, FunctionInfo, FunctionKind, Metadata, NativeObject
from vm_dialect.tensors import tensor_element, to_numpy

_IMPORTS = (
    "import base64",
    "import tvm_ffi",
    "from vm_dialect import ExecBuilder",
    "from vm_dialect.exec_builder import dtype_constant, tensor_constant",
    "from vm_dialect.executable.constants import Constant",
    "from vm_dialect.executable import FunctionKind, KernelParameter, KernelSignature, Metadata, NativeObject",
    "from vm_dialect.executable import SignatureTypes",
    "",
)


def as_python(executable: ExecutableContents) -> str:
    """The source that `Executable.as_python` returns."""
    lines = [*_IMPORTS, "ib = ExecBuilder()"]
    if executable.metadata != Metadata():
        lines.append(f"ib.set_metadata({executable.metadata!r})")
    lines += [f"ib.add_constant(Constant({_value(constant)}, {constant.name!r}))" for constant in executable.constants]
    lines += [_declaration(function) for function in executable.functions]
    lines += [_native(native) for native in executable.native]
    names = [function.name for function in executable.functions]
    for function in executable.functions:
        if function.kind is FunctionKind.BYTECODE:
            lines += [_header(function), *_body(executable, function, names)]
    return "\n".join([*lines, "executable = ib.get()", ""])


def _declaration(function: FunctionInfo) -> str:
    rest = "" if not function.parameters and function.public else f", {function.parameters!r}, public={function.public}"
    kind = f"FunctionKind.{function.kind.name}"
    return f"ib.declare_function({function.name!r}, {kind}{rest}{_interface(function)})"


def _interface(function: FunctionInfo) -> str:
    """The keywords for what is said beside the parameters."""
    results = f", result_names={function.result_names!r}" if function.result_names else ""
    return results + (f", types={function.types!r}" if function.types != UNTYPED else "")


def _native(native: NativeObject) -> str:
    code = base64.b64encode(native.code).decode()
    return (
        f"ib.add_native_object(NativeObject({native.target!r}, {native.format!r}, "
        f"base64.b64decode({code!r}), {native.symbols!r}))"
    )


def _value(constant: Constant) -> str:
    value = constant.value
    match value:
        case tvm_ffi.Tensor():
            data = base64.b64encode(np.ascontiguousarray(to_numpy(value)).tobytes()).decode()
            return f"tensor_constant({tensor_element(value).name!r}, {tuple(value.shape)!r}, {data!r})"
        case ElementType():
            return f"dtype_constant({value.name!r})"
        case tvm_ffi.Shape():
            return f"tvm_ffi.Shape({tuple(value)!r})"
        case float():
            return f"float.fromhex({value.hex()!r})"
        case _:
            return repr(value)


def _header(function: FunctionInfo) -> str:
    return (
        f"with ib.function({function.name!r}, {len(function.parameters)}, {function.parameters!r}, "
        f"public={function.public}, frame_size={function.frame_size}{_interface(function)}):"
    )


def _body(executable: ExecutableContents, function: FunctionInfo, names: Sequence[str]) -> list[str]:
    return [
        f"    {_instruction(executable.code[index], names, executable.locations.get(index, ''))}"
        for index in range(function.start, function.end)
    ]


def _instruction(instruction: Instruction, names: Sequence[str], location: str) -> str:
    match instruction:
        case Call(destination, function, arguments):
            shown = ", ".join(_operand(argument, names) for argument in arguments)
            target = "" if destination == VOID_REGISTER else f", dst=ib.r({destination})"
            comment = f", location={location!r}" if location else ""
            return f"ib.emit_call({names[function]!r}, args=[{shown}]{target}{comment})"
        case Ret(value):
            return f"ib.emit_ret({_operand(value, names)})"
        case Goto(offset):
            return f"ib.emit_goto({offset})"
        case If(condition, false_offset):
            return f"ib.emit_if({_operand(condition, names)}, {false_offset})"


def _operand(operand: Operand, names: Sequence[str]) -> str:
    if operand == VOID:
        return "ib.void_arg()"
    if operand == STATE:
        return "ib.vm_state()"
    match operand.kind:
        case OperandKind.REGISTER:
            return f"ib.r({operand.value})"
        case OperandKind.IMMEDIATE:
            return f"ib.imm({operand.value})"
        case OperandKind.CONSTANT:
            return f"ib.c({operand.value})"
        case OperandKind.FUNCTION:
            return f"ib.f({names[operand.value]!r})"
