"""The registry of backends: libraries that compute parts of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.patterns import Match, Pattern
from tir_dialect.extensions import load_extensions, note_extension


def _always(match: Match) -> bool:
    return True


@dataclass(frozen=True)
class FusionPattern:
    """A pattern that a library can compute: a name like `"blas.matmul_bias"`, the pattern, and further conditions."""

    name: str
    pattern: Pattern
    check: Callable[[Match], bool] = _always


@dataclass(frozen=True)
class Handoff:
    """The call that computes a group: a packed function, which gets the `texts`, the inputs, then the results to
    fill.
    """

    function: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backend:
    """A library: its patterns in order of priority, and the code generation for their matches.

    `codegen` is given a group and returns the call, or `None` if the library cannot compute it after all: such a group
    is compiled like the rest.
    """

    name: str
    patterns: Sequence[FusionPattern]
    codegen: Callable[[FusedOp], Handoff | None]


OURS = {"blas": "lowering.byoc.blas", "torch": "lowering.byoc.torch"}
"""Backends that come with the project, by the module that makes one: `BACKEND`."""

_REGISTERED: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Makes a backend known to the passes by its name; one of the same name is replaced."""
    note_extension(backend.codegen.__module__)
    _REGISTERED[backend.name] = backend


def find_backend(name: str) -> Backend:
    """The backend of a name; `ValueError` if there is none."""
    if name not in OURS and name not in _REGISTERED:
        load_extensions()
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in OURS:
        backend: Backend = import_module(OURS[name]).BACKEND
        return backend
    known = ", ".join(sorted({*OURS, *_REGISTERED}))
    raise ValueError(f"there is no backend {name}, there are {known}; see register_backend")
