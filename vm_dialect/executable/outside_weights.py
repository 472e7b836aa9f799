"""Executables whose weights are outside of their file: a note of the metadata says which constants these are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from os import PathLike, fspath
from typing import Any, NamedTuple, cast

import tvm_ffi

from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.executable.constants import Constant
from vm_dialect.executable.contents import ContentsT, ExecutableContents
from vm_dialect.executable.weight_file import SUFFIX, WeightFile, named_tensors
from vm_dialect.tensors import ALIGNMENT, Array, new_tensor, tensor_element, tensor_on
from vm_dialect.values import to_value

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
    file, wanted = _read_note(notes.pop(_NOTE), where)
    if isinstance(weights, Mapping):
        found = _given(wanted, weights, where)
    else:
        found = _mapped(wanted, file.map(f"{where}{SUFFIX}" if weights is None else weights), where)
    constants = tuple(
        Constant(found[each.name], each.name) if each.name in found else each for each in executable.constants
    )
    return replace(executable, constants=constants, metadata=replace(executable.metadata, notes=notes))


class _Wanted(NamedTuple):
    """A constant that is outside."""

    offset: int
    element: ElementType
    shape: tuple[int, ...]


def _read_note(text: str, where: str) -> tuple[WeightFile, dict[str, _Wanted]]:
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
    return file, wanted


def _given(wanted: Mapping[str, _Wanted], weights: Mapping[str, Any], where: str) -> dict[str, tvm_ffi.Tensor]:
    if missing := [name for name in wanted if name not in weights]:
        raise ValueError(f"{where}: weights {', '.join(missing)} are missing")
    found: dict[str, tvm_ffi.Tensor] = {name: to_value(weights[name]) for name in wanted}
    for name, (_, element, shape) in wanted.items():
        if tensor_element(found[name]) != element or found[name].shape != shape:
            got = f"{tensor_element(found[name]).name}{list(found[name].shape)}"
            raise ValueError(f"weight {name} expected {element.name}{list(shape)}, got {got}")
    return found


def _mapped(wanted: Mapping[str, _Wanted], memory: Array, where: str) -> dict[str, tvm_ffi.Tensor]:
    found: dict[str, tvm_ffi.Tensor] = {}
    for name, (offset, element, shape) in wanted.items():
        end = offset + prod(shape) * element.itemsize
        if min(shape, default=0) < 0 or offset < 0 or offset % ALIGNMENT or end > memory.size:
            raise ValueError(f"{where}: the note about weights is damaged: {name} is at bytes {offset} to {end}")
        found[name] = tensor_on(memory[offset:end], shape, element)
    return found
