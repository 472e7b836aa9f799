"""The class `Executable`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from typing import Any, Literal

from vm_dialect.executable.contents import ExecutableContents


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
