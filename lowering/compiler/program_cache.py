"""Whole executables on disk, keyed by a digest of the module, the options of the build and the version of the compiler.

An entry is an executable file, with this user's seal for its key, which validates itself when it is read, beside the
entries for single kernels and under the same size limit. Constants that are the module's own weights are not copied:
the file says which weight each is, and whoever loads the executable has the module.

Where a module is made from a file that holds its weights, such as a language model, `FilePrograms` keeps which
executable that was, and where its weights are in the file: so the module need not be made again.

The digest is equal for modules that compile to the same executable, including its messages. Kernels are compared by
`tir_dialect.analysis.fingerprint`, which ignores names and locations. Here they count: an executable has names of
functions and parameters, and its errors and profiles mention locations. Nothing is printed: constant tensors are hashed
by their bytes, large ones in chunks on several threads.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import tvm_ffi
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatData,
    IntAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, Region, SSAValue

from lowering.llvm.binding import library_version
from lowering.llvm.code_cache import CodeCache, cache_key
from tir_dialect.extensions import extension_sources
from tir_dialect.target import Target
from tir_dialect.weights import WeightAttr
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

PIECE_BYTES = 1 << 23
"""Large arrays are hashed in pieces of this size."""

SAMPLE = 256
"""Elements of each end of an array that count where it is sampled."""

MOST_THREADS = 4


class ModuleDigest:
    """The digest of a module, and the arrays that it refers to."""

    arrays: list[Array]
    """The elements of the module's weights, each array once, in order of appearance."""

    digest: bytes
    """Equal for equal modules: structure, attributes, elements of constants, names and locations."""

    def __init__(self, module: ModuleOp, *, sampled: bool = False) -> None:
        """Walks over the module once. `sampled` arrays count by their first and last elements only: the rest of what is
        mapped from a file is not read.
        """
        self.arrays = []
        self._indices: dict[int, int] = {}
        """The index of an array among `arrays`, by identity."""
        self._texts: dict[int, tuple[Attribute, str]] = {}
        """Texts of attributes by identity; each stays alive beside its text, or another could replace it."""
        self._numbers: dict[SSAValue | Block, int] = {}
        parts: list[str] = []
        self._op(module, parts)
        own = hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass"))
        for digest in array_digests([_ends(array) for array in self.arrays] if sampled else self.arrays):
            own.update(digest)
        self.digest = own.digest()

    def _number(self, key: SSAValue | Block) -> int:
        """Values and blocks by order of appearance; a use may come before the definition."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _op(self, op: Operation, parts: list[str]) -> None:
        parts.append(f"{op.name} {self._text(op.location)}")
        parts.extend(f" %{self._number(operand)}" for operand in op.operands)
        parts.extend(f" ^{self._number(block)}" for block in op.successors)
        self._dictionary("<", op.properties, parts)
        self._dictionary("{", op.attributes, parts)
        self._values(op.results, parts)
        for region in op.regions:
            self._region(region, parts)
        parts.append("\n")

    def _region(self, region: Region, parts: list[str]) -> None:
        parts.append("(")
        for block in region.blocks:
            parts.append(f"^{self._number(block)}")
            self._values(block.args, parts)
            parts.append("\n")
            for op in block.ops:
                self._op(op, parts)
        parts.append(")")

    def _values(self, values: Sequence[SSAValue], parts: list[str]) -> None:
        for value in values:
            parts.append(f":{self._number(value)} {value.name_hint or ''} {self._text(value.type)}")

    def _dictionary(self, mark: str, attributes: Mapping[str, Attribute], parts: list[str]) -> None:
        for name in sorted(attributes):
            parts.append(f" {mark}{name}={self._text(attributes[name])}")

    def _text(self, attribute: Attribute) -> str:
        known = self._texts.get(id(attribute))
        if known is None:
            known = self._texts[id(attribute)] = attribute, self._write(attribute)
        return known[1]

    def _write(self, attribute: Attribute) -> str:
        """Exact and unambiguous, which printed numbers and strings need not be."""
        match attribute:
            case WeightAttr():
                return f"weight {_quoted(attribute.weight_name)} {self._array(attribute.array)}"
            case DenseIntOrFPElementsAttr():
                elements = hashlib.sha256(attribute.data.data).hexdigest()
                return f"dense {self._text(attribute.type)} {elements}"
            case StringAttr():
                return _quoted(attribute.data)
            case IntAttr():
                return f"#{attribute.data}"
            case FloatData():
                return f"f{struct.pack('<d', attribute.data).hex()}"
            case DictionaryAttr():
                inner = (f"{_quoted(name)}={self._text(attribute.data[name])}" for name in sorted(attribute.data))
                return f"{{{','.join(inner)}}}"
            case ParametrizedAttribute():
                return f"{attribute.name}<{','.join(map(self._text, attribute.parameters))}>"
            case ArrayAttr():
                return f"[{','.join(map(self._text, attribute.data))}]"
            case _:
                return f"{attribute.name} {_quoted(str(attribute))}"

    def _array(self, array: Array | None) -> str:
        """The number of a weight's array, of which the elements are hashed at the end."""
        if array is None:
            return "-"
        position = self._indices.setdefault(id(array), len(self._indices))
        if position == len(self.arrays):
            self.arrays.append(array)
        return f"{position}"


