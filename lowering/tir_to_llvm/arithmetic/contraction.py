"""Which sums and products may be one multiply-add, which rounds once.

Contracted to `fma(x, x, -(y * y))`, the difference `x * x - y * y` of equal numbers is the rounding error of a
product instead of 0, and as often negative as not. Its square root is then NaN, and so is that of a variance computed
as `mean_of_squares - mean * mean`. So arithmetic on elements is rounded as it is written, as with `-ffp-
contract=off`, and only accumulations such as `sum += a * b` are contracted. Generators of kernels write `math.fma`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.regions import FlattenOp, ViewOp


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
