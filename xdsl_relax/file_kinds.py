"""The kinds of files that hold programs: the one table of all tools and of `load`."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from relax_dialect.frontend.onnx.parameters import GivenShapes
    from xdsl_relax.errors import RelaxError

MOST_TEXT = 1 << 30
"""Characters of a text."""

STDIN = "-"
"""The path that stands for standard input."""


class Holds(Enum):
    """What a file of a kind holds."""

    MODULE = auto()
    EXECUTABLE = auto()
    """Bytecode, with or without machine code."""
    LIBRARY = auto()
    """A shared library of `export_library`."""


@dataclass(frozen=True)
class ReadOptions:
    """What a reader of modules may be told beside the file."""

    dynamic: bool = False
    """Whether every dimension of an input of an ONNX model is a symbol."""
    shapes: GivenShapes = ()
    """The shapes of the inputs of an ONNX model, as `import_model` takes them."""
    entry: str = "main"
    """What the function of an imported model is called."""
    target: str | None = None
    """The machine of a TVMScript file, which says how long its vectors are."""


@dataclass(frozen=True)
class Source:
    """A file, or what has been read from standard input."""

    name: str
    """The path, or `<stdin>`, for messages and locations."""
    data: bytes | None = None
    """What standard input held; `None` for a file."""

    @property
    def content(self) -> str | bytes:
        """The path or the contents, as importers take either."""
        return self.name if self.data is None else self.data

    def text(self) -> str:
        """The text in it; `RelaxError` if there is something else, or no end of it."""
        try:
            if self.data is not None:
                return self.data.decode()
            with open(self.name, encoding="utf-8") as file:
                text = file.read(MOST_TEXT + 1)
        except UnicodeDecodeError as error:
            raise _error(no_text(self.name, error)) from error
        if len(text) > MOST_TEXT:
            raise _error(f"{self.name}: expected a text of at most {MOST_TEXT} characters")
        return text


@dataclass(frozen=True)
class FileKind:
    """A kind of file, told by how names end."""

    suffix: str
    what: str
    """What a message calls it, with its article."""
    holds: Holds
    read: Callable[[Source, ReadOptions], ModuleOp] | None = None
    """Makes the module, which is not verified; `None` for what is compiled already."""
    package: str | None = None
    """The package that reading takes beside ours."""
    is_text: bool = False


def kind_of(path: str | PathLike[str]) -> FileKind | None:
    """The kind of a file by its name; of standard input by what is in it. `None` for any other."""
    if fspath(path) == STDIN:
        return kind_of_contents(standard_input())
    return KINDS.get(Path(path).suffix)


def kind_of_contents(data: bytes) -> FileKind:
    """The kind of file that has these contents."""
    for start, suffix in _STARTS.items():
        if data.startswith(start):
            return KINDS[suffix]
    if _CONTROL.search(data[:1024]) is not None:
        return KINDS[".onnx"]  # which has no mark of its own
    return KINDS[".py" if is_script(data.decode(errors="replace")) else ".mlir"]


def is_script(text: str) -> bool:
    """Whether a text is TVMScript."""
    return _SCRIPT.search(text) is not None


def require_kind(path: str, *holds: Holds) -> FileKind:
    """The kind of a file; `RelaxError`, which lists those that hold one of these, if it is none that there is."""
    kind = kind_of(path)
    if kind is None:
        missing = "" if os.path.exists(path) else ", which does not exist"
        raise _error(f"expected a file that ends in one of {', '.join(suffixes(*holds))}, got {path}{missing}")
    return kind


def require_module(path: str) -> FileKind:
    """The kind of a file that holds a module; `RelaxError` for any other."""
    kind = require_kind(path, Holds.MODULE)
    if kind.read is None:
        raise _error(f"{path}: expected a module, got {kind.what}, which is compiled: relax-run runs it")
    return kind


def source_of(path: str) -> Source:
    """The file at a path; `-` is standard input."""
    return Source("<stdin>", standard_input()) if path == STDIN else Source(path)


def suffixes(*holds: Holds) -> tuple[str, ...]:
    """How the names of files end that hold one of these."""
    return tuple(kind.suffix for kind in KINDS.values() if kind.holds in holds)


def standard_input() -> bytes:
    """What standard input holds, which is read once."""
    stream = sys.stdin
    if stream not in _READ:
        _READ[stream] = stream.buffer.read()
    return _READ[stream]


_READ: WeakKeyDictionary[TextIO, bytes] = WeakKeyDictionary()


def no_text(path: str, error: UnicodeDecodeError) -> str:
    """What is said about a file that holds something else than text."""
    return f"{path}: expected text in UTF-8, got the byte {error.object[error.start]:#04x} at position {error.start}"


_SCRIPT = re.compile(r"^\s*@(\w+\.)?(ir_module|function|prim_func)\b", re.MULTILINE)

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""What no text has."""

