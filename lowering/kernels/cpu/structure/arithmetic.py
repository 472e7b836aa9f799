"""Comparisons and choices computed on numbers, to find out what a few ops do."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def evaluated(ops: Sequence[Operation], known: MutableMapping[SSAValue, object]) -> bool:
    """Adds the results of ops to the known values; says whether all ops were comparisons, choices and constants."""
    for op in ops:
        value = _evaluate(op, [known[operand] for operand in op.operands if operand in known])
        if value is None:
            return False
        known[op.results[0]] = value
    return True


def _evaluate(op: Operation, operands: Sequence[object]) -> object | None:
    match op, operands:
        case arith.ConstantOp(), []:
            value = op.value
            return value.value.data if isinstance(value, IntegerAttr | FloatAttr) else None
        case arith.SelectOp(), [condition, first, second]:
            return first if condition else second
        case ((arith.AndIOp() | arith.OrIOp() | arith.XOrIOp()), [bool() | int() as a, bool() | int() as b]):
            pair = bool(a), bool(b)
            return all(pair) if isinstance(op, arith.AndIOp) else any(pair) and not (_is_xor(op) and all(pair))
        case arith.CmpfOp(), [float() as a, float() as b]:
            return _compared(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], a, b)
        case arith.CmpiOp(), [int() as a, int() as b]:
            predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
            unknown = predicate[0] == "u" and min(a, b) < 0
            return None if unknown else _ORDERED[predicate[-2:]](a, b)
        case _:
            return None


def _is_xor(op: Operation) -> bool:
    return isinstance(op, arith.XOrIOp)


def _compared(predicate: str, a: float, b: float) -> bool | None:
    unordered = a != a or b != b
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    test = _ORDERED.get(predicate[1:])
    return None if test is None else test(a, b) and not unordered if predicate[0] == "o" else unordered or test(a, b)
