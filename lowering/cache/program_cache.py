"""Whole executables on disk, keyed by the module and the options of the build.

An entry is an executable file, with this user's seal for its key, which validates itself when it is read, beside the
entries for single kernels and under the same size limit. Constants that are the module's own weights are not copied:
the file says which weight each is, and whoever loads the executable has the module.

Where a module is made from a file that holds its weights, such as a language model, `FilePrograms` keeps which
executable that was, and where its weights are in the file: so the module need not be made again.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import tvm_ffi

from lowering.cache.code_cache import CodeCache, cache_key
from lowering.cache.module_digest import ModuleDigest, program_compiler_version
from lowering.llvm.binding import library_version
from tir_dialect.target import Target
from vm_dialect.dtypes import element_type
from vm_dialect.executable import Executable
from vm_dialect.executable.format import Trust, read_file, write_file
from vm_dialect.executable.model import Constant, ConstantKind
from vm_dialect.files import MappedFile
from vm_dialect.ops.values import ConstantSymbolOp, KeptTensor
from vm_dialect.tensors import from_numpy, new_tensor, tensor_element

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Weights: TypeAlias = Mapping[str, tvm_ffi.Tensor]
"""Tensors that are given to `build` beside the module, by name."""

Source: TypeAlias = "int | list[str]"
"""Where a constant comes from: the index of an array of the module, or name, dtype and shape of a tensor beside it."""

_Span: TypeAlias = "tuple[int, int, str, Sequence[int]]"
"""Where an array is in the files: the number of the file, its first byte, dtype and shape."""

LARGE_BYTES = 32 << 20
"""An executable of more takes so long to be checked and written that its first call does not wait for that."""

_NOTE = "weights"
"""The note of the file that says where constants come from that are not in it: a dictionary in JSON, by name."""


@dataclass(frozen=True)
class ProgramCache:
    """The cached executable of one module and one set of options."""

    cache: CodeCache
    arrays: Sequence[Array | None]
    """The module's weights; `None` for one that is not here."""
    weights: Weights
    key: str

    @classmethod
    def of(
        cls, cache: CodeCache, module: ModuleDigest, weights: Weights, target: Target, how: Iterable[str]
    ) -> ProgramCache:
        """`how` is what else the executable depends on: mode, options, what the tuner has found."""
        key = cache_key(["program", _versions(), str(target), *how, module.digest])
        return cls(cache, module.arrays, weights, key)

    def load(self) -> Executable | None:
        """The executable if it is there; a damaged one is dropped."""
        path = self.cache.find(self.key)
        if path is None:
            return None
        try:
            stored = read_file(Executable, path, Trust(purpose=self._purpose), private=True)
            if stored.is_foreign:
                raise ValueError(f"{path} is another entry, or another user's")
            notes = dict(stored.metadata.notes)
            sources: dict[str, Source] = json.loads(notes.pop(_NOTE))
            constants = [self._filled(constant, sources.get(constant.name)) for constant in stored.constants]
        except (OSError, ValueError, LookupError):
            self.cache.drop(self.key)
            return None
        if any(constant is None for constant in constants):
            return None  # a tensor that is missing or another one: building says so
        found = tuple(constant for constant in constants if constant is not None)
        return replace(stored, constants=found, metadata=replace(stored.metadata, notes=notes))

    def store(self, executable: Executable, symbols: Iterable[ConstantSymbolOp]) -> None:
        """Keeps an executable unless it is too large for the cache; `symbols` say where its constants come from."""
        sources = {op.sym_name.data: source for op in symbols if (source := self._source(op)) is not None}
        constants = tuple(
            Constant(new_tensor((0,), element_type("ui8")), each.name) if each.name in sources else each
            for each in executable.constants
        )
        size = sum(map(_tensor_bytes, constants)) + sum(len(item.code) for item in executable.native)
        notes = {**executable.metadata.notes, _NOTE: json.dumps(sources)}
        if size <= self.cache.max_bytes // 2:
            kept = replace(executable, constants=constants, metadata=replace(executable.metadata, notes=notes))
            is_large = size > LARGE_BYTES
            self.cache.add(self.key, lambda path: write_file(kept, path, self._purpose, private=True), later=is_large)

    @property
    def _purpose(self) -> str:
        """What seals of the entry are for: none stands for another, in whatever position somebody puts it."""
        return f"program {self.key}"

    @cached_property
    def _indices(self) -> Mapping[int, int]:
        """The index of an array, by identity."""
        return {id(array): index for index, array in enumerate(self.arrays)}

    def _source(self, op: ConstantSymbolOp) -> Source | None:
        """Where a constant comes from; None for one that was made by the compiler."""
        kept = op.value if isinstance(op.value, KeptTensor) else None
        if kept is not None and (array := kept.kept_array()) is not None:
            return self._indices.get(id(array))
        if kept is None and op.value is not None:
            return None
        name = op.sym_name.data if kept is None else kept.weight_name
        return [name, _kind(self.weights[name])] if name in self.weights else None

    def _filled(self, constant: Constant, source: Source | None) -> Constant | None:
        if source is None:
            return constant
        if isinstance(source, int):
            array = self.arrays[source]
            return None if array is None else Constant(from_numpy(array), constant.name)
        name, kind = source
        given = self.weights.get(name)
        return None if given is None or _kind(given) != kind else Constant(given, constant.name)


