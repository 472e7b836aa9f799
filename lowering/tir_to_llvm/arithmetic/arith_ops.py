"""Lowerings of the arith dialect: a table from op to a function over builder, op and operands; and which sums and
products may be one multiply-add, which rounds once.

Operands are all scalars or all vectors of one length; the functions make either.

Contracted to `fma(x, x, -(y * y))`, the difference `x * x - y * y` of equal numbers is the rounding error of a
product instead of 0, and as often negative as not. Its square root is then NaN, and so is that of a variance computed
as `mean_of_squares - mean * mean`. So arithmetic on elements is rounded as it is written, as with
`-ffp-contract=off`, and only accumulations such as `sum += a * b` are contracted. Generators of kernels write
`math.fma`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    bf16,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from lowering.llvm.function_builder import element_type, like
from lowering.llvm.llvm_builder import CONTRACT, NO_FLAGS, LLVMBuilder
from lowering.tir_to_llvm.arithmetic import division
from lowering.tir_to_llvm.arithmetic.scalars import (
    compute_type,
    convert_float,
    float_constant,
    from_integer,
    llvm_type,
    to_integer,
    vector_constant,
)
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.blocks import FlattenOp, ViewOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.vectors import CompareOp, SelectOp


def forbids_contraction(op: Operation) -> bool:
    """Whether a product that this op adds or subtracts must be rounded before."""
    match op:
        case arith.AddfOp():
            return not accumulates(op)
        case arith.SubfOp():
            return True
        case _:
            return False


def accumulates(op: arith.AddfOp) -> bool:
    """Whether it adds a product to a sum of products, or to a constant."""
    return any(
        isinstance(product.owner, arith.MulfOp) and _is_sum(total, op)
        for product, total in ((op.lhs, op.rhs), (op.rhs, op.lhs))
    )


def _is_sum(total: SSAValue, op: Operation) -> bool:
    match total.owner:
        case LoadOp() as load:
            return any(_updates(store, load) for store in _stores(op))
        case arith.AddfOp() as inner:
            return accumulates(inner)
        case Block() as block:
            return not isinstance(block.parent_op(), PrimFuncOp)
        case owner:
            return isinstance(owner, arith.ConstantOp)


def _stores(op: Operation) -> list[StoreOp]:
    """The stores of its result, or of what further products are added to it."""
    found: list[StoreOp] = []
    for use in op.results[0].uses:
        if isinstance(use.operation, StoreOp):
            found.append(use.operation)
        elif isinstance(use.operation, arith.AddfOp):
            found += _stores(use.operation)
    return found


def _updates(store: StoreOp, load: LoadOp) -> bool:
    """Whether a store changes what was loaded, in more than one iteration or more than once in one.

    Otherwise it is an operator that writes its result over an operand.
    """
    if store.buffer is not load.buffer:
        return False
    memory = store.buffer
    while isinstance(memory.owner, FlattenOp | ViewOp):
        memory = memory.owner.operands[0]
    if isinstance(memory.owner, AllocBufferOp):
        return True
    again = any(
        isinstance(use.operation, StoreOp) and use.operation is not store and use.operation.parent is store.parent
        for use in store.buffer.uses
    )
    return again or not _loop_variables(store) <= _arguments(store.indices)


def _loop_variables(op: Operation) -> set[SSAValue]:
    found: set[SSAValue] = set()
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            found.add(parent.induction_var)
        parent = parent.parent_op()
    return found


def _arguments(values: tuple[SSAValue, ...] | list[SSAValue]) -> set[SSAValue]:
    """The block arguments that some values depend on."""
    found: set[SSAValue] = set()
    pending, seen = list(values), set(values)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument):
            found.add(value)
        elif isinstance(value.owner, Operation):
            new = [operand for operand in value.owner.operands if operand not in seen]
            seen.update(new)
            pending += new
    return found


Lower = Callable[[LLVMBuilder, Operation, Sequence[SSAValue]], SSAValue]
Combine = Callable[[LLVMBuilder, SSAValue, SSAValue], SSAValue]


def fast_math(b: LLVMBuilder, op: Operation) -> llvm.FastMathAttr:
    """The op's fast-math flags; `contract` is added where the builder allows it, and the op does not stay apart."""
    flags = op.properties.get("fastmath")
    added = CONTRACT.data if b.contract and not forbids_contraction(op) else ()
    if not isinstance(flags, arith.FastMathFlagsAttr) or not flags.data:
        return CONTRACT if added else NO_FLAGS
    return llvm.FastMathAttr([*flags.data, *added])


def result_element(op: Operation) -> Attribute:
    """The tir type of the op's result, or of an element of it."""
    return element_type(op.results[0].type)


