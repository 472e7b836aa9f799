"""The tables of legalisations, which the files of the families fill when an op of theirs is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.relax_to_tir.kernel import Kernel
from relax_dialect.index import OPERATORS
from relax_dialect.loading import FamilyRules
from tir_dialect import te
from tir_dialect.extensions import note_extension

OpT = TypeVar("OpT", bound=Operation)
Rule: TypeAlias = "Callable[[Kernel, OpT], te.Tensor | Sequence[te.Tensor]]"
Rewrite: TypeAlias = "Callable[[OpT, PatternRewriter], Sequence[SSAValue] | None]"

_PACKAGE = "lowering.relax_to_tir"

KERNELS: FamilyRules[Rule[Operation]] = FamilyRules(_PACKAGE, OPERATORS)
"""Ops that become one kernel."""

SIZES: FamilyRules[Rule[Operation]] = FamilyRules(_PACKAGE, OPERATORS)
"""Ops with results whose sizes are data: the kernels that find them out."""

REWRITES: FamilyRules[Rewrite[Operation]] = FamilyRules(_PACKAGE, OPERATORS)
"""Ops that become other ops, or stay what they are."""


def legalizes(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the tensor expression of ops: one tensor for each result."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        note_extension(rule.__module__)
        KERNELS.update(dict.fromkeys(op_types, cast("Rule[Operation]", rule)))
        return rule

    return register


def sizes(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers a tensor expression that is evaluated before that of the op, if dimensions of its results are unknown.

    The first tensor, of rank 1 and `i64`, has these dimensions in order, or one that stands for all of them. What
    follows is kept for the kernel of the op: `Kernel.kept`.
    """

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        note_extension(rule.__module__)
        SIZES.update(dict.fromkeys(op_types, cast("Rule[Operation]", rule)))
        return rule

    return register


def rewrites(op_type: type[OpT]) -> Callable[[Rewrite[OpT]], Rewrite[OpT]]:
    """Registers how an op becomes others: it inserts them by the rewriter and returns the values that replace the
    results, or `None` if it leaves the op.
    """

    def register(rule: Rewrite[OpT]) -> Rewrite[OpT]:
        note_extension(rule.__module__)
        REWRITES[op_type] = cast("Rewrite[Operation]", rule)
        return rule

    return register