@dataclass(frozen=True)
class FilePrograms:
    """The executable of the module that is made from a file, or several, for one set of options."""

    cache: CodeCache
    files: Sequence[MappedFile]
    key: str

    @classmethod
    def of(cls, cache: CodeCache, files: Sequence[MappedFile], target: Target, how: Iterable[str]) -> FilePrograms:
        """`how` is what else the module and the executable depend on."""
        identities = [file.identity for file in files]
        return cls(cache, files, cache_key(["file", _versions(), str(target), *how, *identities]))

    def load(self) -> Executable | None:
        """The executable with weights in the files, if it is there; a damaged one is dropped."""
        data = self.cache.get(self.key)
        if data is None:
            return None
        try:
            program, spans = cast("tuple[str, list[_Span | None]]", json.loads(data))
            arrays = [None if span is None else self._array(span) for span in spans]
        except (ValueError, TypeError, IndexError):
            self.cache.drop(self.key)
            return None
        return ProgramCache(self.cache, arrays, {}, program).load()

    def store(self, programs: ProgramCache) -> None:
        """Keeps where the executable is, which `programs` has, and where its weights are in the files."""
        spans = [None if array is None else self._span(array) for array in programs.arrays]
        self.cache.put(self.key, json.dumps([programs.key, spans]).encode())

    @cached_property
    def _bytes(self) -> list[Array]:
        import numpy as np

        return [np.frombuffer(file.memory, np.uint8) for file in self.files]

    def _span(self, array: Array) -> _Span | None:
        """Where an array is in the files; `None` if it is not there."""
        for number, memory in enumerate(self._bytes):
            first = array.ctypes.data - memory.ctypes.data
            if array.flags.c_contiguous and 0 <= first <= memory.nbytes - array.nbytes:
                return number, first, array.dtype.name, array.shape
        return None

    def _array(self, span: _Span) -> Array:
        import numpy as np

        number, first, dtype, shape = span
        return np.frombuffer(self.files[number].memory, np.dtype(dtype), math.prod(shape), first).reshape(shape)


def _versions() -> str:
    return f"{program_compiler_version()} {library_version()} {tvm_ffi.__version__} {sys.version_info[:3]}"


def _kind(tensor: tvm_ffi.Tensor) -> str:
    return f"{tensor_element(tensor).name}{list(tensor.shape)}"


def _tensor_bytes(constant: Constant) -> int:
    if constant.kind is not ConstantKind.TENSOR or not isinstance(constant.value, tvm_ffi.Tensor):
        return 0
    size = tensor_element(constant.value).itemsize
    for dim in constant.value.shape:
        size *= dim
    return size
