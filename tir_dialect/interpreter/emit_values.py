"""Python text of constants, arithmetic and mathematical functions, on scalars and on vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.dialects.vector import CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.patterns import exponent_of_sigmoid
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import numerics
from tir_dialect.interpreter.emitter import Emitter, Rule
from tir_dialect.interpreter.numerics import (
    SIGMOID,
    UnsupportedOpError,
    bits_of,
    holds_integers,
    numpy_type,
    scalar_value,
)
from tir_dialect.ops.arithmetic import ConvertOp, DimOp, GreaterOp, RampOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.ops.vectors import CompareOp, DotOp, FirstLaneOp, LookupOp, SelectOp

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


_MAY_OVERFLOW = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp, arith.FloorDivSIOp, arith.DivSIOp)

_NATIVE_ON_VECTORS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp)


def _emit_constant(emitter: Emitter, op: arith.ConstantOp) -> None:
    emitter.alias(op.result, emitter.constant(constant_value(op.value)))


def constant_value(value: Attribute) -> object:
    """The value of a constant: a number, or an array for a vector."""
    if isinstance(value, IntegerAttr | FloatAttr):
        return scalar_value(value.value.data, value.get_type())
    if isinstance(value, DenseIntOrFPElementsAttr) and isa(value.get_type(), VectorType):
        dtype = numpy_type(value.get_type())
        elements = np.array(value.get_values(), dtype)
        return np.full(value.get_shape(), elements[0], dtype) if value.is_splat() else elements
    raise UnsupportedOpError(f"'arith.constant' of {value} is not interpreted, expected numbers or vectors")


def _emit_dim(emitter: Emitter, op: DimOp) -> None:
    emitter.assign(op.result, emitter.dim(op.dim))


def emit_elementwise(emitter: Emitter, op: Operation) -> None:
    """Adds an op of `arith` or `math`; UnsupportedOpError for every other op."""
    expression = expression_of(op)
    if expression is None:
        raise UnsupportedOpError(f"'{op.name}' is not interpreted, expected ops of tir, arith, math or vector")
    if isinstance(op, _MAY_OVERFLOW) and bits_of(op.result.type) is None and emitter.sources.is_data(op.result):
        expression = _wrapping(expression)
    operands = tuple(op.operands)
    if (exponent := exponent_of_sigmoid(op)) is not None:
        expression, operands = FUNCTIONS[SIGMOID], (exponent,)
    names = emitter.names(operands)
    vectors = any(isa(type, VectorType) for type in (*op.operand_types, *op.result_types))
    if not vectors or (isinstance(op, _NATIVE_ON_VECTORS) and exponent is None):
        emitter.assign(op.results[0], expression(op, names))
        return
    lanes = [f"x{index}" for index in range(len(names))]
    function = f"lambda {', '.join(lanes)}: {expression(op, lanes)}"
    dtype = emitter.constant(numpy_type(op.results[0].type))
    emitter.assign(op.results[0], f"map_lanes({function}, {dtype}, [{', '.join(names)}])")


def _wrapping(expression: Expression) -> Expression:
    """Of sizes and loop variables it is known that they fit, of other indices it is not."""
    return lambda op, names: wrapped(expression(op, names), ADDRESS_BITS)


SCALAR_RULES: dict[type[Operation], Rule] = {arith.ConstantOp: _emit_constant, DimOp: _emit_dim}
"""How to write the ops of this file that are not elementwise."""


def _lanes(op: Operation, type: Attribute) -> int:
    lanes = lanes_of(type)
    if lanes is None:
        raise UnsupportedOpError(f"'{op.name}' of {type} is not interpreted, expected vectors with one dimension")
    return lanes


def _emit_ramp(emitter: Emitter, op: RampOp) -> None:
    base, step = emitter.names((op.base, op.step))
    emitter.assign(op.result, f"np.arange({op.lanes}) * {step} + {base}")


def _emit_broadcast(emitter: Emitter, op: vector.BroadcastOp) -> None:
    lanes, source = _lanes(op, op.vector.type), emitter.name(op.source)
    if isa(op.source.type, VectorType):
        source = f"{source}[0]" if _lanes(op, op.source.type) == 1 else source
    emitter.assign(op.vector, f"np.full({lanes}, {source}, {_dtype(emitter, op.vector.type)})")


def _position(emitter: Emitter, op: vector.ExtractOp | vector.InsertOp, type: Attribute) -> str:
    _lanes(op, type)
    positions = op.get_mixed_position()
    if len(positions) != 1:
        raise UnsupportedOpError(f"'{op.name}' is not interpreted with {len(positions)} positions, expected 1")
    return emitter.name(positions[0]) if isinstance(positions[0], SSAValue) else str(positions[0])


def _emit_extract(emitter: Emitter, op: vector.ExtractOp) -> None:
    element = f"{emitter.name(op.vector)}[{_position(emitter, op, op.vector.type)}]"
    is_float = not holds_integers(numpy_type(op.result.type))
    emitter.assign(op.result, element if is_float else f"{element}.item()")


def _emit_insert(emitter: Emitter, op: vector.InsertOp) -> None:
    position = _position(emitter, op, op.dest.type)
    emitter.assign(op.result, f"{emitter.name(op.dest)}.copy()")
    emitter.line(f"{emitter.name(op.result)}[{position}] = {emitter.name(op.source)}")


def _emit_shuffle(emitter: Emitter, op: vector.ShuffleOp) -> None:
    lhs, rhs = emitter.names((op.v1, op.v2))
    _lanes(op, op.result.type)
    mask = list(op.mask.get_values())
    emitter.assign(op.result, f"np.concatenate([{lhs}, {rhs}])[{mask}]")


def _emit_fma(emitter: Emitter, op: vector.FMAOp) -> None:
    operands = ", ".join(emitter.names((op.lhs, op.rhs, op.acc)))
    emitter.assign(op.res, f"multiply_add_lanes({operands})")


def _emit_create_mask(emitter: Emitter, op: vector.CreateMaskOp) -> None:
    lanes = _lanes(op, op.mask_vector.type)
    emitter.assign(op.mask_vector, f"np.arange({lanes}) < {emitter.name(op.mask_dim_sizes[0])}")


_COMBINERS: dict[CombiningKindFlag, tuple[type[Operation], type[Operation]]] = {
    # kind: the op on integers, the op on floats
    CombiningKindFlag.ADD: (arith.AddiOp, arith.AddfOp),
    CombiningKindFlag.MUL: (arith.MuliOp, arith.MulfOp),
    CombiningKindFlag.MINUI: (arith.MinUIOp, arith.MinUIOp),
    CombiningKindFlag.MINSI: (arith.MinSIOp, arith.MinSIOp),
    CombiningKindFlag.MAXUI: (arith.MaxUIOp, arith.MaxUIOp),
    CombiningKindFlag.MAXSI: (arith.MaxSIOp, arith.MaxSIOp),
    CombiningKindFlag.AND: (arith.AndIOp, arith.AndIOp),
    CombiningKindFlag.OR: (arith.OrIOp, arith.OrIOp),
    CombiningKindFlag.XOR: (arith.XOrIOp, arith.XOrIOp),
    CombiningKindFlag.MINNUMF: (arith.MinnumfOp, arith.MinnumfOp),
    CombiningKindFlag.MAXNUMF: (arith.MaxnumfOp, arith.MaxnumfOp),
    CombiningKindFlag.MINIMUMF: (arith.MinimumfOp, arith.MinimumfOp),
    CombiningKindFlag.MAXIMUMF: (arith.MaximumfOp, arith.MaximumfOp),
}


def _emit_reduction(emitter: Emitter, op: vector.ReductionOp) -> None:
    """From the first lane to the last; the accumulator comes first."""
    _lanes(op, op.vector.type)
    is_float = not holds_integers(numpy_type(op.dest.type))
    combiner = _COMBINERS[op.kind.data][int(is_float)]
    expression = EXPRESSIONS[combiner](op, ("lhs", "rhs"))
    lanes = emitter.name(op.vector) if is_float else f"{emitter.name(op.vector)}.tolist()"
    start = "" if op.acc is None else f", {emitter.name(op.acc)}"
    emitter.assign(op.dest, f"reduce(lambda lhs, rhs: {expression}, {lanes}{start})")


def _emit_bitcast(emitter: Emitter, op: vector.BitcastOp) -> None:
    emitter.assign(op.result, f"{emitter.name(op.source)}.view({_dtype(emitter, op.result.type)})")


def _emit_dot(emitter: Emitter, op: DotOp) -> None:
    operands = ", ".join(emitter.names((op.lhs, op.rhs, op.sum)))
    left, right = (emitter.constant(numpy_dtype(dtype)) for dtype in (op.lhs_dtype, op.rhs_dtype))
    emitter.assign(op.result, f"dot_words({operands}, {left}, {right}, {op.saturating is not None})")


def _emit_lookup(emitter: Emitter, op: LookupOp) -> None:
    table = emitter.constant(np.array(op.entries, np.int8))
    emitter.assign(op.result, f"look_up_bytes({emitter.name(op.bytes)}, {table})")


def _emit_first_lane(emitter: Emitter, op: FirstLaneOp) -> None:
    emitter.assign(op.result, f"int(np.argmax(np.append({emitter.name(op.mask)}, True)))")


def _dtype(emitter: Emitter, type: Attribute) -> str:
    return emitter.constant(numpy_type(type))


VECTOR_RULES: dict[type[Operation], Rule] = {
    RampOp: _emit_ramp,
    vector.BroadcastOp: _emit_broadcast,
    vector.ExtractOp: _emit_extract,
    vector.InsertOp: _emit_insert,
    vector.ShuffleOp: _emit_shuffle,
    vector.FMAOp: _emit_fma,
    vector.CreateMaskOp: _emit_create_mask,
    vector.ReductionOp: _emit_reduction,
    vector.BitcastOp: _emit_bitcast,
    DotOp: _emit_dot,
    LookupOp: _emit_lookup,
    FirstLaneOp: _emit_first_lane,
}
"""How to write the ops of this file."""
