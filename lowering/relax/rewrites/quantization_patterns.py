"""What quantised numbers look like: integers by a scale and a zero point, and what is computed byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.relax.matchers import (
    Elementwise,
    dtype_of,
    is_elementwise,
    is_number,
    number_of,
)
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.activation import GeluOp, SiluOp
from relax_dialect.ops.binary import MinimumOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import ErfOp, ExpOp, LogOp, SigmoidOp, TanhOp
from relax_dialect.patterns import Pattern, is_const, is_op, wildcard
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.ops.vectors import ui8

BYTE_DTYPES = (i8, ui8)
"""The dtypes of quantised values."""

COSTLY = (SigmoidOp, TanhOp, ExpOp, ErfOp, LogOp, GeluOp, SiluOp)
"""Operators that take longer than to look up a byte."""


def integer_range(dtype: Attribute) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype; `None` for others."""
    kind = np.dtype(numpy_dtype(dtype))
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    return None if limits is None else (int(limits.min), int(limits.max))


def f32_number(value: SSAValue) -> float | None:
    """The number that a constant of one element of `f32` is."""
    return number_of(value) if dtype_of(value) == f32 else None


# Patterns of numbers that are about to be integers

X: Pattern = wildcard()
"""What is quantised."""
LEAST: Pattern = is_const().where(lambda value: number_of(value) is not None)
GREATEST: Pattern = is_const().where(lambda value: number_of(value) is not None)
BOUNDED: Pattern = is_op("relax.minimum")(is_op("relax.maximum")(X, LEAST).in_any_order(), GREATEST).in_any_order()
"""`minimum(maximum(x, least), greatest)`."""
PLUS_ZERO: Pattern = X + is_const().where(lambda value: f32_number(value) == 0)
"""`x + 0`."""

SCALE: Pattern = is_const().where(lambda value: f32_number(value) is not None)
POINT: Pattern = is_const()
QUOTIENT: Pattern = X / SCALE
_ROUNDED = is_op("relax.round")(QUOTIENT)
QUANTIZED: Pattern = _ROUNDED + POINT | _ROUNDED
"""`round(x / scale) + point`, or without a zero point."""


@dataclass(frozen=True)
class Quantization:
    """`round(x / scale) + point`, whose integers outside of the limits are those at the limits."""

    x: SSAValue
    scale: float
    point: SSAValue | None
    """A constant."""
    limits: tuple[float, float]

    @classmethod
    def of(cls, op: AstypeOp | MinimumOp) -> Quantization | None:
        """What is converted to integers, or bounded."""
        value, limits = _limited(op)
        found = None if limits is None else QUANTIZED.find(value)
        scale = None if found is None else f32_number(found[SCALE])
        if limits is None or found is None or scale is None:
            return None
        x = found[X]
        if dtype_of(x) != f32 or not value.type == x.type == found[QUOTIENT].type or not is_never_written(x):
            return None
        return cls(x, scale, found.get(POINT), limits)


def _limited(op: AstypeOp | MinimumOp) -> tuple[SSAValue, tuple[float, float] | None]:
    """The value that an op keeps between two numbers, and these."""
    if isinstance(op, AstypeOp):
        return op.x, integer_range(op.dtype)
    found = BOUNDED.find(op.result)
    if found is None:
        return op.x, None
    least, greatest = number_of(found[LEAST]), number_of(found[GREATEST])
    return found[X], None if least is None or greatest is None else (least, greatest)


# What is computed byte by byte

Link: TypeAlias = Elementwise | PermuteDimsOp
"""An operator that computes each element of one element, or moves it."""


def links(value: SSAValue) -> Iterator[tuple[Link, SSAValue]]:
    """The operators that compute a value, the last one first, each with its one operand that is no number.

    They end at what is computed of several values or in another way, and at what somebody may write into.
    """
    while is_never_written(value):
        maker = value.owner
        if not (is_elementwise(maker) or isinstance(maker, PermuteDimsOp)):
            return
        others = [operand for operand in maker.operands if not is_number(operand)]
        if len(others) != 1:
            return
        yield maker, others[0]
        value = others[0]


def chain_from_bytes(value: SSAValue) -> tuple[SSAValue, list[Link]] | None:
    """The bytes that a value is computed from one by one, and the operators that do it, in their order."""
    chain: list[Link] = []
    for op, argument in links(value):
        chain.append(op)
        if dtype_of(argument) in BYTE_DTYPES:
            return (argument, chain[::-1]) if is_never_written(argument) else None
    return None


def applied(chain: Sequence[Link], value: SSAValue) -> list[Operation]:
    """The operators of a chain on another value."""
    new: list[Operation] = []
    for op in chain:
        new.append(op.with_operands([operand if is_number(operand) else value for operand in op.operands]))
        value = new[-1].results[0]
    return new


def costly_function_of_bytes(
    value: SSAValue, order: Mapping[Operation | Block, int]
) -> tuple[SSAValue, Sequence[Operator]] | None:
    """The bytes that a value is a function of, and the operators that compute it of them, in their order; `None` if it
    is of more, or takes no time.

    What it is computed from is followed back, the last op first, until it is all computed from one value.
    """
    pending, ops = {value}, list[Operator]()
    while pending:
        last = max(pending, key=lambda each: order.get(each.owner, -1))
        if len(pending) == 1 and dtype_of(last) in BYTE_DTYPES and any(isinstance(each, COSTLY) for each in ops):
            return last, ops[::-1]
        pending.remove(last)
        owner = last.owner
        if not is_elementwise(owner) or not is_never_written(last):
            return None
        ops.append(owner)
        pending |= {each for each in owner.operands if not is_number(each)}
    return None
