"""The PyTorch importer: `from_exported_program` makes a module of relax functions from what `torch.export` gives.

The package `torch` has to be installed (`pip install torch`); nothing here loads it before a program is
imported.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, BinaryIO

from relax_dialect.frontend.torch.layers import recurrent_operators, whole_recurrent_layers
from relax_dialect.frontend.torch.node import converts
from relax_dialect.frontend.torch.program import Refusal, TorchImportError, UnsupportedOperator

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from relax_dialect.frontend.torch.program import ExportedProgram

__all__ = [
    "Refusal",
    "TorchImportError",
    "UnsupportedOperator",
    "converts",
    "from_exported_program",
    "import_file",
    "whole_recurrent_layers",
]


def from_exported_program(
    program: ExportedProgram, *, decompose: bool = True, entry: str = "main", seed: int | None = None
) -> ModuleOp:
    """A module whose function `entry` computes an exported program.

    Tensors that the program is called with are the parameters, in order; several outputs are a tuple, in the order of
    the pytree. Parameters and buffers are weights, whose memory is shared with the program. Buffers and inputs that
    the program changes come last: the buffers also as parameters, the new values of both also as outputs. Sizes that
    `dynamic_shapes` leaves open are symbols.

    Random numbers are a function of `seed`. Without one it is an `i64` parameter after those of the user.

    Operators without a converter are decomposed as PyTorch does, unless `decompose` says that this has been done.

    Raises `TorchImportError` for operators that are not supported, all of them, by name.
    """
    from relax_dialect.frontend.torch.importer import Importer, decomposed

    conditions = tuple(getattr(program, "_guards_code", ()))  # decomposing loses those of a program from a file
    return Importer(decomposed(program) if decompose else program, seed, conditions).module(entry)


def import_file(
    path: str | PathLike[str] | BinaryIO, *, decompose: bool = True, entry: str = "main", seed: int | None = None
) -> ModuleOp:
    """The module of a program that `torch.export.save` has written, or its contents; see `from_exported_program`.

    PyTorch reads the file, so `ModuleNotFoundError` if it is missing, and `TorchImportError` if it cannot.
    """
    from relax_dialect.frontend.torch.program import load_program

    recurrent_operators()  # a program that was exported with them is read only where PyTorch has them
    return from_exported_program(load_program(path), decompose=decompose, entry=entry, seed=seed)
