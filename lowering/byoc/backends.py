"""Libraries that take parts of programs, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from relax_dialect.ops.fused import FusedOp
from relax_dialect.patterns import Match, Pattern


def _always(match: Match) -> bool:
    return True


@dataclass(frozen=True)
class FusionPattern:
    """A part that a library can do: a name like `"blas.matmul_bias"`, what it looks like, and what else has to hold."""

    name: str
    pattern: Pattern
    check: Callable[[Match], bool] = _always


@dataclass(frozen=True)
class Handoff:
    """The call that does a part: a packed function, which gets the `texts`, the inputs, then the results to fill."""

    function: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backend:
    """A library: its patterns, those that should win first, and the code for what they found.

    `codegen` is given a group and says how it is called, or `None` for what the library cannot do after all: that part
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
    _REGISTERED[backend.name] = backend


def find_backend(name: str) -> Backend:
    """The backend of a name; `ValueError` if there is none."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in OURS:
        backend: Backend = import_module(OURS[name]).BACKEND
        return backend
    known = ", ".join(sorted({*OURS, *_REGISTERED}))
    raise ValueError(f"there is no backend {name}, there are {known}; see register_backend")
