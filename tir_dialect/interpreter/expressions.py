"""Python expressions for the ops of `arith` and `math` on scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tir_dialect.interpreter import numerics
from tir_dialect.interpreter.widths import bits_of, numpy_type
from tir_dialect.ops.convert import ConvertOp
from tir_dialect.ops.relaxed_float import GreaterOp
from tir_dialect.ops.vectors import CompareOp, SelectOp

Expression: TypeAlias = Callable[[Operation, Sequence[str]], str]
"""From an op and the names of its operands to the text of its value."""

ADDRESS_BITS = 64
"""The width of `index` where bits matter."""


def wrapped(expression: str, bits: int | None) -> str:
    """`expression` wrapped to `bits` bits; see `widths.wrap`."""
    if bits is None:
        return expression
    if bits == 1:
        return f"({expression}) & 1"
    half = 1 << (bits - 1)
    return f"(({expression}) + {half} & {(1 << bits) - 1}) - {half}"


def _result_bits(op: Operation) -> int | None:
    return bits_of(op.results[0].type)


def _operand_bits(op: Operation) -> int:
    return bits_of(op.operands[0].type) or ADDRESS_BITS


def _integer(template: str) -> Expression:
    """An integer op; `{bits}` is the width of its operands."""
    return lambda op, names: wrapped(template.format(*names, bits=_operand_bits(op)), _result_bits(op))


def _unsigned(template: str) -> Expression:
    """An integer op whose operands count as unsigned."""

    def emit(op: Operation, names: Sequence[str]) -> str:
        mask = (1 << _operand_bits(op)) - 1
        return wrapped(template.format(*(f"({name} & {mask})" for name in names)), _operand_bits(op))

    return emit


def _division(template: str, rule: Callable[[str], Expression] = _integer) -> Expression:
    """An op that gives 0 for the divisor 0, as NumPy does; with indices it raises, as sizes have no value then."""
    of_indices, of_numbers = rule(template), rule(f"{template} if {{1}} else 0")
    return lambda op, names: (of_indices if _result_bits(op) is None else of_numbers)(op, names)


def _plain(template: str) -> Expression:
    return lambda op, names: template.format(*names)


def _function(name: str) -> Expression:
    """A function of floats; its result is rounded to the type of the op."""

    def emit(op: Operation, names: Sequence[str]) -> str:
        operands = ", ".join(f"float({operand})" for operand in names)
        return f"{float_type(op)}({name.replace('.', '_')}({operands}))"

    return emit


def float_type(op: Operation) -> str:
    """The name, in generated code, of the NumPy type of an op's result."""
    return f"np_{numpy_type(op.results[0].type).name}"


_SIGNED = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_UNSIGNED = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}


def _compare_integers(op: Operation, names: Sequence[str]) -> str:
    assert isinstance(op, arith.CmpiOp)
    return _integers_compared(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], _operand_bits(op), names)


def _integers_compared(predicate: str, bits: int, names: Sequence[str]) -> str:
    if predicate in _UNSIGNED:
        mask = (1 << bits) - 1
        return f"({names[0]} & {mask}) {_UNSIGNED[predicate]} ({names[1]} & {mask})"
    if bits == 1:  # the bit is the sign
        return f"-(1 if {names[0]} else 0) {_SIGNED[predicate]} -(1 if {names[1]} else 0)"
    return f"{names[0]} {_SIGNED[predicate]} {names[1]}"


_FLOAT_PREDICATES = {
    "false": "False",
    "oeq": "{0} == {1}",
    "ogt": "{0} > {1}",
    "oge": "{0} >= {1}",
    "olt": "{0} < {1}",
    "ole": "{0} <= {1}",
    "one": "({0} < {1} or {0} > {1})",
    "ord": "({0} == {0} and {1} == {1})",
    "ueq": "not ({0} < {1} or {0} > {1})",
    "ugt": "not {0} <= {1}",
    "uge": "not {0} < {1}",
    "ult": "not {0} >= {1}",
    "ule": "not {0} > {1}",
    "une": "{0} != {1}",
    "uno": "({0} != {0} or {1} != {1})",
    "true": "True",
}


def _compare_lanes(op: Operation, names: Sequence[str]) -> str:
    assert isinstance(op, CompareOp)
    predicate = op.predicate.data
    if op.is_float:
        return _FLOAT_PREDICATES[predicate].format(*names)
    return _integers_compared(predicate, _operand_bits(op), names)


def _compare_floats(op: Operation, names: Sequence[str]) -> str:
    assert isinstance(op, arith.CmpfOp)
    return _FLOAT_PREDICATES[arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]].format(*names)


def _extend(op: Operation, names: Sequence[str], *, signed: bool) -> str:
    bits = _operand_bits(op)
    if bits == 1:
        return f"{-1 if signed else 1} if {names[0]} else 0"
    return names[0] if signed else f"{names[0]} & {(1 << bits) - 1}"


def _sign_extend(op: Operation, names: Sequence[str]) -> str:
    return _extend(op, names, signed=True)


def _zero_extend(op: Operation, names: Sequence[str]) -> str:
    return _extend(op, names, signed=False)


