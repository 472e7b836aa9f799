"""Choice and search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axes, axis_of, broadcast_load, put, ravel, without
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import is_float_expr, widen
from relax_dialect.ops.search import ArgmaxOp, ArgminOp, ArgReductionOp, BucketizeOp, WhereOp
from tir_dialect import te
from tir_dialect.te.expr import DType

Pair: TypeAlias = tuple[te.Expr, te.Expr]


@legalizes(WhereOp)
def where(kernel: Kernel, op: WhereOp) -> te.Tensor:
    """Elements of one or the other."""
    shape = kernel.shape(op.result)
    condition, x, y = (kernel.tensor(operand) for operand in op.operands)

    def element(*i: te.Expr) -> te.Expr:
        return te.select(*(broadcast_load(tensor, shape, i) for tensor in (condition, x, y)))

    return te.compute(shape, element, name="where")


def is_nan(x: te.Expr) -> te.Expr:
    """Whether a number is NaN; an integer never is."""
    return te.isnan(x) if is_float_expr(x) else te.const(False, "i1")


def _first(better: Callable[[te.Expr, te.Expr], te.Expr], worst: Callable[[DType], te.Expr], name: str) -> te.Reducer:
    """The best value and its position; NaN is better than all numbers, and of equals the first one counts."""

    def combine(a: Pair, b: Pair) -> Pair:
        earlier = b[1] < a[1]
        takes = te.logical_or(better(b[0], a[0]), te.logical_and(a[0] == b[0], earlier))
        if is_float_expr(b[0]):
            takes = te.select(te.isnan(b[0]), te.logical_or(te.logical_not(te.isnan(a[0])), earlier), takes)
        return te.select(takes, b[0], a[0]), te.select(takes, b[1], a[1])

    def identity(value: DType, position: DType) -> Pair:
        return worst(value), te.max_value(position)

    return te.comm_reducer(combine, identity, name=name)


FIRST_GREATEST = _first(lambda a, b: a > b, te.min_value, "argmax")
"""The greatest value and the position where it is first."""

_ARGMIN = _first(lambda a, b: a < b, te.max_value, "argmin")


@legalizes(ArgmaxOp)
def argmax(kernel: Kernel, op: ArgmaxOp) -> te.Tensor:
    """The first position of the greatest element."""
    return _arg_reduction(kernel, op, FIRST_GREATEST)


@legalizes(ArgminOp)
def argmin(kernel: Kernel, op: ArgminOp) -> te.Tensor:
    """The first position of the least element."""
    return _arg_reduction(kernel, op, _ARGMIN)


def _arg_reduction(kernel: Kernel, op: ArgReductionOp, reducer: te.Reducer) -> te.Tensor:
    x = kernel.tensor(op.x)
    reduced = tuple(range(x.ndim)) if op.axis is None else (axis_of(op.axis, x.ndim),)
    keep = op.keepdims is not None
    variables = [te.reduce_axis(x.shape[axis], f"r{axis}") for axis in reduced]
    position = te.cast(ravel(variables, [x.shape[axis] for axis in reduced]), "i64")

    def element(*i: te.Expr) -> te.Expr:
        outer = without(i, *reduced) if keep else i
        value = widen(x[put(outer, reduced, variables)])
        return reducer((value, position), variables)[1] if variables else te.const(0, "i64")

    return te.compute(kernel.shape(op.result), element, name=reducer.name)


@legalizes(BucketizeOp)
def bucketize(kernel: Kernel, op: BucketizeOp) -> te.Tensor:
    """Binary search for each element."""
    x, boundaries, dtype = kernel.tensor(op.x), kernel.tensor(op.boundaries), str(kernel.dtype(op.result))
    right = op.right is not None

    def before(boundary: te.Expr, value: te.Expr) -> te.Expr:
        """Whether the interval of `value` begins at or after `boundary`."""
        less = boundary <= value if right else boundary < value
        # NaN is beyond all boundaries that are numbers.
        beyond = is_nan(value) if right else te.logical_and(is_nan(value), te.logical_not(is_nan(boundary)))
        return te.logical_or(less, beyond)

    def search(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("bucketize", *axes(x.shape)) as i:
            low, high = b.alloc((), "i64", "low"), b.alloc((), "i64", "high")
            b.store(low, (), 0)
            b.store(high, (), te.cast(te.cast(boundaries.shape[0], "index"), "i64"))
            with b.while_(low[()] < high[()]):
                middle = b.let((low[()] + high[()]) // 2, "middle")
                with b.if_(before(widen(boundaries[middle]), widen(x[i]))):
                    b.store(low, (), middle + 1)
                with b.else_():
                    b.store(high, (), middle)
            b.store(outs[0], i, te.cast(low[()], dtype))

    return te.extern([(x.shape, dtype)], [x, boundaries], search, name="bucketize")[0]
