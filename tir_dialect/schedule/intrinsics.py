"""Tensor intrinsics: tiles of a computation that a given piece of code can do."""

from __future__ import annotations

from dataclasses import dataclass

from tir_dialect.ops.function import PrimFuncOp


@dataclass(frozen=True)
class TensorIntrin:
    """Two functions with the same parameters, buffers of constant shapes.

    `description` is a nest of loops around one block without init and says what is computed; `implementation` is the
    code that replaces it, with the parameters standing for the tiles.
    """

    name: str
    description: PrimFuncOp
    implementation: PrimFuncOp


_INTRINS: dict[str, TensorIntrin] = {}


def register_tensor_intrin(intrin: TensorIntrin) -> None:
    """Makes an intrinsic known by its name; ValueError if the two functions do not fit together.

    An intrinsic registered before under this name is replaced.
    """
    description, implementation = intrin.description, intrin.implementation
    types = [[param.type for param in func.params] for func in (description, implementation)]
    if types[0] != types[1] or description.symbols or implementation.symbols:
        raise ValueError(
            f'tensor intrinsic "{intrin.name}": expected two functions with the same parameters and without symbols'
        )
    _INTRINS[intrin.name] = intrin


def tensor_intrin(name: str) -> TensorIntrin | None:
    """The intrinsic of this name, if there is one."""
    return _INTRINS.get(name)


def tensor_intrin_names() -> list[str]:
    """The names of all intrinsics."""
    return sorted(_INTRINS)
