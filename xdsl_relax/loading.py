"""Modules from files, texts, and the models of other systems."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from errno import ENOENT
from os import PathLike, fspath, strerror
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl_relax.file_kinds import KINDS, Holds, ReadOptions, is_script, suffix_of, suffixes
from xdsl_relax.file_kinds import Source as FileSource

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from relax_dialect.frontend.onnx.parameters import GivenShapes
    from vm_dialect.executable import Executable

Source: TypeAlias = Any
"""A path; the text of a module; a `ModelProto` of ONNX or its bytes; an `ExportedProgram` or `nn.Module` of PyTorch; a
module, which is taken as it is.
"""


def load(
    source: Source,
    args: Sequence[Any] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    dynamic: bool = False,
    shapes: GivenShapes = (),
    entry: str = "main",
    weights: str | PathLike[str] | None = None,
) -> ModuleOp:
    """The module in `source`, verified.

    `args`, `kwargs` and `dynamic_shapes` are what `torch.export.export` takes beside a module of PyTorch. `dynamic` and
    `shapes` are about the inputs of ONNX models, as `import_model` takes them. `entry` is what the function of an
    imported model is called. `weights` is a file (.safetensors) with the weights that a text refers to by name.

    `TypeError` for options that do not go with the source, `ValueError` for a path of another kind, `OSError` for a
    file that cannot be read, and the errors of the readers.
    """
    for_torch = {"args": args, "kwargs": kwargs, "dynamic_shapes": dynamic_shapes}
    _check_options(source, for_torch, {"dynamic": dynamic or None, "shapes": shapes or None})
    if _is_of("xdsl", source):  # where executables and libraries are only run, xdsl need not be installed
        module = source
    elif (path := _path(source)) is not None:
        kind = KINDS.get(path.suffix)
        if kind is None:
            raise _wrong_path(path)
        if kind.read is None:
            raise ValueError(f"{path} is {kind.what}, which is compiled: compile(path) or Session(path) loads it")
        if not path.exists():  # of which each reader would say something else
            raise FileNotFoundError(ENOENT, strerror(ENOENT), str(path))
        module = kind.read(FileSource(str(path)), ReadOptions(dynamic, shapes, entry))
    elif isinstance(source, str):
        module = _load_text(source)
    elif isinstance(source, bytes) or _is_of("onnx", source):
        from relax_dialect.frontend.onnx import import_model

        module = import_model(source, dynamic=dynamic, shapes=shapes, entry=entry)
    elif _is_of("torch", source):
        module = _load_torch(source, args, kwargs, dynamic_shapes, entry)
    else:
        raise TypeError(f"load expected a path, a text, or a model of ONNX or PyTorch, got {type(source).__name__}")
    if weights is not None:
        from lowering.compiler.weight_files import load_weights

        load_weights(module, fspath(weights))
    return _verified(module)


def _check_options(source: Source, for_torch: Mapping[str, Any], for_onnx: Mapping[str, Any]) -> None:
    """`TypeError` for options, which are not `None`, that say nothing about such a source."""
    path = None if _is_of("xdsl", source) else _path(source)
    is_onnx = isinstance(source, bytes) or _is_of("onnx", source) or (path is not None and path.suffix == ".onnx")
    is_torch = path is None and _is_of("torch", source)
    for options, fits, what in ((for_torch, is_torch, "modules of PyTorch"), (for_onnx, is_onnx, "ONNX models")):
        if not fits and (given := [name for name, option in options.items() if option is not None]):
            raise TypeError(f"load() takes {' and '.join(given)} for {what} only")


def load_executable(
    path: str | PathLike[str],
    *,
    trust: bool = False,
    weights: str | PathLike[str] | Mapping[str, Any] | None = None,
) -> Executable:
    """The executable that `Executable.save` has written."""
    from vm_dialect.executable import Executable

    return Executable.load(path, trust=trust, weights=weights)


def parse(text: str, name: str = "<text>") -> ModuleOp:
    """The module that a text describes, in the syntax of `relax-opt` or in TVMScript, verified.

    `ParseError`, `TVMScriptError` or `InvalidModule` point at what is wrong; `ValueError` for a path, `TypeError` for
    what is no text.
    """
    if not isinstance(cast("object", text), str):
        raise TypeError(f"parse expected a text, got {type(text).__name__}; load takes models and files")
    if _looks_like_path(text):
        raise ValueError(f"parse expected the text of a module, got a path: load({text!r}) reads the file")
    return _verified(_load_text(text, name))


def is_executable(source: object) -> bool:
    """Whether a path names an executable."""
    return suffix_of(source) == ".rvm"


def is_library(source: object) -> bool:
    """Whether a path names a shared library."""
    return suffix_of(source) == ".so"


def _path(source: object) -> Path | None:
    """The path that `source` is; `None` for anything else."""
    if isinstance(source, PathLike):
        return Path(cast("PathLike[str]", source))
    if not isinstance(source, str):
        return None
    return Path(source) if _looks_like_path(source) or _is_file(source) or _FILE_NAME.fullmatch(source) else None


_FILE_NAME = re.compile(r"(?!(relax|tir|vm|builtin)\.)[\w./\\~:-]+")
"""One word that can be the name of a file of another kind, or of a folder, and is no text."""


def _wrong_path(path: str | Path) -> ValueError:
    """The error for what can only have been meant as a path, and names no file of a kind that there is."""
    why = ", a folder" if os.path.isdir(path) else "" if os.path.exists(path) else ", which does not exist"
    return ValueError(f"expected a file that ends in one of {', '.join(suffixes(Holds.MODULE))}, got {path}{why}")


def _looks_like_path(text: str) -> bool:
    """Whether a text is one line that ends like the name of a file."""
    stripped = text.strip()
    return "\n" not in stripped and stripped.endswith(tuple(KINDS))


def _is_file(text: str) -> bool:
    try:
        return "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):  # a text is no name of a file: too long, or with a zero byte
        return False


def _load_text(text: str, name: str = "<text>") -> ModuleOp:
    if is_script(text):
        from relax_dialect.frontend.tvmscript import parse as parse_script

        return parse_script(text, filename=name)
    from lowering.parsing import parse_module

    return parse_module(text, name)


def _load_torch(
    source: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, entry: str
) -> ModuleOp:
    from relax_dialect.frontend.torch import from_exported_program, whole_recurrent_layers
    from relax_dialect.frontend.torch.program import torch

    if isinstance(source, torch().nn.Module):
        if args is None and kwargs is None:
            raise TypeError("a module of PyTorch is traced with an example: load(module, (x,))")
        given = None if kwargs is None else dict(kwargs)
        with whole_recurrent_layers():
            source = torch().export.export(source.eval(), tuple(args or ()), given, dynamic_shapes=dynamic_shapes)
    return from_exported_program(source, entry=entry)


def _is_of(package: str, value: object) -> bool:
    """Whether a class of a package, which is not loaded for the question, is among those of the value."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


def _verified(module: ModuleOp) -> ModuleOp:
    from lowering.verify import verify_module

    verify_module(module)
    return module
