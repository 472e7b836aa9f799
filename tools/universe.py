"""The `xdsl.universe` entry point: with it, plain `xdsl-opt` and `xdsl-gui` know our dialects and passes."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe

from lowering.registry import pass_factories


def _relax() -> Dialect:
    from relax_dialect.dialect import Relax

    return Relax


def _tir() -> Dialect:
    from tir_dialect.dialect import TIR

    return TIR


def _vm() -> Dialect:
    from vm_dialect.dialect import VM

    return VM


RELAX_UNIVERSE = Universe(
    all_dialects={"relax": _relax, "tir": _tir, "vm": _vm},
    all_passes=dict(pass_factories()),
)
