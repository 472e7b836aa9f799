"""Python text of constants, arithmetic, and operations on vectors."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.dialects.vector import CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.sigmoid import exponent_of_sigmoid
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter.emitter import Emitter, Rule
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.expressions import (
    ADDRESS_BITS,
    EXPRESSIONS,
    FUNCTIONS,
    Expression,
    expression_of,
    wrapped,
)
from tir_dialect.interpreter.numerics import SIGMOID
from tir_dialect.interpreter.widths import bits_of, holds_integers, numpy_type, scalar_value
from tir_dialect.ops.dot import DotOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.ops.scalars import DimOp, RampOp
from tir_dialect.ops.vectors import FirstLaneOp

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
    emitter.assign(op.result, f"dot_words({operands}, {left}, {right})")


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
    FirstLaneOp: _emit_first_lane,
}
"""How to write the ops of this file."""
