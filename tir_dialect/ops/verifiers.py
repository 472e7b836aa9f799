"""Verifiers of ops that need an analysis of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tir_dialect.extensions import ExternalModels

Verifier: TypeAlias = Callable[[Any], None]
"""Raises `VerifyException` for an op that breaks a constraint."""

VERIFIERS: ExternalModels[Verifier] = ExternalModels(
    {
        "tir.block": "tir_dialect.analysis.functions",
        "tir.match_buffer": "tir_dialect.analysis.functions",
        "tir.prim_func": "tir_dialect.analysis.functions",
    }
)
"""What the ops call at the end of `verify_`."""
