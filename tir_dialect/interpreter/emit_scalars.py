"""Python text of constants and arithmetic."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from tir_dialect.interpreter.emitter import Emitter, Rule
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.expressions import ADDRESS_BITS, Expression, expression_of, wrapped
from tir_dialect.interpreter.widths import bits_of, numpy_type, scalar_value
from tir_dialect.ops.scalars import DimOp

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
    names = emitter.names(tuple(op.operands))
    vectors = any(isa(type, VectorType) for type in (*op.operand_types, *op.result_types))
    if not vectors or isinstance(op, _NATIVE_ON_VECTORS):
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
