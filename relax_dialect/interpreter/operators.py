"""How operators are run: a NumPy function of the operands, whose result has to be of the type that inference gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np

from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.interpreter.machine import Frame, runs
from relax_dialect.interpreter.runtime_values import Value

OpT = TypeVar("OpT", bound=InfersResultTypes)
Compute: TypeAlias = "Callable[..., Value]"


def computes(*op_types: type[OpT]) -> Callable[[Compute], Compute]:
    """Registers `compute(op, *operands)`, the value of the only result, for some operators."""

    def register(compute: Compute) -> Compute:
        def rule(frame: Frame, op: InfersResultTypes) -> None:
            make_checks(frame, op)
            result = compute(op, *frame.get_all(op.operands))
            if isinstance(result, np.generic):
                result = np.asarray(result)
            frame.check(result, op.results[0].type, f"result of '{op.name}'")
            frame.set(op.results[0], result)

        runs(*op_types)(rule)
        return compute

    return register


def make_checks(frame: Frame, op: InfersResultTypes) -> None:
    """Raises `ValueError` if a condition does not hold that inference left open."""
    for check in op.runtime_checks():
        left, right = check.left.evaluate(frame.symbols), check.right.evaluate(frame.symbols)
        if not _holds(check, left, right):
            raise ValueError(
                f"{frame.function}: '{op.name}' expected {check.message}: {check.left} = {left}, {check.right} = {right}"
            )


def _holds(check: DimCheck, left: int, right: int) -> bool:
    match check.relation:
        case DimRelation.EQUAL:
            return left == right
        case DimRelation.BROADCAST:
            return left == right or 1 in (left, right)
        case DimRelation.AT_MOST:
            return left <= right