def operand_element(op: Operation) -> Attribute:
    """The tir type of the op's first operand, or of an element of it."""
    return element_type(op.operands[0].type)


def _constant(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    value, type_ = cast("arith.ConstantOp", op).value, op.results[0].type
    match value:
        case IntegerAttr():
            return b.integer(value.value.data, llvm_type(type_))
        case FloatAttr():
            return float_constant(b, value.value.data, type_)
        case DenseIntOrFPElementsAttr():
            return vector_constant(b, cast("Sequence[float]", value.get_values()), element_type(type_))
        case _:
            raise ValueError(f"'{op.name}' op has a constant of type {type_}, expected an integer or a float")


def _index_or_integer(
    kind: type[Operation],
    index: Combine,
    b: LLVMBuilder,
    op: Operation,
    operands: Sequence[SSAValue],
) -> SSAValue:
    """Integers wrap around; of indices the builder knows which cannot."""
    lhs, rhs = operands
    if isinstance(result_element(op), IndexType):
        return index(b, lhs, rhs)
    return b.wrapping(kind, lhs, rhs)


def _integer(kind: type[Operation], b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.once(kind, operands, operands[0].type)


def _shift(kind: type[Operation], b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """A shift by the width or more moves all bits out; LLVM gives no meaning to it."""
    value, amount = operands
    bits = cast("IntegerType", element_type(value.type)).width.data
    known = b.known_integer(amount)
    if known is not None and 0 <= known < bits:
        return b.make(kind, (value, amount), value.type)
    inside = b.compare("ult", amount, b.integer(bits, value.type))
    if kind is llvm.AShrOp:
        return b.make(kind, (value, b.select(inside, amount, b.integer(bits - 1, value.type))), value.type)
    # The amount is replaced too, for a shift without meaning must not reach the selection.
    shifted = b.make(kind, (value, b.select(inside, amount, b.integer(0, value.type))), value.type)
    return b.select(inside, shifted, b.integer(0, value.type))


def _division(divide: Combine, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    lhs, rhs = operands
    return divide(b, lhs, rhs)


def _float(kind: type[Operation], b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    type_ = result_element(op)
    wide = [convert_float(b, operand, type_, compute_type(type_)) for operand in operands]
    result = b.make(kind, wide, wide[0].type, {"fastmathFlags": fast_math(b, op)})
    return convert_float(b, result, compute_type(type_), type_)


def _extremum(intrinsic: str, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """The larger or smaller of two numbers by an intrinsic; exact, so bf16 is widened and cut back."""
    type_ = result_element(op)
    wide = [convert_float(b, operand, type_, compute_type(type_)) for operand in operands]
    result = b.overloaded(intrinsic, wide, wide[0].type)
    return convert_float(b, result, compute_type(type_), type_)


def _integer_extremum(intrinsic: str, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.overloaded(intrinsic, operands, operands[0].type)


def _cmpi(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    predicate = llvm.ICmpPredicateFlag.from_int(cast("arith.CmpiOp", op).predicate.value.data)
    return b.compare(predicate.value, operands[0], operands[1])


def _cmpf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    type_ = operand_element(op)
    lhs, rhs = (convert_float(b, operand, type_, compute_type(type_)) for operand in operands)
    predicate = llvm.FCmpPredicateFlag.from_int(cast("arith.CmpfOp", op).predicate.value.data)
    return b.compare_floats(predicate.value, lhs, rhs)


def _compare(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """Lane by lane."""
    number, type_ = cast("CompareOp", op).number, operand_element(op)
    if not cast("CompareOp", op).is_float:
        return b.compare(llvm.ICmpPredicateFlag.from_int(number).value, *operands)
    lhs, rhs = (convert_float(b, operand, type_, compute_type(type_)) for operand in operands)
    return b.compare_floats(llvm.FCmpPredicateFlag.from_int(number).value, lhs, rhs)


def _convert(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return ARITH_LOWERINGS[cast("ConvertOp", op).scalar_op](b, op, operands)


def _select(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.select(*operands)


def _negf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (value,) = operands
    type_ = result_element(op)
    if type_ == bf16:
        return b.make(llvm.XOrOp, (value, b.integer(0x8000, value.type)), value.type)
    wide = convert_float(b, value, type_, compute_type(type_))
    return convert_float(
        b, b.make(llvm.FNegOp, (wide,), wide.type, {"fastmathFlags": NO_FLAGS}), compute_type(type_), type_
    )


def _extend(kind: type[Operation], b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (value,) = operands
    return b.make(kind, (value,), like(value.type, llvm_type(result_element(op))))


def _index_cast(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (value,) = operands
    source, target = element_type(value.type), llvm_type(result_element(op))
    known = b.known_integer(value)
    if source == target:
        return value
    if known is not None:
        return b.integer(known, target)
    wider = cast("IntegerType", source).width.data < cast("IntegerType", target).width.data
    return b.make(llvm.SExtOp if wider else llvm.TruncOp, (value,), like(value.type, target))


def _convert_float(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return convert_float(b, operands[0], operand_element(op), result_element(op))


def _to_integer(signed: bool, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return to_integer(b, operands[0], operand_element(op), result_element(op), signed)


def _from_integer(signed: bool, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return from_integer(b, operands[0], result_element(op), signed)


def _bitcast(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (value,) = operands
    target = like(value.type, llvm_type(result_element(op)))
    source, wanted = element_type(value.type), element_type(target)
    if source == wanted:
        return value
    if isinstance(source, IntegerType) and isinstance(wanted, IntegerType):  # the bits of a small float have a byte
        narrower = cast("IntegerType", wanted).width.data < cast("IntegerType", source).width.data
        return b.make(llvm.TruncOp if narrower else llvm.ZExtOp, (value,), target)
    return b.make(llvm.BitcastOp, (value,), target)


_INTEGERS: dict[type[Operation], type[Operation]] = {
    arith.AndIOp: llvm.AndOp,
    arith.OrIOp: llvm.OrOp,
    arith.XOrIOp: llvm.XOrOp,
}

_SHIFTS: dict[type[Operation], type[Operation]] = {
    arith.ShLIOp: llvm.ShlOp,
    arith.ShRUIOp: llvm.LShrOp,
    arith.ShRSIOp: llvm.AShrOp,
}

_DIVISIONS: dict[type[Operation], Combine] = {
    arith.DivSIOp: division.truncdiv,
    arith.RemSIOp: division.truncmod,
    arith.DivUIOp: division.unsigned_div,
    arith.RemUIOp: division.unsigned_mod,
    arith.FloorDivSIOp: division.floordiv,
    arith.CeilDivSIOp: division.ceildiv,
    arith.CeilDivUIOp: division.unsigned_ceildiv,
}

_FLOATS: dict[type[Operation], type[Operation]] = {
    arith.AddfOp: llvm.FAddOp,
    arith.SubfOp: llvm.FSubOp,
    arith.MulfOp: llvm.FMulOp,
    arith.DivfOp: llvm.FDivOp,
}

_FLOAT_EXTREMA: dict[type[Operation], str] = {
    arith.MaximumfOp: "llvm.maximum",
    arith.MinimumfOp: "llvm.minimum",
    arith.MaxnumfOp: "llvm.maxnum",
    arith.MinnumfOp: "llvm.minnum",
}

_INTEGER_EXTREMA: dict[type[Operation], str] = {
    arith.MaxSIOp: "llvm.smax",
    arith.MinSIOp: "llvm.smin",
    arith.MaxUIOp: "llvm.umax",
    arith.MinUIOp: "llvm.umin",
}

ARITH_LOWERINGS: dict[type[Operation], Lower] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: partial(_index_or_integer, llvm.AddOp, LLVMBuilder.add),
    arith.SubiOp: partial(_index_or_integer, llvm.SubOp, LLVMBuilder.sub),
    arith.MuliOp: partial(_index_or_integer, llvm.MulOp, LLVMBuilder.mul),
    **{op: partial(_integer, kind) for op, kind in _INTEGERS.items()},
    **{op: partial(_shift, kind) for op, kind in _SHIFTS.items()},
    **{op: partial(_float, kind) for op, kind in _FLOATS.items()},
    **{op: partial(_extremum, name) for op, name in _FLOAT_EXTREMA.items()},
    **{op: partial(_integer_extremum, name) for op, name in _INTEGER_EXTREMA.items()},
    **{op: partial(_division, divide) for op, divide in _DIVISIONS.items()},
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    arith.NegfOp: _negf,
    arith.ExtSIOp: partial(_extend, llvm.SExtOp),
    arith.ExtUIOp: partial(_extend, llvm.ZExtOp),
    arith.TruncIOp: partial(_extend, llvm.TruncOp),
    arith.IndexCastOp: _index_cast,
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.FPToSIOp: partial(_to_integer, True),
    arith.FPToUIOp: partial(_to_integer, False),
    arith.SIToFPOp: partial(_from_integer, True),
    arith.UIToFPOp: partial(_from_integer, False),
    arith.BitcastOp: _bitcast,
}
"""Every arith op with one result that is no container of values."""

LANE_LOWERINGS: dict[type[Operation], Lower] = {CompareOp: _compare, ConvertOp: _convert, SelectOp: _select}
"""The ops of tir that do with vectors what those of arith do with scalars."""