_STARTS: Mapping[bytes, str] = {
    b"\x89RVM\r\n\x1a\n": ".rvm",
    b"\x7fELF": ".so",
    b"GGUF": ".gguf",
    b"PK\x03\x04": ".pt2",
}
"""How the contents of files begin."""


def _text(source: Source, options: ReadOptions) -> ModuleOp:
    text = source.text()
    if is_script(text):
        from relax_dialect.frontend.tvmscript import parse

        return parse(text, filename=source.name, target=options.target)
    from lowering.parsing import parse_module

    return parse_module(text, source.name)


def _onnx(source: Source, options: ReadOptions) -> ModuleOp:
    from relax_dialect.frontend.onnx import import_model

    return import_model(source.content, dynamic=options.dynamic, shapes=options.shapes, entry=options.entry)


def _torch(source: Source, options: ReadOptions) -> ModuleOp:
    from relax_dialect.frontend.torch import import_file

    return import_file(source.name if source.data is None else io.BytesIO(source.data), entry=options.entry)


def _script(source: Source, options: ReadOptions) -> ModuleOp:
    from relax_dialect.frontend.tvmscript import parse

    return parse(source.text(), filename=source.name, target=options.target)


def _gguf(source: Source, options: ReadOptions) -> ModuleOp:
    if source.data is not None:
        raise _error("a language model (.gguf) is mapped into memory: give its file, not standard input")
    from lowering.generation.language_model import program_of

    return program_of(source.name)


KINDS: Mapping[str, FileKind] = {
    kind.suffix: kind
    for kind in (
        FileKind(".mlir", "a text of MLIR", Holds.MODULE, _text, is_text=True),
        FileKind(".onnx", "an ONNX model", Holds.MODULE, _onnx, "onnx"),
        FileKind(".pt2", "an exported program of PyTorch", Holds.MODULE, _torch, "torch"),
        FileKind(".py", "a TVMScript file", Holds.MODULE, _script, is_text=True),
        FileKind(".gguf", "a language model", Holds.MODULE, _gguf),
        FileKind(".rvm", "an executable", Holds.EXECUTABLE),
        FileKind(".so", "a shared library", Holds.LIBRARY),
    )
}


def read_module(path: str, options: ReadOptions | None = None, suffix: str | None = None) -> ModuleOp:
    """The module in a file, or on standard input, not yet verified; of the kind that `suffix` says, or its own.

    `RelaxError` says of which file what is wrong, and which package is missing.
    """
    given = ReadOptions() if options is None else options
    kind, source = require_module(path) if suffix is None else KINDS[suffix], source_of(path)
    if kind.read is None:
        raise _error(f"{source.name} holds no module")
    if isinstance(given.shapes, Mapping) and given.shapes and kind.suffix != ".onnx":
        which = "the text" if kind.is_text else kind.what
        raise _error(f"{source.name}: --shape is for ONNX models; {which} says its shapes")
    if source.data is None and not kind.is_text:
        from vm_dialect.files import open_regular

        open_regular(path).close()
    try:
        return kind.read(source, given)
    except ModuleNotFoundError as error:
        if kind.package is None:
            raise
        needs = f"{source.name} needs the package {kind.package}: pip install {kind.package} ({error})"
        raise _error(needs) from error
    except ImportError as error:  # what the importers raise
        raise _error(f"{source.name}: {error}") from error


def suffix_of(path: object) -> str | None:
    """How the name of a file ends, if it is one and of a kind that there is."""
    if not isinstance(path, str | PathLike):
        return None
    suffix = os.path.splitext(fspath(cast("PathLike[str]", path)))[1]
    return suffix if suffix in KINDS else None


def _error(message: str) -> RelaxError:
    """An error of the library, which needs xDSL; that is not there where executables and libraries are only run."""
    from xdsl_relax.errors import RelaxError

    return RelaxError(message)
