"""The class `Executable`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, Literal

from vm_dialect.executable.constants import Constant, same_constant
from vm_dialect.executable.instructions import Instruction
from vm_dialect.executable.model import FunctionInfo, FunctionKind, Metadata, NativeObject
from vm_dialect.executable.verify import verify_executable


@dataclass(frozen=True, eq=False, repr=False)
class Executable:
    """A compiled module: functions, constants, bytecode and native objects.

    It is made by `lowering.build`, by `ExecBuilder` or by `load`, and is checked when it is made: `ValueError` names
    what is wrong.
    """

    functions: tuple[FunctionInfo, ...]
    constants: tuple[Constant, ...] = ()
    code: tuple[Instruction, ...] = ()
    """The instructions of all bytecode functions, in the order of the function table."""
    native: tuple[NativeObject, ...] = ()
    """Several objects of one target are linked with each other."""
    metadata: Metadata = field(default_factory=Metadata)
    locations: Mapping[int, str] = field(default_factory=dict[int, str])
    """Where an instruction comes from, by its index: the name of an imported node, or a position in a file."""
    is_foreign: bool = False
    """Whether it was read from a file for which nobody vouches. Such a program is data: it has no machine code, and
    the virtual machine lets it call its own functions, and those that the host allows it, only."""

    unproved: frozenset[int] = field(default=frozenset(), init=False, repr=False)
    """The calls of builtins, by instruction, whose arguments are checked for their kinds when they run."""

    def __post_init__(self) -> None:
        parts = (self.functions, self.constants, self.code, self.native, self.metadata, self.locations)
        object.__setattr__(self, "unproved", verify_executable(*parts))

    @cached_property
    def function_index(self) -> Mapping[str, int]:
        """Position of each function in the function table, by name."""
        return {function.name: index for index, function in enumerate(self.functions)}

    def has_function(self, name: str) -> bool:
        """Whether a function of this name can be called from outside."""
        index = self.function_index.get(name)
        return index is not None and _is_entry(self.functions[index])

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the functions that can be called from outside."""
        return tuple(function.name for function in self.functions if _is_entry(function))

    @property
    def packed_functions(self) -> tuple[str, ...]:
        """Names of the functions that are looked up in the tvm-ffi registry."""
        return tuple(f.name for f in self.functions if f.kind is FunctionKind.PACKED and not f.is_builtin)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same; constants are compared by their contents."""
        if not isinstance(other, Executable):
            return NotImplemented
        plain = ("functions", "code", "native", "metadata")
        return (
            all(getattr(self, name) == getattr(other, name) for name in plain)
            and dict(self.locations) == dict(other.locations)
            and len(self.constants) == len(other.constants)
            and all(map(same_constant, self.constants, other.constants))
        )

    def __hash__(self) -> int:
        """Equal for equal executables."""
        return hash((self.functions, self.metadata.mode, len(self.code)))

    def __repr__(self) -> str:
        """Mode, signatures and sizes, on one line."""
        functions = [self.functions[self.function_index[name]] for name in self.entries]
        listed = ", ".join(f"{function.name}{function.signature}" for function in functions[:_MOST_LISTED])
        more = f", and {len(functions) - _MOST_LISTED} more" if len(functions) > _MOST_LISTED else ""
        size = sum(len(native.code) for native in self.native)
        return (
            f"<Executable {listed or 'without functions'}{more}; {self.metadata.mode}, {_amount(size)} of machine code>"
        )

    def save(self, path: str | PathLike[str], *, weights: Literal["inside", "beside", "given"] = "inside") -> None:
        """Writes the executable to a file (`docs/reference/executable-format.md`). `OSError` if that fails.

        The file carries the seal of this user, so that `load` accepts its machine code. `weights` says where the
        elements of named constants are: in the file; `beside` it, in a file with its name and `.weights`, which is
        mapped into memory; or `given` to `load`.
        """
        from vm_dialect.executable.format import write_file
        from vm_dialect.executable.outside_weights import without_weights, write_weights

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
        from vm_dialect.executable.outside_weights import with_weights

        return with_weights(read_file(path, Trust(trust, sha256)), path, weights)

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

        return from_bytes(data, Trust(trust, sha256))

    def as_text(self) -> str:
        """A listing for people: functions with their instructions, then constants."""
        from vm_dialect.executable.text import as_text

        return as_text(self)

    def as_python(self) -> str:
        """Python source that rebuilds this executable with `ExecBuilder` and binds it to `executable`."""
        from vm_dialect.executable.python_source import as_python

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

        `ValueError` if the executable has no native code for this machine, or calls functions of Python;
        `RuntimeError` if no linker is found or it fails.
        """
        from vm_dialect.executable.library import export_library

        export_library(self, path, weights=weights, host=host)

    def save_weights(self, path: str | PathLike[str]) -> None:
        """Writes the file of weights that a library with weights `beside` has, for one with weights `given`."""
        from vm_dialect.executable.weight_file import WeightFile

        WeightFile.of(self.constants).write(self.constants, path)


_MOST_LISTED = 4
"""Functions that `repr` lists."""


def _amount(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1000:.0f} KB"


def _is_entry(function: FunctionInfo) -> bool:
    return function.public and function.kind in (FunctionKind.BYTECODE, FunctionKind.NATIVE)
