"""The class `Executable`."""

from __future__ import annotations

from os import PathLike

from vm_dialect.executable.contents import ExecutableContents


class Executable(ExecutableContents):
    """A compiled module: functions, constants, bytecode and native objects.

    It is made by `lowering.build`, by `ExecBuilder` or by `load`, and is checked when it is made: `ValueError` names
    what is wrong. What reads, writes and shows one is loaded when it is needed.
    """

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the executable to a file (`docs/reference/executable-format.md`). `OSError` if that fails.

        The file carries the seal of this user, so that `load` accepts its machine code.
        """
        from vm_dialect.executable.format import write_file

        write_file(self, path)

    @staticmethod
    def load(path: str | PathLike[str], *, trust: bool = False, sha256: str | None = None) -> Executable:
        """Reads what `save` wrote.

        `UntrustedError` for a file with machine code that this user has not written, unless the caller says `trust`,
        or `sha256` is the digest of the file. A file without machine code is verified, and its program may call what
        `VirtualMachine` allows. `ValueError` with the position if the file is damaged, of another version or not an
        executable at all.
        """
        from vm_dialect.executable.format import Trust, read_file

        return read_file(Executable, path, Trust(trust, sha256))

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

    def export_library(self, path: str | PathLike[str]) -> None:
        """Writes a shared library that `tvm_ffi.load_module` opens without this package.

        `ValueError` if the executable has no native code for this machine; `RuntimeError` if no linker is found or it
        fails.
        """
        from vm_dialect.executable.library import export_library

        export_library(self, path)
