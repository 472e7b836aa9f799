"""The class `Executable`: weights may be outside of its file; it can be written as Python source that rebuilds it."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.executable.contents import ContentsT, ExecutableContents
from vm_dialect.executable.model import (
    STATE,
    UNTYPED,
    VOID,
    VOID_REGISTER,
    Call,
    Constant,
    FunctionInfo,
    FunctionKind,
    Goto,
    If,
    Instruction,
    Metadata,
    NativeObject,
    Operand,
    OperandKind,
    Ret,
)
from vm_dialect.executable.weight_file import SUFFIX, WeightFile, named_tensors
from vm_dialect.host_memory import ALIGNMENT
from vm_dialect.tensors import new_tensor, tensor_element, tensor_on, to_numpy, to_value

_NOTE = "outside weights"
"""In JSON: `file` has identity and size of the file of weights, `tensors` offset, dtype and shape of each by name."""


def write_weights(executable: ExecutableContents, path: str | PathLike[str]) -> None:
    """Writes the file of weights beside the executable at `path`."""
    WeightFile.of(executable.constants).write(executable.constants, f"{fspath(path)}{SUFFIX}")


def without_weights(executable: ContentsT, weights: str) -> ContentsT:
    """The executable without the elements of named constants; `ValueError` for a word that `save` does not take."""
    if weights not in ("beside", "given"):
        raise ValueError(f"weights expected inside, beside or given, got {weights}")
    file = WeightFile.of(executable.constants)
    tensors = {
        name: [file.offsets[name], tensor_element(tensor).name, list(tensor.shape)]
        for name, tensor in named_tensors(executable.constants).items()
    }
    note = json.dumps({"file": [file.identity.hex(), file.size], "tensors": tensors})
    constants = tuple(_empty(each) if each.name in tensors else each for each in executable.constants)
    metadata = replace(executable.metadata, notes={**executable.metadata.notes, _NOTE: note})
    return replace(executable, constants=constants, metadata=metadata)


def _empty(constant: Constant) -> Constant:
    element = tensor_element(cast("tvm_ffi.Tensor", constant.value))
    return Constant(new_tensor((0,), element), constant.name)


def with_weights(
    executable: ContentsT, path: str | PathLike[str], weights: str | PathLike[str] | Mapping[str, Any] | None
) -> ContentsT:
    """The executable with its constants, from where `Executable.load` says."""
    where, notes = fspath(path), dict(executable.metadata.notes)
    if _NOTE not in notes:
        if weights is not None:
            raise ValueError(f"{where} holds its weights: save it with weights='given' or 'beside'")
        return executable
    text = notes.pop(_NOTE)
    try:
        said: dict[str, Any] = json.loads(text)
        (identity, size), rows = said["file"], said["tensors"]
        wanted = {
            str(name): _Wanted(int(offset), element_type(dtype), tuple(map(int, shape)))
            for name, (offset, dtype, shape) in rows.items()
        }
        file = WeightFile(bytes.fromhex(identity), int(size), {name: each.offset for name, each in wanted.items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{where}: the note about weights is damaged: {error}") from None
    if isinstance(weights, Mapping):
        found = _given(wanted, weights, where)
    else:
        memory = file.map(f"{where}{SUFFIX}" if weights is None else weights)
        found: dict[str, tvm_ffi.Tensor] = {}
        for name, (offset, element, shape) in wanted.items():
            end = offset + prod(shape) * element.itemsize
            if min(shape, default=0) < 0 or offset < 0 or offset % ALIGNMENT or end > memory.size:
                raise ValueError(f"{where}: the note about weights is damaged: {name} is at bytes {offset} to {end}")
            found[name] = tensor_on(memory[offset:end], shape, element)
    constants = tuple(
        Constant(found[each.name], each.name) if each.name in found else each for each in executable.constants
    )
    return replace(executable, constants=constants, metadata=replace(executable.metadata, notes=notes))


class _Wanted(NamedTuple):
    """A constant that is outside."""

    offset: int
    element: ElementType
    shape: tuple[int, ...]


def _given(wanted: Mapping[str, _Wanted], weights: Mapping[str, Any], where: str) -> dict[str, tvm_ffi.Tensor]:
    if missing := [name for name in wanted if name not in weights]:
        raise ValueError(f"{where}: weights {', '.join(missing)} are missing")
    found: dict[str, tvm_ffi.Tensor] = {name: to_value(weights[name]) for name in wanted}
    for name, (_, element, shape) in wanted.items():
        if tensor_element(found[name]) != element or found[name].shape != shape:
            got = f"{tensor_element(found[name]).name}{list(found[name].shape)}"
            raise ValueError(f"weight {name} expected {element.name}{list(shape)}, got {got}")
    return found


_IMPORTS = (
    "import base64",
    "import tvm_ffi",
    "from vm_dialect import ExecBuilder",
    "from vm_dialect.exec_builder import dtype_constant, tensor_constant",
    "from vm_dialect.executable.model import Constant",
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


class Executable(ExecutableContents):
    """A compiled module: functions, constants, bytecode and native objects.

    It is made by `lowering.build`, by `ExecBuilder` or by `load`, and is checked when it is made: `ValueError` names
    what is wrong. What reads, writes and shows one is loaded when it is needed.
    """

    def save(self, path: str | PathLike[str], *, weights: Literal["inside", "beside", "given"] = "inside") -> None:
        """Writes the executable to a file (`docs/reference/executable-format.md`). `OSError` if that fails.

        The file carries the seal of this user, so that `load` accepts its machine code. `weights` says where the
        elements of named constants are: in the file; `beside` it, in a file with its name and `.weights`, which is
        mapped into memory; or `given` to `load`.
        """
        from vm_dialect.executable.format import write_file

        kept = self if weights == "inside" else without_weights(self, weights)
        if weights == "beside":
            write_weights(self, path)
        write_file(kept, path)

    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        trust: bool = False,
        sha256: str | None = None,
        weights: str | PathLike[str] | Mapping[str, Any] | None = None,
    ) -> Executable:
        """Reads what `save` wrote.

        `weights`, of a file that does not hold them, are the path of a file of `save_weights`, which is mapped into
        memory, or tensors by name; without them the file beside the executable is mapped.

        `UntrustedError` for a file with machine code that this user has not written, unless the caller says `trust`,
        or `sha256` is the digest of the file. A file without machine code is verified, and its program may call what
        `VirtualMachine` allows. `ValueError` with the position if the file is damaged, of another version or not an
        executable at all, and for weights that are missing or those of another program.
        """
        from vm_dialect.executable.format import Trust, read_file

        return with_weights(read_file(Executable, path, Trust(trust, sha256)), path, weights)

    def to_bytes(self) -> bytes:
        """The contents of the file that `save` writes."""
        from vm_dialect.executable.format import to_bytes

        return to_bytes(self)

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, *, trust: bool = False, sha256: str | None = None
    ) -> Executable:
        """The executable in the contents of a file; arguments and errors are those of `load`."""
        from vm_dialect.executable.format import Trust, from_bytes

        return from_bytes(Executable, data, Trust(trust, sha256))

    def as_text(self) -> str:
        """A listing for people: functions with their instructions, then constants."""
        from vm_dialect.executable.text import as_text

        return as_text(self)

    def as_python(self) -> str:
        """Python source that rebuilds this executable with `ExecBuilder` and binds it to `executable`."""
        return as_python(self)

    def stats(self) -> str:
        """What there is and how much of it, in a few lines."""
        from vm_dialect.executable.text import stats

        return stats(self)

    def export_library(
        self,
        path: str | PathLike[str],
        *,
        weights: Literal["inside", "beside", "given"] = "inside",
        host: Collection[str] = (),
    ) -> None:
        """Writes a shared library that `tvm_ffi.load_module` opens without this package.

        `weights` says where the elements of constants are: in the library; `beside` it in a file with its name and
        `.weights`, which is mapped into memory when they are used first; or `given` by `load_library`. `host` names
        packed functions that whoever loads the library registers, though this package has them in Python.

        The linker is `$CC`, or else the C compiler driver of the system for the architecture of the code, which need
        not be that of this machine.

        `ValueError` if the executable has no native code for one architecture, or calls functions of Python;
        `RuntimeError` if no linker is found or it fails.
        """
        from vm_dialect.executable.library import export_library

        export_library(self, path, weights=weights, host=host)

    def save_weights(self, path: str | PathLike[str]) -> None:
        """Writes the file of weights that a library with weights `beside` has, for one with weights `given`."""
        from vm_dialect.executable.weight_file import WeightFile

        WeightFile.of(self.constants).write(self.constants, path)
