"""PyTorch, loaded when it is needed; what it gives is not typed, see `program.py`."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from os import PathLike, fspath
from typing import Any, BinaryIO

from relax_dialect.frontend.torch.errors import TorchImportError
from relax_dialect.frontend.torch.program import ExportedProgram, FxNode

GETITEM = "_operator.getitem"
"""What takes one of several results."""


@cache
def torch() -> Any:
    """The package; `ModuleNotFoundError` if it is not installed."""
    return import_module("torch")


def load_program(path: str | PathLike[str] | BinaryIO) -> ExportedProgram:
    """The program in a `.pt2` file; `TorchImportError` if there is none, or PyTorch cannot read it."""
    library = torch()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch does with its own file
            return library.export.load(fspath(path) if isinstance(path, str | PathLike) else path)
    except Exception as error:  # archives, pickles and schemas that are wrong are of many kinds, none of them listed
        raise TorchImportError(f"the file cannot be read: {error}") from error


def is_symbolic(value: Any) -> bool:
    """Whether a value is a number that depends on sizes."""
    library = torch()
    return isinstance(value, library.SymInt | library.SymFloat | library.SymBool)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, maybe without elements."""
    return isinstance(value, torch().Tensor)


def is_node(value: Any) -> bool:
    """Whether a value is a node of a graph."""
    return isinstance(value, torch().fx.Node)


def is_random(node: FxNode) -> bool:
    """Whether a node draws random numbers; dropout does so in training only."""
    if torch().Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [each.name for each in node.target._schema.arguments]
    given = {name: value for name, value in zip(names, node.args, strict=False)} | dict(node.kwargs)
    only_in_training = {"dropout_p", "train", "training"} & set(names)
    return not only_in_training or any(given.get(name) for name in only_in_training)


def name_of(target: Any) -> str:
    """How an operator is called: `aten.add.Tensor`, or a function by its module, such as `_operator.mul`."""
    if hasattr(target, "overloads") or hasattr(target, "_schema"):
        return str(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{target.__name__}" if module is not None and hasattr(target, "__name__") else str(target)
