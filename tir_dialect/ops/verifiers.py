"""Verifiers of ops that need an analysis of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tir_dialect.external_models import ExternalModels

Verifier: TypeAlias = Callable[[Any], None]
"""Raises `VerifyException` for an op that breaks a constraint."""

VERIFIERS: ExternalModels[Verifier] = ExternalModels(
    {
        "tir.block": "tir_dialect.analysis.blocks",
        "tir.match_buffer": "tir_dialect.analysis.declarations",
        "tir.prim_func": "tir_dialect.analysis.functions",
    }
)
"""What the ops call at the end of `verify_`."""
