"""What ops declare and analyses implement: verifiers, effects, purity, canonicalization patterns."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import EffectInstance

from tir_dialect.extensions import ExternalModels

VERIFIERS: ExternalModels[Callable[[Any], None]] = ExternalModels(
    {"relax.call_tir_inplace": "relax_dialect.analysis.effects"}
)
"""Constraints on the memory of operands; `VerifyException` says which one an op breaks."""

IMPURITY: ExternalModels[Callable[[Any], str | None]] = ExternalModels(
    {"relax.call_tir_inplace": "relax_dialect.analysis.effects"}
)
"""Why an op may have a visible effect, which depends on who sees the memory that it writes."""

EFFECTS: ExternalModels[Callable[[Operation], AbstractSet[EffectInstance]]] = ExternalModels(
    {"ReadsTensors": "relax_dialect.analysis.effects"}
)
"""The effects of ops with a trait."""

VIEWS: ExternalModels[Callable[[SSAValue, SSAValue], bool]] = ExternalModels(
    {"may_be_view": "relax_dialect.analysis.effects"}
)
"""Whether a copy may share the memory of its source, which folders ask."""

PATTERNS: ExternalModels[Callable[[], tuple[RewritePattern, ...]]] = ExternalModels(
    {
        "relax.if": "relax_dialect.canonicalization",
        "relax.for": "relax_dialect.canonicalization",
        "relax.permute_dims": "relax_dialect.canonicalization",
    }
)
"""Canonicalization patterns that need an analysis."""


def may_be_view(copy: SSAValue, source: SSAValue) -> bool:
    """Whether a copy may share the memory of its source, so that a folder may leave it out."""
    return VIEWS.of("may_be_view")(copy, source)
