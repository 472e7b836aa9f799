"""The sections of the file, each written and read here, so that both directions are seen together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import BY_DLPACK, ElementType, element_type
from vm_dialect.executable.byte_io import Reader, Writer
from vm_dialect.executable.constants import Constant, ConstantKind, Value
from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.instructions import Instruction, decode, encode
from vm_dialect.executable.model import (
    FunctionInfo,
    FunctionKind,
    KernelParameter,
    KernelSignature,
    Metadata,
    NativeObject,
    SignatureTypes,
)
from vm_dialect.tensors import ALIGNMENT, Array, tensor_element, tensor_on, to_numpy

DATA = "DATA"
SECTIONS = ("META", "FUNC", "CODE", "LOCS", "NATV", "CONS", DATA)
"""Tags of all sections, in the order of the file. `DATA` holds the elements of tensors."""

E = TypeVar("E", bound=ExecutableContents)

Part: TypeAlias = "bytes | memoryview"

_MAX_RANK = 64


def encode_sections(executable: ExecutableContents) -> list[tuple[bytes, Sequence[Part]]]:
    """Tag and contents of every section, in order."""
    writers = {tag: Writer() for tag in SECTIONS if tag != DATA}
    _write_metadata(writers["META"], executable.metadata)
    writers["FUNC"].list(executable.functions, lambda function: _write_function(writers["FUNC"], function))
    _write_code(writers["CODE"], executable.code)
    locations = sorted(executable.locations.items())
    writers["LOCS"].list(locations, lambda item: _write_location(writers["LOCS"], item))
    writers["NATV"].list(executable.native, lambda native: _write_native(writers["NATV"], native))
    data = _write_constants(writers["CONS"], executable.constants)
    return [(tag.encode(), data if tag == DATA else [bytes(writers[tag].data)]) for tag in SECTIONS]


def read_sections(make: type[E], readers: Mapping[str, Reader], data: Array, is_foreign: bool) -> E:
    """The executable in the sections, of the class `make`.

    `ValueError` with section and position if something is wrong.
    """
    metadata = _read_metadata(readers["META"])
    functions = readers["FUNC"].list(lambda: _read_function(readers["FUNC"]))
    code = _read_code(readers["CODE"])
    locations = readers["LOCS"].list(lambda: (readers["LOCS"].u32(), readers["LOCS"].string()))
    native = readers["NATV"].list(lambda: _read_native(readers["NATV"]))
    constants = readers["CONS"].list(lambda: _read_constant(readers["CONS"], data))
    for reader in readers.values():
        reader.finish()
    return make(functions, constants, code, native, metadata, dict(locations), is_foreign)


def _write_metadata(writer: Writer, metadata: Metadata) -> None:
    writer.string(metadata.mode)
    writer.string(metadata.target)
    writer.list(metadata.kernels, lambda kernel: _write_kernel(writer, kernel))
    writer.list(sorted(metadata.notes.items()), lambda note: _write_note(writer, note))


def _write_note(writer: Writer, note: tuple[str, str]) -> None:
    writer.string(note[0])
    writer.string(note[1])


def _read_metadata(reader: Reader) -> Metadata:
    mode, target = reader.string(), reader.string()
    kernels = reader.list(lambda: _read_kernel(reader))
    notes = reader.list(lambda: (reader.string(), reader.string()))
    return Metadata(mode, target, kernels, dict(notes))


def _write_kernel(writer: Writer, kernel: KernelSignature) -> None:
    writer.string(kernel.name)
    writer.u32(kernel.sizes)
    writer.list(kernel.parameters, lambda parameter: _write_parameter(writer, parameter))


def _read_kernel(reader: Reader) -> KernelSignature:
    return KernelSignature(reader.string(), reader.u32(), reader.list(lambda: _read_parameter(reader)))


def _write_parameter(writer: Writer, parameter: KernelParameter) -> None:
    _write_dtype(writer, element_type(parameter.dtype))
    writer.i64(parameter.rank)


def _read_parameter(reader: Reader) -> KernelParameter:
    element, rank = _read_dtype(reader), reader.i64()
    if not -1 <= rank <= _MAX_RANK:
        reader.fail(f"rank {rank} of a kernel's parameter")
    return KernelParameter(element.name, rank)


def _write_dtype(writer: Writer, element: ElementType) -> None:
    writer.u8(element.code)
    writer.u8(element.bits)


def _read_dtype(reader: Reader) -> ElementType:
    code, bits = reader.u8(), reader.u8()
    element = BY_DLPACK.get((code, bits))
    if element is None:
        reader.fail(f"unknown element type of code {code} and {bits} bits")
    return element


def _write_function(writer: Writer, function: FunctionInfo) -> None:
    writer.u8(function.kind)
    writer.string(function.name)
    writer.list(function.parameters, writer.string)
    writer.u8(function.public)
    writer.u64(function.start)
    writer.u64(function.end)
    writer.u64(function.frame_size)
    writer.list(function.result_names, writer.string)
    writer.list(function.types.parameters, writer.string)
    writer.string(function.types.result)


def _read_function(reader: Reader) -> FunctionInfo:
    kind = reader.u8()
    if kind > FunctionKind.NATIVE:
        reader.fail(f"unknown kind of function {kind}")
    name, parameters = reader.string(), reader.list(reader.string)
    public = _read_flag(reader)
    start, end, frame_size = reader.u64(), reader.u64(), reader.u64()
    results = reader.list(reader.string)
    types = SignatureTypes(reader.list(reader.string), reader.string())
    return FunctionInfo(FunctionKind(kind), name, parameters, public, start, end, frame_size, results, types)


def _read_flag(reader: Reader) -> bool:
    flag = reader.u8()
    if flag > 1:
        reader.fail(f"expected 0 or 1, got {flag}")
    return bool(flag)


def _write_code(writer: Writer, code: Sequence[Instruction]) -> None:
    words = [word for instruction in code for word in encode(instruction)]
    writer.u64(len(words))
    writer.words(words)


def _read_code(reader: Reader) -> tuple[Instruction, ...]:
    words = reader.words(reader.u64())
    code: list[Instruction] = []
    position = 0
    while position < len(words):
        try:
            instruction, position = decode(words, position)
        except ValueError as error:
            reader.fail(f"word {position}: {error}")
        code.append(instruction)
    return tuple(code)


def _write_location(writer: Writer, item: tuple[int, str]) -> None:
    writer.u32(item[0])
    writer.string(item[1])


def _write_native(writer: Writer, native: NativeObject) -> None:
    writer.string(native.target)
    writer.string(native.format)
    writer.list(native.symbols, writer.string)
    writer.blob(native.code)


def _read_native(reader: Reader) -> NativeObject:
    target, format_, symbols = reader.string(), reader.string(), reader.list(reader.string)
    return NativeObject(target, format_, reader.blob(), symbols)


def _write_constants(writer: Writer, constants: Sequence[Constant]) -> list[Part]:
    """Writes the constants and returns the contents of the section with the elements of tensors."""
    data: list[Part] = []
    size = 0

    def write(constant: Constant) -> None:
        nonlocal size
        writer.u8(constant.kind)
        writer.string(constant.name)
        if not isinstance(constant.value, tvm_ffi.Tensor):
            _write_value(writer, constant.value)
            return
        elements = np.ascontiguousarray(to_numpy(constant.value)).reshape(-1).view(np.uint8).data
        _write_dtype(writer, tensor_element(constant.value))
        writer.list(constant.value.shape, writer.u64)
        writer.u64(size)
        padding = bytes(-len(elements) % ALIGNMENT)
        data.extend((elements, padding))
        size += len(elements) + len(padding)

    writer.list(constants, write)
    return data


def _write_value(writer: Writer, value: Value) -> None:
    match value:
        case ElementType():
            _write_dtype(writer, value)
        case tvm_ffi.Shape():
            writer.list(value, writer.i64)
        case str():
            writer.string(value)
        case bool():
            writer.u8(value)
        case int():
            writer.i64(value)
        case float():
            writer.f64(value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be a constant of an executable")


def _read_constant(reader: Reader, data: Array) -> Constant:
    tag = reader.u8()
    if tag > max(ConstantKind):
        reader.fail(f"unknown kind of constant {tag}")
    kind, name = ConstantKind(tag), reader.string()
    if kind is ConstantKind.TENSOR:
        return Constant(_read_tensor(reader, data), name)
    readers: dict[ConstantKind, Callable[[], Value]] = {
        ConstantKind.SHAPE: lambda: tvm_ffi.Shape(reader.list(reader.i64)),
        ConstantKind.STRING: reader.string,
        ConstantKind.INT: reader.i64,
        ConstantKind.FLOAT: reader.f64,
        ConstantKind.DTYPE: lambda: _read_dtype(reader),
        ConstantKind.BOOL: lambda: _read_flag(reader),
    }
    return Constant(readers[kind](), name)


def _read_tensor(reader: Reader, data: Array) -> tvm_ffi.Tensor:
    element, shape, start = _read_dtype(reader), reader.list(reader.u64), reader.u64()
    # Without its zeros, so that a size of 0 cannot hide dimensions beyond what memory can have.
    if len(shape) > _MAX_RANK or prod(dim or 1 for dim in shape) >= 1 << 56:
        reader.fail(f"a tensor of shape {list(shape)}")
    size = prod(shape) * element.itemsize
    if start % ALIGNMENT or start + size > data.size:
        reader.fail(f"a tensor at bytes {start} to {start + size} of {data.size} bytes of data")
    return tensor_on(data[start : start + size], shape, element)