def _integer_to_float(signed: bool, op: Operation, names: Sequence[str]) -> str:
    return f"integer_to_float({_extend(op, names, signed=signed)}, {float_type(op)})"


def _float_to_integer(signed: bool, op: Operation, names: Sequence[str]) -> str:
    bits = _result_bits(op) or ADDRESS_BITS
    return wrapped(f"to_integer({names[0]}, {bits}, signed={signed})", bits)


def _convert(op: Operation, names: Sequence[str]) -> str:
    assert isinstance(op, ConvertOp)
    return EXPRESSIONS[op.scalar_op](op, names)


def _bitcast(op: Operation, names: Sequence[str]) -> str:
    source, target = (f"np_{numpy_type(type).name}" for type in (op.operands[0].type, op.results[0].type))
    return f"bitcast({names[0]}, {source}, {target})"


def _float_cast(op: Operation, names: Sequence[str]) -> str:
    return f"{float_type(op)}({names[0]})"


EXPRESSIONS: dict[type[Operation], Expression] = {
    arith.AddiOp: _integer("{0} + {1}"),
    arith.SubiOp: _integer("{0} - {1}"),
    arith.MuliOp: _integer("{0} * {1}"),
    arith.DivSIOp: _division("divide_towards_zero({0}, {1})"),
    arith.RemSIOp: _division("remainder_towards_zero({0}, {1})"),
    arith.FloorDivSIOp: _division("{0} // {1}"),
    arith.CeilDivSIOp: _division("-(-{0} // {1})"),
    arith.DivUIOp: _division("{0} // {1}", _unsigned),
    arith.RemUIOp: _division("{0} % {1}", _unsigned),
    arith.CeilDivUIOp: _division("-(-{0} // {1})", _unsigned),
    arith.MinSIOp: _plain("{0} if {0} < {1} else {1}"),
    arith.MaxSIOp: _plain("{0} if {0} > {1} else {1}"),
    arith.MinUIOp: _unsigned("min({0}, {1})"),
    arith.MaxUIOp: _unsigned("max({0}, {1})"),
    arith.AndIOp: _plain("{0} & {1}"),
    arith.OrIOp: _plain("{0} | {1}"),
    arith.XOrIOp: _plain("{0} ^ {1}"),
    arith.ShLIOp: _integer("shift_left({0}, {1}, {bits})"),
    arith.ShRSIOp: _integer("shift_right({0}, {1}, {bits})"),
    arith.ShRUIOp: _integer("shift_right_unsigned({0}, {1}, {bits})"),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _plain("{1} if {0} else {2}"),
    CompareOp: _compare_lanes,
    ConvertOp: _convert,
    SelectOp: _plain("{1} if {0} else {2}"),
    arith.IndexCastOp: _integer("{0}"),
    arith.TruncIOp: _integer("{0}"),
    arith.ExtSIOp: _sign_extend,
    arith.ExtUIOp: _zero_extend,
    arith.SIToFPOp: partial(_integer_to_float, True),
    arith.UIToFPOp: partial(_integer_to_float, False),
    arith.FPToSIOp: partial(_float_to_integer, True),
    arith.FPToUIOp: partial(_float_to_integer, False),
    arith.ExtFOp: _float_cast,
    arith.TruncFOp: _float_cast,
    arith.BitcastOp: _bitcast,
    arith.AddfOp: _plain("{0} + {1}"),
    arith.SubfOp: _plain("{0} - {1}"),
    arith.MulfOp: _plain("{0} * {1}"),
    arith.DivfOp: _plain("{0} / {1}"),
    arith.NegfOp: _plain("-{0}"),
    arith.MaximumfOp: _plain("maximum({0}, {1})"),
    arith.MinimumfOp: _plain("minimum({0}, {1})"),
    GreaterOp: _plain("{0} if {0} > {1} else {1}"),
    arith.MaxnumfOp: _plain("maximum_number({0}, {1})"),
    arith.MinnumfOp: _plain("minimum_number({0}, {1})"),
    math.AbsFOp: _plain("abs({0})"),
    math.AbsIOp: _integer("abs({0})"),
    math.CountLeadingZerosOp: _integer("count_leading_zeros({0}, {bits})"),
    math.CountTrailingZerosOp: _integer("count_trailing_zeros({0}, {bits})"),
    math.CtPopOp: _integer("count_ones({0}, {bits})"),
    math.IPowIOp: _integer("integer_power({0}, {1})"),
    math.FmaOp: _plain("fused_multiply_add({0}, {1}, {2})"),
}
"""The scalar ops that the interpreter knows, except those in `FUNCTIONS`."""

FUNCTIONS: dict[str, Expression] = {name: _function(name) for name in (*numerics.UNARY, *numerics.BINARY)}
"""The float functions of `math` and `tir`, by op name, and `numerics.SIGMOID`."""


def expression_of(op: Operation) -> Expression | None:
    """How to compute `op`, if it is a scalar op."""
    return EXPRESSIONS.get(type(op)) or FUNCTIONS.get(op.name)
