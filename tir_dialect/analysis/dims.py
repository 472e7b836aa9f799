"""Recovery of dimensions from SSA values, and symbols that are a stride or the offset of a parameter, and in no
shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tir_dialect.dims import (
    Dim,
    DimLike,
    FloorDivAtom,
    Prover,
    ceildiv,
    constant,
    floordiv,
    maximum,
    minimum,
    mod,
    symbol,
)
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

Leaf: TypeAlias = Callable[[SSAValue], Dim | None]
"""What the evaluator asks about values that it cannot look into."""


class Oracle(Protocol):
    """What the evaluator asks about signs: a `Prover`, or what knows the bounds of the symbols that `leaf` gives."""

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all values or for none."""
        ...


def dim_of(value: SSAValue) -> Dim | None:
    """The value of an integer as a dimension over the symbols of the function; `None` if it has none.

    Looks through symbol arguments, constants, `tir.dim`, casts between `index` and `i64`, and `arith` on those.
    Division and remainder that round towards zero count where both operands cannot be negative.
    """
    return DimEvaluator().dim_of(value)


class DimEvaluator:
    """Evaluates integer values to dimensions, each value once.

    `leaf` may give dimensions to values that have none by themselves, such as loop variables; `prover` knows the bounds
    of all symbols, which without it are integers >= 0.
    """

    def __init__(self, leaf: Leaf | None = None, prover: Oracle | None = None):
        self._leaf = leaf
        self._prover = prover or Prover()
        self._known: dict[SSAValue, Dim | None] = {}

    def dim_of(self, value: SSAValue) -> Dim | None:
        """The dimension that the value is, or `None`; linear in the number of ops that compute it."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            # The operands that the dimension of a value depends on; none if it is not computed by a known op.
            op = current.owner
            if (
                not isinstance(op, Operation)
                or (type(op) not in _RULES and type(op) not in _NON_NEGATIVE_RULES)
                or not _is_wide(current.type)
                or not all(_is_wide(type) for type in op.operand_types)
            ):
                inputs = ()
            else:
                inputs = tuple(op.operands)
            missing = [operand for operand in inputs if operand not in self._known]
            if missing:
                pending += missing
            else:
                self._known[current] = self._evaluate(current, [self._known[operand] for operand in inputs])
                pending.pop()
        return self._known[value]

    def _evaluate(self, value: SSAValue, inputs: list[Dim | None]) -> Dim | None:
        owner = value.owner
        found = None
        if isinstance(value, BlockArgument):
            func = value.block.parent_op()
            if not isinstance(func, PrimFuncOp) or value.index >= len(func.symbols):
                found = None
            else:
                found = symbol(func.symbols.data[value.index].symbol.data)
        elif isinstance(owner, DimOp):
            found = owner.dim
        elif isinstance(owner, arith.ConstantOp):
            found = (
                constant(owner.value.value.data)
                if isinstance(owner.value, IntegerAttr) and _is_wide(owner.result.type)
                else None
            )
        elif inputs and isinstance(owner, Operation):
            operands = [dim for dim in inputs if dim is not None]
            if len(operands) == len(inputs):
                found = self._apply(owner, operands)
        if found is None and self._leaf is not None:
            found = self._leaf(value)
        return found

    def _apply(self, op: Operation, operands: list[Dim]) -> Dim | None:
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule(*operands)
        rule = _NON_NEGATIVE_RULES.get(type(op))
        if rule is None or operands[1].constant_value == 0:
            return None
        # a divisor that is 0 at run time gives no value, here or there
        if not all(self._prover.less_equal(0, operand) for operand in operands):
            return None
        return rule(*operands)


def _divide(rule: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim | None]:
    """`rule`, but no dimension where the divisor is the constant 0."""
    return lambda lhs, rhs: None if rhs.constant_value == 0 else rule(lhs, rhs)


def _difference(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs - rhs`, as a remainder where it is one: `x - floordiv(x, d) * d` is how remainders are computed."""
    found = lhs - rhs
    for _, monomial in rhs.terms:
        for atom, _ in monomial:
            if not isinstance(atom, FloorDivAtom):
                continue
            dividend, divisor = atom.numerator, atom.denominator
            rest = found + floordiv(dividend, divisor) * divisor - dividend
            if len(rest.terms) < len(found.terms) - 1 or not rest.terms:
                return rest + mod(dividend, divisor)
    return found


def _same(dim: Dim) -> Dim:
    return dim


_RULES: dict[type[Operation], Callable[..., Dim | None]] = {
    arith.AddiOp: Dim.__add__,
    arith.SubiOp: _difference,
    arith.MuliOp: Dim.__mul__,
    arith.FloorDivSIOp: _divide(floordiv),
    arith.CeilDivSIOp: _divide(ceildiv),
    arith.MinSIOp: minimum,
    arith.MaxSIOp: maximum,
    arith.IndexCastOp: _same,
}

_NON_NEGATIVE_RULES: dict[type[Operation], Callable[..., Dim | None]] = {
    arith.DivSIOp: floordiv,
    arith.DivUIOp: floordiv,
    arith.CeilDivUIOp: ceildiv,
    arith.RemSIOp: mod,
    arith.RemUIOp: mod,
}


def _is_wide(type: Attribute) -> bool:
    return isinstance(type, IndexType) or type == IntegerType(64)


@dataclass(frozen=True)
class LayoutSymbol:
    """A symbol, and the first parameter whose stride along an axis it is, or whose offset (`axis` is `None`)."""

    name: str
    param: int
    axis: int | None


def layout_symbols(params: Sequence[Attribute]) -> list[LayoutSymbol]:
    """The symbols of layouts alone among the types of parameters, each once."""
    buffers = [(number, type_) for number, type_ in enumerate(params) if isinstance(type_, BufferType)]
    taken = {name for _, buffer in buffers for dim in buffer.shape for name in dim.symbols}
    found: list[LayoutSymbol] = []
    for number, buffer in buffers:
        for axis, dim in [*enumerate(buffer.strides), (None, buffer.offset)]:
            if (name := dim.as_symbol) is not None and name not in taken:
                found.append(LayoutSymbol(name, number, axis))
                taken.add(name)
    return found