def _quoted(text: str) -> str:
    """A string that nothing after it can be taken for a part of."""
    return f"{len(text)}'{text}"


def array_digests(arrays: Sequence[Array]) -> list[bytes]:
    """A digest of dtype, shape and elements of each array; large arrays in pieces, by several threads."""
    pieces = [list(_pieces(array)) for array in arrays]
    flat = [piece for each in pieces for piece in each]
    threads = min(MOST_THREADS, os.cpu_count() or 1)
    if sum(map(len, flat)) < PIECE_BYTES or threads == 1:
        hashed = iter([_hash(piece) for piece in flat])
    else:
        with ThreadPoolExecutor(threads) as pool:
            hashed = iter(list(pool.map(_hash, flat)))
    return [
        _hash(b"".join([f"{array.dtype.str} {array.dtype} {array.shape}".encode(), *(next(hashed) for _ in each)]))
        for array, each in zip(arrays, pieces, strict=True)
    ]


def _ends(array: Array) -> Array:
    """The first and last elements of an array."""
    import numpy as np

    flat = array.reshape(-1)
    return np.concatenate([flat[:SAMPLE], flat[-SAMPLE:]])


def _pieces(array: Array) -> Iterator[memoryview]:
    import numpy as np

    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, data.size, PIECE_BYTES):
        yield data[start : start + PIECE_BYTES].data


def _hash(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


_PACKAGES = ("lowering", "relax_dialect", "tir_dialect", "vm_dialect")
_KERNEL_SOURCES = (
    "lowering/compiler/kernel",
    "lowering/kernels/",
    "lowering/llvm/",
    "lowering/locations.py",
    "lowering/registry.py",
    "lowering/pipelines.py",
    "lowering/rewriting.py",
    "lowering/runtime/",
    "lowering/tir/",
    "lowering/tir_to_llvm/",
    "tir_dialect/",
    "vm_dialect/messages.py",
)
"""How the paths of those begin that decide what code kernels get."""

_SUFFIXES = (".py", ".ll")


@dataclass(frozen=True)
class Source:
    """A source file."""

    path: str
    """Below the folder that has all packages, with slashes."""
    size: int
    changed: int
    """When it was changed last, in nanoseconds."""


def compiler_version() -> str:
    """Changes whenever a source file does that decides what code kernels get; takes a few milliseconds, once."""
    return f"{_kernel_digest()}{_extensions_digest()}"


def program_compiler_version() -> str:
    """Changes whenever a source file of ours or of a loaded extension does, or xDSL or NumPy: for what the whole
    compiler makes.
    """
    import numpy as np
    import xdsl

    return f"{_program_digest()}{_extensions_digest()} {xdsl.__version__} {np.__version__}"


@cache
def _kernel_digest() -> str:
    return sources_digest(_root(), [source for source in _ours() if source.path.startswith(_KERNEL_SOURCES)])


@cache
def _program_digest() -> str:
    return sources_digest(_root(), _ours())


def _extensions_digest() -> str:
    """Nothing without extensions; not kept, as more of them may be loaded."""
    files = [(path, path.stat()) for path in extension_sources() if path.is_file()]
    sources = [Source(str(path), status.st_size, status.st_mtime_ns) for path, status in files]
    return f" {sources_digest(_root(), sources)}" if sources else ""


def sources_digest(root: Path, sources: Sequence[Source]) -> str:
    """Other for other files. Contents are read only where times tell nothing, since all are the same: reproducible
    builds of packages set them so.
    """
    digest = hashlib.sha256()
    by_contents = len({source.changed for source in sources}) < 2
    for source in sources:
        fact = hashlib.sha256((root / source.path).read_bytes()).hexdigest() if by_contents else source.changed
        digest.update(f"{source.path} {source.size} {fact}\n".encode())
    return digest.hexdigest()[:16]


def find_sources(root: Path, packages: Iterable[str]) -> list[Source]:
    """Every source file of packages, in order."""
    found = (source for package in packages for source in _below(str(root / package), package))
    return sorted(found, key=lambda source: source.path)


def _below(folder: str, path: str) -> Iterator[Source]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield Source(f"{path}/{entry.name}", status.st_size, status.st_mtime_ns)
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _below(entry.path, f"{path}/{entry.name}")


@cache
def _ours() -> list[Source]:
    return find_sources(_root(), _PACKAGES)


def _root() -> Path:
    return Path(__file__).parents[2]


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Weights: TypeAlias = Mapping[str, tvm_ffi.Tensor]
"""Tensors that are given to `build` beside the module, by name."""

Origin: TypeAlias = "int | list[str]"
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
            sources: dict[str, Origin] = json.loads(notes.pop(_NOTE))
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

    def _source(self, op: ConstantSymbolOp) -> Origin | None:
        """Where a constant comes from; None for one that was made by the compiler."""
        kept = op.value if isinstance(op.value, KeptTensor) else None
        if kept is not None and (array := kept.kept_array()) is not None:
            return self._indices.get(id(array))
        if kept is None and op.value is not None:
            return None
        name = op.sym_name.data if kept is None else kept.weight_name
        return [name, _kind(self.weights[name])] if name in self.weights else None

    def _filled(self, constant: Constant, source: Origin | None) -> Constant | None:
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
